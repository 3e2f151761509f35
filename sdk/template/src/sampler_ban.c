/* Tokens from an id on never come: models often have rows of logits that stand for no token. In C11, so without the wrapper of
 * mekik/plugin.hpp: this is all that a plugin is. Like every option of a sampler, `ban_from` is also a field of requests. */
#include <math.h>
#include <mekik/plugin.h>
#include <mekik/version.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(s) ((mekik_str){(s), sizeof(s) - 1})

static const mekik_host* host;

typedef struct ban {
  uint32_t from;
} ban;

/* A number of the request's fields, which the host has checked against the option's row; -1: the request has no such field. */
static int64_t field(mekik_str json, const char* key) { /* key: with its quotes and the colon, as the host writes it */
  const size_t n = strlen(key);
  for (size_t i = 0; i + n < json.len; ++i) {
    if (memcmp(json.ptr + i, key, n) != 0) continue;
    int64_t value = 0;
    for (i += n; i < json.len && json.ptr[i] >= '0' && json.ptr[i] <= '9'; ++i) value = 10 * value + (json.ptr[i] - '0');
    return value;
  }
  return -1;
}

static mekik_status create(const mekik_host* h, const mekik_config* config, const mekik_vocab* vocab, mekik_str request,
                           mekik_chain** out) {
  const mekik_config_api* api = h->service(h, MEKIK_CONFIG);
  if (api == NULL) return h->fail(h, MEKIK_E_UNSUPPORTED, TEXT("this host gives no options"));
  int64_t from = field(request, "\"ban_from\":");
  if (from < 0) from = api->i64(config, "ban_from");
  ban* self = malloc(sizeof(ban));
  if (self == NULL) return h->fail(h, MEKIK_E_NO_MEMORY, TEXT("no memory for a sampler"));
  self->from = from == 0 || from > vocab->n ? vocab->n : (uint32_t)from;
  *out = (mekik_chain*)self;
  return MEKIK_OK;
}
static void destroy(mekik_chain* chain) { free(chain); }
static mekik_status copy(const mekik_chain* chain, mekik_chain** out) {
  ban* self = malloc(sizeof(ban));
  if (self == NULL) return host->fail(host, MEKIK_E_NO_MEMORY, TEXT("no memory for a sampler"));
  *self = *(const ban*)chain;
  *out = (mekik_chain*)self;
  return MEKIK_OK;
}
static void accept(mekik_chain* chain, const int32_t* tokens, uint32_t n, int prompt) { (void)chain, (void)tokens, (void)n, (void)prompt; }
static mekik_status apply(mekik_chain* chain, float* logits, uint32_t vocab, double uniform) {
  const ban* self = (const ban*)chain;
  (void)uniform;
  for (uint32_t i = self->from; i < vocab; ++i) logits[i] = -INFINITY;
  return MEKIK_OK;
}

static const mekik_sampler table = {
    .struct_size = sizeof table, .create = create, .destroy = destroy, .fork = copy, .accept = accept, .apply = apply};
static const mekik_option options[] = {{.key = "ban_from",
                                        .type = MEKIK_OPT_INT,
                                        .fallback = "0",
                                        .min = 0,
                                        .max = 2147483647,
                                        .doc = "Tokens from this id on never come; 0: all may."}};
static const mekik_component component_ban = {.struct_size = sizeof component_ban,
                                              .kind = MEKIK_KIND_SAMPLER,
                                              .name = "ban",
                                              .version = "1.0",
                                              .summary = "Bans tokens from an id on.",
                                              .options = options,
                                              .n_options = 1,
                                              .option_size = sizeof(mekik_option),
                                              .table = &table};

static mekik_status init(const mekik_host* h, mekik_str path) {
  (void)path;
  host = h;
  return MEKIK_OK;
}
static void deinit(void) { host = NULL; }
static uint32_t count(void) { return 1; }
static const mekik_component* component(uint32_t index) { return index == 0 ? &component_ban : NULL; }

const mekik_plugin mekik_plugin_v0 = {.magic = MEKIK_MAGIC,
                                      .struct_size = sizeof(mekik_plugin),
                                      .abi_minor = MEKIK_ABI_MINOR,
                                      .id = "org.example.ban",
                                      .vendor = "",
                                      .version = "1.0",
                                      .license = "Apache-2.0",
                                      .built_for = MEKIK_VERSION,
                                      .init = init,
                                      .deinit = deinit,
                                      .count = count,
                                      .component = component};
