// Keeps what was used last, with a tier in a map; wrong in one way.
#include <array>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "faulty.hpp"

namespace {

using Name = std::array<std::uint8_t, 32>;
struct Cache {
  std::mutex lock;
  std::map<Name, std::vector<char>> kept;
  std::thread late;
  ~Cache() {
    if (late.joinable()) late.join();
  }
};
Cache& of(mekik_cache* c) { return *reinterpret_cast<Cache*>(c); }
Name text(const mekik_key* key) {
  Name name;
  std::memcpy(name.data(), key->sha256, name.size());
  return name;
}

mekik_status create(const mekik_host*, const mekik_config*, mekik_cache** out) {
  try {
    *out = reinterpret_cast<mekik_cache*>(new Cache);
    return MEKIK_OK;
  } catch (...) {
    return fail(MEKIK_E_NO_MEMORY, "out of memory");
  }
}
void destroy(mekik_cache* c) { delete &of(c); }
void touched(mekik_cache*, const mekik_key*, std::uint64_t) {}

std::uint32_t victims(mekik_cache*, const mekik_node* nodes, std::uint32_t n, std::uint32_t size, std::uint64_t bytes,
                      std::uint32_t* chosen) {
  std::uint64_t freed = 0;
  std::uint32_t used = 0;
  for (std::uint32_t i = 0; i < n && freed < bytes; ++i) {
    freed += at(nodes, i, size).bytes;
    if (!is("victims_unwritten") || i != 1) chosen[used] = is("victims_from_one") ? i + 1 : i;
    ++used;
    if (is("victims_too_few") && used == 2) break;
  }
  if (is("victims_overrun") && n == 7) chosen[n] = 0;
  if (is("victims_twice") && used > 1) chosen[1] = chosen[0];
  return used;
}

int has(mekik_cache* c, const mekik_key* key, std::uint64_t* bytes, std::uint64_t* expected) {
  const std::lock_guard lock{of(c).lock};
  if (is("has_everything")) return *bytes = 100, *expected = 0, 1;
  const auto it = of(c).kept.find(text(key));
  if (it == of(c).kept.end()) return 0;
  *bytes = it->second.size() + (is("has_wrong_size") ? 1 : 0);
  *expected = 1000;
  return 1;
}
mekik_status store(mekik_cache* c, const mekik_key* key, const void* data, std::uint64_t bytes, mekik_done done, void* ctx) {
  if (bytes == 0) return is("tier_no_question") ? done(ctx, MEKIK_OK), MEKIK_OK : fail(MEKIK_E_INVALID, "nothing to store");
  const auto* from = static_cast<const char*>(data);
  try {
    if (is("done_before_copy")) {
      if (of(c).late.joinable()) of(c).late.join();
      const Name name = text(key);
      of(c).late = std::thread{[c, name, from, bytes] {
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
        const std::lock_guard lock{of(c).lock};
        of(c).kept[name].assign(from, from + bytes);
      }};
      return done(ctx, MEKIK_OK), MEKIK_OK;
    }
    const std::lock_guard lock{of(c).lock};
    of(c).kept[text(key)].assign(from, from + bytes);
  } catch (...) {
    return fail(MEKIK_E_NO_MEMORY, "out of memory");
  }
  if (!is("done_never")) done(ctx, MEKIK_OK);
  if (is("done_twice")) done(ctx, MEKIK_OK);
  return MEKIK_OK;
}
mekik_status fetch(mekik_cache* c, const mekik_key* key, void* to, std::uint64_t bytes, mekik_done done, void* ctx) {
  const std::lock_guard lock{of(c).lock};
  const auto it = of(c).kept.find(text(key));
  if (it == of(c).kept.end() || (it->second.size() != bytes && !is("fetch_any_size")))
    return done(ctx, is("fetch_unknown_ok") ? MEKIK_OK : MEKIK_E_INVALID), MEKIK_OK;
  std::memcpy(to, it->second.data(), bytes - (is("fetch_short") ? 1 : 0));
  done(ctx, MEKIK_OK);
  return MEKIK_OK;
}
void cancel(mekik_cache*, void*) {}

const mekik_cache_policy kTable{sizeof(mekik_cache_policy),        0,     create, destroy, touched, victims, has,
                                is("half_tier") ? nullptr : store, fetch, cancel, nullptr};
const mekik_component kComponent = one_component<mekik_cache_policy>(MEKIK_KIND_CACHE, &kTable, nullptr, 0);
void at_init() {}

}  // namespace

FAULTY_PLUGIN(kComponent, at_init);
