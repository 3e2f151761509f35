// Counts and shows what it got, wrong in one way.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "faulty.hpp"

namespace {

struct Sink {
  std::atomic<std::uint64_t> events;
  void (*write)(void*, mekik_str);
  void* ctx;
};
Sink& of(mekik_sink* s) { return *reinterpret_cast<Sink*>(s); }
std::size_t length;

mekik_status create(const mekik_host*, const mekik_config*, mekik_sink** out) {
  auto* s = static_cast<Sink*>(std::calloc(1, sizeof(Sink)));
  if (s == nullptr) return fail(MEKIK_E_NO_MEMORY, "out of memory");
  *out = reinterpret_cast<mekik_sink*>(s);
  return MEKIK_OK;
}
void destroy(mekik_sink* s) { std::free(s); }
void publish(mekik_sink* self, std::uint64_t, const mekik_sample* samples, std::uint32_t n, std::uint32_t size) {
  Sink& s = of(self);
  for (std::uint32_t i = 0; i < n; ++i) {
    const mekik_sample& one = at(samples, i, size);
    length += std::strlen(one.name);
    for (std::uint32_t b = 0; b < one.n_bounds + (is("bounds_past_end") && one.type == MEKIK_SAMPLE_HISTOGRAM ? 1 : 0); ++b)
      length += one.bounds[b] > 1;
  }
  if (is("slow_publish")) std::this_thread::sleep_for(std::chrono::milliseconds{150});
  if (is("late_write") && s.write != nullptr) s.write(s.ctx, {"late", 4});
}
void event(mekik_sink* self, const char* name, std::uint64_t, const mekik_field* fields, std::uint32_t n, std::uint32_t size) {
  ++of(self).events;
  for (std::uint32_t i = 0; i < n; ++i) {
    const mekik_field& f = at(fields, i, size);
    length += is("text_with_end") && f.type == MEKIK_OPT_TEXT ? std::strlen(f.text.ptr) : f.text.len;
  }
  length += std::strlen(name);
  if (is("first_field")) length += at(fields, 0, size).text.len;
}
mekik_status scrape(mekik_sink* self, mekik_str, const mekik_sample* samples, std::uint32_t n, std::uint32_t size,
                    void (*write)(void*, mekik_str), void* ctx, mekik_str* type) {
  of(self).write = write, of(self).ctx = ctx;
  for (std::uint32_t i = is("skips_first") ? 1 : 0; i < n; ++i) {
    char line[256];
    const int used = std::snprintf(line, sizeof line, "%s %g\n", at(samples, i, size).name, at(samples, i, size).value);
    write(ctx, {line, static_cast<std::size_t>(used)});
  }
  static const char* const kType = "text/plain";
  char local[16] = "text/plain";
  if (is("no_type")) return MEKIK_OK;
  auto* moved = is("freed_type") ? static_cast<char*>(std::malloc(16)) : nullptr;
  if (moved != nullptr) std::memcpy(moved, local, 16);
  *type = {moved != nullptr ? moved : kType, 10};
  std::free(moved);
  if (is("scrape_fails") && n == 0) return MEKIK_E_INTERNAL;
  return MEKIK_OK;
}

const mekik_sink_api kTable{sizeof(mekik_sink_api), 0, create, destroy, publish, event, scrape};
const mekik_component kComponent = one_component<mekik_sink_api>(MEKIK_KIND_SINK, &kTable, nullptr, 0);
void at_init() {}

}  // namespace

FAULTY_PLUGIN(kComponent, at_init);
