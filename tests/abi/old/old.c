/* A plugin as somebody wrote it for the first revision of the ABI: built with that revision's header, it has to go on working. KIND says
 * which one: 1 a scheduler, 2 a cache, 3 a sampler, 4 a sink. */
#include <mekik/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const mekik_host* host;
static mekik_status out_of_memory(void) {
  static const char why[] = "out of memory";
  return host->fail(host, MEKIK_E_NO_MEMORY, (mekik_str){why, sizeof why - 1});
}

#if KIND == 1
#define NAME "scheduler"
static mekik_status create(const mekik_host* h, const mekik_config* config, mekik_sched** out) {
  (void)h, (void)config;
  int64_t* self = malloc(sizeof *self);
  if (self == NULL) return out_of_memory();
  *self = 0;
  *out = (mekik_sched*)self;
  return MEKIK_OK;
}
static void destroy(mekik_sched* self) { free(self); }
static mekik_status plan(mekik_sched* self, const mekik_step_view* view, mekik_choice* out, uint32_t size, uint32_t* n) {
  (void)self;
  uint32_t used = 0, tokens = view->max_tokens;
  for (uint32_t i = 0; i < view->n_seqs && used < view->max_seqs && tokens > 0; ++i) {
    const mekik_seq_view* s = (const mekik_seq_view*)((const char*)view->seqs + (size_t)i * view->seq_size);
    if (s->waiting_fetch != 0) continue;
    mekik_choice* c = (mekik_choice*)((char*)out + (size_t)used++ * size);
    c->seq = i;
    c->action = MEKIK_RUN;
    c->tokens = s->prompt_left == 0 ? 1 : s->prompt_left < tokens ? s->prompt_left : tokens;
    tokens -= c->tokens;
  }
  *n = used;
  return MEKIK_OK;
}
static const mekik_scheduler table = {sizeof table, 0, create, destroy, plan, NULL};
#elif KIND == 2
#define NAME "cache"
static mekik_status create(const mekik_host* h, const mekik_config* config, mekik_cache** out) {
  (void)h, (void)config;
  *out = malloc(1);
  return *out != NULL ? MEKIK_OK : out_of_memory();
}
static void destroy(mekik_cache* self) { free(self); }
static void touched(mekik_cache* self, const mekik_key* key, uint64_t now_ns) { (void)self, (void)key, (void)now_ns; }
static uint32_t victims(mekik_cache* self, const mekik_node* nodes, uint32_t n, uint32_t size, uint64_t bytes, uint32_t* chosen) {
  (void)self;
  uint64_t freed = 0;
  uint32_t used = 0;
  for (; used < n && freed < bytes; ++used) {
    freed += ((const mekik_node*)((const char*)nodes + (size_t)used * size))->bytes;
    chosen[used] = used;
  }
  return used;
}
static const mekik_cache_policy table = {sizeof table, 0, create, destroy, touched, victims, NULL, NULL, NULL, NULL, NULL};
#elif KIND == 3
#define NAME "sampler"
static mekik_status create(const mekik_host* h, const mekik_config* config, const mekik_vocab* vocab, mekik_str request,
                           mekik_chain** out) {
  (void)h, (void)config, (void)vocab, (void)request;
  *out = malloc(1);
  return *out != NULL ? MEKIK_OK : out_of_memory();
}
static void destroy(mekik_chain* self) { free(self); }
static void take(mekik_chain* self, const int32_t* tokens, uint32_t n, int prompt) { (void)self, (void)tokens, (void)n, (void)prompt; }
static mekik_status apply(mekik_chain* self, float* logits, uint32_t vocab, double uniform) {
  (void)self, (void)uniform;
  for (uint32_t i = 0; i < vocab; ++i) logits[i] *= 0.5f;
  return MEKIK_OK;
}
static const mekik_sampler table = {sizeof table, 0, create, destroy, NULL, take, apply, NULL, NULL};
#else
#define NAME "sink"
static mekik_status create(const mekik_host* h, const mekik_config* config, mekik_sink** out) {
  const mekik_config_api* api = h->service(h, MEKIK_CONFIG);
  char path[4096] = "";
  if (api == NULL) {
    static const char why[] = "this host gives no options";
    return h->fail(h, MEKIK_E_UNSUPPORTED, (mekik_str){why, sizeof why - 1});
  }
  const mekik_str text = api->text(config, "path");
  memcpy(path, text.ptr, text.len < sizeof path - 1 ? text.len : sizeof path - 1);
  FILE* file = fopen(path, "a");
  if (file == NULL) return out_of_memory();
  *out = (mekik_sink*)file;
  return MEKIK_OK;
}
static void destroy(mekik_sink* self) { fclose((FILE*)self); }
static void publish(mekik_sink* self, uint64_t now_ns, const mekik_sample* samples, uint32_t n, uint32_t size) {
  (void)self, (void)now_ns, (void)samples, (void)n, (void)size;
}
static void event(mekik_sink* self, const char* name, uint64_t now_ns, const mekik_field* fields, uint32_t n, uint32_t size) {
  (void)now_ns;
  char line[256];
  const int used =
      snprintf(line, sizeof line, "%s %u %s\n", name, n, n > 0 ? ((const mekik_field*)((const char*)fields + 0 * size))->key : "");
  fwrite(line, 1, used > 0 && (size_t)used < sizeof line ? (size_t)used : 0, (FILE*)self);
}
static const mekik_sink_api table = {sizeof table, 0, create, destroy, publish, event, NULL};
static const mekik_option options[] = {{"path", MEKIK_OPT_PATH, MEKIK_OPT_REQUIRED, NULL, 1, 0, NULL, NULL, 0, 0, "Where events go."}};
#define OPTIONS options, 1, sizeof options[0]
#endif
#ifndef OPTIONS
#define OPTIONS NULL, 0, sizeof(mekik_option)
#endif

static const mekik_component one = {sizeof one, 0,   "mekik." NAME "/1", "old", "1.0", "Written for the first revision.", OPTIONS,
                                    &table,     NULL};
static mekik_status init(const mekik_host* h, mekik_str path) {
  (void)path;
  host = h;
  return MEKIK_OK;
}
static void deinit(void) { host = NULL; }
static uint32_t count(void) { return 1; }
static const mekik_component* component(uint32_t i) { return i == 0 ? &one : NULL; }
const mekik_plugin mekik_plugin_v0 = {
    MEKIK_MAGIC, sizeof mekik_plugin_v0, 0, 0, "org.example.old." NAME, "an example", "1.0", "MIT", "0.1.0", init, deinit, count,
    component};
