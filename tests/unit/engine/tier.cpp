// The cache's slower tier at the loop's level: what one loop stored another finds; a tier that is late, forgets or lies changes no answer.
#include <deque>
#include <random>

#include "support/catch.hpp"
#include "support/engine_bench.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

// A tier in memory that outlives loops. Calls end when the test says so, or at once.
struct FakeTier {
  enum class Fault { none, late, garbage, cut, failing, refusing, forgetful } fault = Fault::none;
  std::map<std::string, std::vector<std::uint8_t>> values;
  struct Call {
    mekik_done done;
    void* ctx;
  };
  std::deque<Call> held;
  std::uint32_t fetched = 0;

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

Setup setup_over(FakeTier& tier) {
  Setup setup;
  setup.own_cache = &FakeTier::table();
  setup.own_cache_state = reinterpret_cast<mekik_cache*>(&tier);
  setup.block_tokens = 16;
  return setup;
}

std::vector<Setup> setups_over(FakeTier& tier) {
  std::vector<Setup> out(4, setup_over(tier));
  out[1].windows = {0, 24};
  out[1].blocks = {256, 64};
  out[2].slots = 40;
  out[3].slots = 2100;
  out[3].blocks.clear();
  out[3].windows.clear();
  return out;
}

}  // namespace

TEST_CASE("what one loop has stored another goes on from") {
  for (std::size_t which = 0; which < 4; ++which) {
    CAPTURE(which);
    FakeTier tier;
    const Setup setup = setups_over(tier)[which];
    const auto request = request_of(prompt_of(100, 3), 30);
    const auto expected = alone(request, setup)[0].tokens;
    {
      Bench bench{setup};
      const auto id = *bench.submit(request);
      bench.run();
      CHECK(bench.answer(id).tokens == expected);
      CHECK(bench.answer(id).usage.cached_tokens == 0);
    }
    auto turn = request;
    turn.prompt.insert(turn.prompt.end(), expected.begin(), expected.end());
    turn.prompt.push_back(5);
    for (const auto& again : {request, turn}) {
      Bench bench{setup};
      const auto id = *bench.submit(again);
      bench.run();
      CHECK(bench.answer(id).tokens == alone(again, setup)[0].tokens);
      CHECK(bench.answer(id).usage.cached_tokens == (again.prompt.size() == 100 ? 99 : 129));
    }
  }
}

TEST_CASE("a tier that is late, forgets or lies changes no answer and holds nobody up") {
  using Fault = FakeTier::Fault;
  for (const auto fault : {Fault::late, Fault::garbage, Fault::cut, Fault::failing, Fault::refusing, Fault::forgetful})
    for (std::size_t which = 0; which < 4; ++which) {
      FakeTier tier;
      const Setup setup = setups_over(tier)[which];
      const auto request = request_of(prompt_of(100, 3), 30);
      const auto expected = alone(request, setup)[0].tokens;
      {
        Bench bench{setup};
        REQUIRE(bench.submit(request));
        bench.run();
      }
      tier.fault = fault;
      Bench bench{setup};
      const auto id = *bench.submit(request);
      const auto other = *bench.submit(request_of(prompt_of(30, 4), 5));
      bench.run();
      CAPTURE(static_cast<int>(fault), which);
      CHECK(bench.answer(id).tokens == expected);
      CHECK(bench.answer(id).finish == engine::Finish::length);
      CHECK(bench.answer(other).finish == engine::Finish::length);
      if (fault == Fault::late) CHECK(bench.answer(other).timings.total < bench.answer(id).timings.total);
    }
}

TEST_CASE("a storm over a tier changes no answer and loses no block") {
  FakeTier tier;
  std::mt19937 random{5};
  for (std::size_t which = 0; which < 4; ++which) {
    Setup setup = setups_over(tier)[which];
    if (!setup.blocks.empty()) setup.blocks[0] = 16;
    std::vector<engine::Request> requests;
    std::vector<std::vector<std::int32_t>> expected;
    for (std::uint64_t i = 0; i < 8; ++i) {
      auto prompt = prompt_of(60, i / 4);
      const auto own = prompt_of(5 + i * 7, 50 + i);
      prompt.insert(prompt.end(), own.begin(), own.end());
      requests.push_back(request_of(prompt, 10 + static_cast<std::uint32_t>(i)));
      expected.push_back(alone(requests.back(), setup)[0].tokens);
    }
    for (int round = 0; round < 6; ++round) {
      Bench bench{setup};
      std::vector<std::pair<engine::RequestId, std::size_t>> sent;
      for (int turn = 0; turn < 150; ++turn) {
        tier.fault = static_cast<FakeTier::Fault>(random() % 4 == 0 ? random() % 7 : 0);
        if (random() % 5 == 0) sent.emplace_back(*bench.submit(requests[sent.size() % 8]), sent.size() % 8);
        if (random() % 20 == 0 && !sent.empty()) bench.loop->cancel(sent[random() % sent.size()].first);
        bench.step();
      }
      bench.run();
      for (const auto& [id, i] : sent) {
        CAPTURE(which, round, i);
        if (bench.answer(id).finish != engine::Finish::cancelled) CHECK(bench.answer(id).tokens == expected[i]);
      }
      CHECK(bench.loop->stats().blocks_leaked == 0);
    }
  }
}
