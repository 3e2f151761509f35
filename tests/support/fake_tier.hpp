// A slower tier that a test may make late, forgetful or wrong.
#pragma once
#include <deque>

#include "support/engine_bench.hpp"

namespace mekik::test {

// A tier in memory that outlives loops. Calls end when the test says so, or at once.
struct FakeTier {
  enum class Fault { none, late, garbage, cut, failing, refusing, forgetful } fault = Fault::none;
  std::map<std::string, std::vector<std::uint8_t>> values;
  struct Call {
    mekik_done done;
    void* ctx;
  };
  std::deque<Call> held;
  std::uint32_t fetched = 0, asked = 0;

  static FakeTier& self(mekik_cache* c) { return *reinterpret_cast<FakeTier*>(c); }
  static std::string name(const mekik_key* key) { return {reinterpret_cast<const char*>(key->sha256), 32}; }
  static const mekik_cache_policy& table() {
    static const mekik_cache_policy policy = [] {
      mekik_cache_policy p = KeepingCache::table();
      p.has = [](mekik_cache* c, const mekik_key* key, std::uint64_t* bytes, std::uint64_t* expected_ns) {
        const auto at = self(c).values.find(name(key));
        if (at == self(c).values.end()) return 0;
        *bytes = at->second.size();
        *expected_ns = 1;
        return 1;
      };
      p.store = [](mekik_cache* c, const mekik_key* key, const void* data, std::uint64_t bytes, mekik_done done,
                   void* ctx) -> mekik_status {
        if (bytes == 0) return MEKIK_E_INVALID;
        if (self(c).fault == Fault::refusing) return MEKIK_E_IO;
        const auto* from = static_cast<const std::uint8_t*>(data);
        self(c).values[name(key)].assign(from, from + bytes);
        done(ctx, MEKIK_OK);
        return MEKIK_OK;
      };
      p.fetch = [](mekik_cache* c, const mekik_key* key, void* data, std::uint64_t bytes, mekik_done done, void* ctx) -> mekik_status {
        return self(c).fetch(name(key), static_cast<std::uint8_t*>(data), bytes, done, ctx);
      };
      p.cancel = [](mekik_cache* c, void* ctx) {
        for (auto& call : self(c).held)
          if (call.ctx == ctx) std::exchange(call.ctx, nullptr), call.done(ctx, MEKIK_E_CANCELLED);
        std::erase_if(self(c).held, [](const Call& call) { return call.ctx == nullptr; });
      };
      return p;
    }();
    return policy;
  }
  // The same, but it answers many questions at once.
  static const mekik_cache_policy& asking_table() {
    static const mekik_cache_policy policy = [] {
      mekik_cache_policy p = table();
      p.ask = [](mekik_cache* c, const mekik_key* keys, std::uint32_t n, std::uint32_t chain, mekik_known* out, std::uint32_t,
                 mekik_done done, void* ctx) -> mekik_status {
        FakeTier& tier = self(c);
        ++tier.asked;
        if (tier.fault == Fault::refusing) return MEKIK_E_IO;
        for (std::uint32_t i = 0; i < n; ++i) {
          const auto at = tier.values.find(name(&keys[i]));
          if (at != tier.values.end()) out[i] = {at->second.size(), 1};
          else if (chain != 0) break;
        }
        if (tier.fault == Fault::late) return tier.held.push_back({done, ctx}), MEKIK_OK;
        done(ctx, tier.fault == Fault::failing ? MEKIK_E_IO : MEKIK_OK);
        return MEKIK_OK;
      };
      return p;
    }();
    return policy;
  }
  mekik_status fetch(const std::string& key, std::uint8_t* data, std::uint64_t bytes, mekik_done done, void* ctx) {
    ++fetched;
    if (fault == Fault::refusing) return MEKIK_E_IO;
    if (fault == Fault::late) return held.push_back({done, ctx}), MEKIK_OK;
    const auto& value = values.at(key);
    std::copy(value.begin(), value.end(), data);
    if (fault == Fault::garbage)
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(bytes, 64 + fetched % 64); ++i)
        data[i] ^= static_cast<std::uint8_t>(fetched * 37 + i);
    if (fault == Fault::cut) std::fill(data, data + bytes, std::uint8_t{0});
    done(ctx, fault == Fault::failing ? MEKIK_E_IO : fault == Fault::forgetful ? MEKIK_E_INVALID : MEKIK_OK);
    return MEKIK_OK;
  }
};

inline Setup setup_over(FakeTier& tier, bool asking = false) {
  Setup setup;
  setup.own_cache = asking ? &FakeTier::asking_table() : &FakeTier::table();
  setup.own_cache_state = reinterpret_cast<mekik_cache*>(&tier);
  setup.block_tokens = 16;
  return setup;
}

inline std::vector<Setup> setups_over(FakeTier& tier, bool asking = false) {
  std::vector<Setup> out(4, setup_over(tier, asking));
  out[1].windows = {0, 24};
  out[1].blocks = {256, 64};
  out[2].slots = 40;
  out[3].slots = 2100;
  out[3].blocks.clear();
  out[3].windows.clear();
  return out;
}

}  // namespace mekik::test
