/* One plugin with one fault, chosen by BAD_<fault>. Without any it is a good cache called "good". */
#include <fenv.h>
#include <mekik/plugin.h>
#include <mekik/version.h>
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

static mekik_status create(const mekik_host* h, const mekik_config* c, mekik_cache** out) {
  (void)h, (void)c;
  *out = (mekik_cache*)out;
  return MEKIK_OK;
}
static void destroy(mekik_cache* c) { (void)c; }
static void touched(mekik_cache* c, const mekik_key* k, uint64_t now) { (void)c, (void)k, (void)now; }
#define MAYBE_UNUSED __attribute__((unused))
MAYBE_UNUSED static uint32_t victims(mekik_cache* c, const mekik_node* n, uint32_t count, uint32_t size, uint64_t bytes, uint32_t* chosen) {
  (void)c, (void)n, (void)count, (void)size, (void)bytes, (void)chosen;
  return 0;
}
MAYBE_UNUSED static int has(mekik_cache* c, const mekik_key* k, uint64_t* bytes, uint64_t* expected) {
  (void)c, (void)k, (void)bytes, (void)expected;
  return 0;
}

static const mekik_cache_policy table = {
#ifdef BAD_SHORT_TABLE
    .struct_size = 16,
#else
    .struct_size = sizeof(mekik_cache_policy),
#endif
    .create = create,
    .destroy = destroy,
    .touched = touched,
#ifndef BAD_NO_FUNCTION
    .victims = victims,
#endif
#ifdef BAD_HALF_TIER
    .has = has,
#endif
};

#ifdef BAD_CORE_KEY
static const mekik_option options[] = {{"block_tokens", MEKIK_OPT_INT, 0, "16", 1, 64, NULL, NULL, 0, 0, "Tokens of a block."}};
#else
static const mekik_option options[] = {{"depth", MEKIK_OPT_INT, 0, "16", 1, 64, NULL, NULL, 0, 0, "How deep."}};
#endif

static const mekik_component one = {
    .struct_size = sizeof(mekik_component),
#if defined(BAD_REVISION)
    .kind = "mekik.cache/2",
#elif defined(BAD_KIND)
    .kind = "mekik.cash/1",
#elif defined(BAD_DRAFT)
    .kind = "mekik.drafter/0",
#else
    .kind = "mekik.cache/1",
#endif
    .name = NAME,
    .version = "1",
    .summary = "A cache.",
    .options = options,
    .n_options = 1,
#ifdef BAD_STRIDE
    .option_size = 16,
#else
    .option_size = sizeof(mekik_option),
#endif
    .table = &table,
};

static mekik_status init(const mekik_host* h, mekik_str path) {
  (void)path;
#ifdef BAD_INIT
  const char* why = "the moon is not full";
  return h->fail(h, MEKIK_E_UNSUPPORTED, (mekik_str){why, strlen(why)});
#elif defined(BAD_ROUNDING)
  (void)h;
  fesetround(FE_UPWARD);
  return MEKIK_OK;
#else
  (void)h;
  return MEKIK_OK;
#endif
}
static void deinit(void) {}
MAYBE_UNUSED static uint32_t count(void) {
#ifdef BAD_COUNT
  return 4000000000u;
#else
  return 1;
#endif
}
static const mekik_component* component(uint32_t i) {
#ifdef BAD_COMPONENT
  return i == 77 ? &one : NULL;
#else
  return i == 0 ? &one : NULL;
#endif
}

#ifdef BAD_MODE
__attribute__((constructor)) static void flush(void) { _mm_setcsr(_mm_getcsr() | 0x8040u); }
#endif

#if defined(BAD_MAJOR)
#define ENTRY mekik_plugin_v1
#elif defined(BAD_SYMBOL)
#define ENTRY somebody_elses_entry
#else
#define ENTRY mekik_plugin_v0
#endif
MEKIK_EXPORT extern const mekik_plugin ENTRY;
const mekik_plugin ENTRY = {
#ifdef BAD_MAGIC
    .magic = 0x31504549u,
#else
    .magic = MEKIK_MAGIC,
#endif
#ifdef BAD_SHORT
    .struct_size = 24,
#else
    .struct_size = sizeof(mekik_plugin),
#endif
    .id = "test.misbehaving." NAME,
    .vendor = "test",
    .version = "1",
    .license = "Apache-2.0",
#ifdef BAD_DRAFT
    .built_for = "0.0.1",
#else
    .built_for = MEKIK_VERSION,
#endif
    .init = init,
    .deinit = deinit,
#ifndef BAD_NULL
    .count = count,
#endif
    .component = component,
};
