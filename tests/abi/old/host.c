/* A host as it was at the first revision of the ABI, for plugins of today: each is loaded and asked what it has, a scheduler also for a
 * plan. Prints "kind name" of every component. */
#include <dlfcn.h>
#include <mekik/plugin.h>
#include <stdio.h>
#include <string.h>

static mekik_status fail(const mekik_host* h, mekik_status code, mekik_str why) {
  (void)h;
  fprintf(stderr, "fail: %.*s\n", (int)why.len, why.ptr);
  return code;
}
static int64_t i64(const mekik_config* c, const char* key) { return (void)c, (void)key, 0; }
static double f64(const mekik_config* c, const char* key) { return (void)c, (void)key, 0; }
static mekik_str text(const mekik_config* c, const char* key) { return (void)c, (void)key, (mekik_str){"", 0}; }
static uint32_t length(const mekik_config* c, const char* key) { return (void)c, (void)key, 0; }
static const mekik_config* inner(const mekik_config* c, const char* key, uint32_t i) { return (void)c, (void)key, (void)i, NULL; }
static mekik_status reject(const mekik_config* c, const char* key, mekik_str why) {
  (void)c, (void)key, (void)why;
  return MEKIK_E_INVALID;
}
static const mekik_config_api config = {sizeof config, 0, i64, f64, text, length, inner, reject};
static const void* service(const mekik_host* h, const char* id) { return (void)h, strcmp(id, MEKIK_CONFIG) == 0 ? &config : NULL; }

static int plans(const mekik_host* host, const mekik_scheduler* table) {
  mekik_sched* self = NULL;
  if (table->create(host, (const mekik_config*)host, &self) != MEKIK_OK) return 1;
  mekik_seq_view one = {0};
  one.id = 1, one.prompt_left = 5, one.arrival_ns = 1;
  mekik_step_view view = {sizeof view, 1, sizeof one, 64, 4, 16, 100, 0, 1000, &one};
  mekik_choice choice = {0};
  uint32_t n = 1;
  const int bad = table->plan(self, &view, &choice, sizeof choice, &n) != MEKIK_OK || n != 1 || choice.seq != 0 || choice.tokens == 0;
  table->destroy(self);
  return bad;
}

int main(int argc, char** argv) {
  int bad = 0;
  const mekik_host host = {sizeof host, 0, NULL, "old host", "0.1.0", fail, service};
  for (int a = 1; a < argc; ++a) {
    void* handle = dlopen(argv[a], RTLD_NOW | RTLD_LOCAL);
    const mekik_plugin* plugin = handle != NULL ? dlsym(handle, "mekik_plugin_v0") : NULL;
    if (plugin == NULL || plugin->magic != MEKIK_MAGIC || plugin->struct_size < sizeof *plugin) {
      printf("%s cannot be loaded: %s\n", argv[a], handle == NULL ? dlerror() : "no entry");
      bad = 1;
      continue;
    }
    if (plugin->init(&host, (mekik_str){argv[a], strlen(argv[a])}) != MEKIK_OK) bad = 1;
    for (uint32_t i = 0; i < plugin->count(); ++i) {
      const mekik_component* c = plugin->component(i);
      uint32_t size = 0;
      memcpy(&size, c->table, sizeof size);
      if (c->struct_size < sizeof *c || size < 16) bad = 1;
      for (uint32_t o = 0; o < c->n_options; ++o)
        if (((const mekik_option*)((const char*)c->options + (size_t)o * c->option_size))->key == NULL) bad = 1;
      if (strcmp(c->kind, MEKIK_KIND_SCHEDULER) == 0 && plans(&host, c->table)) {
        printf("%s makes no plan\n", c->name);
        bad = 1;
      }
      printf("%s %s\n", c->kind, c->name);
    }
    plugin->deinit();
  }
  return bad;
}
