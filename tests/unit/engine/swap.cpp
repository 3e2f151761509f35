// Sequences that give up their blocks to the slower tier and go on from there: the answer is the same to the bit, whatever the tier does;
// and when that pays.
#include <random>

#include "engine/swap_costs.hpp"
#include "support/catch.hpp"
#include "support/drafters.hpp"
#include "support/fake_tier.hpp"

using namespace mekik;
using namespace mekik::test;
using engine::Finish;

namespace {

// Four sequences that need about twice the blocks that there are.
std::vector<engine::Request> long_requests() {
  std::vector<engine::Request> out;
  for (std::uint64_t i = 0; i < 4; ++i) {
    out.push_back(request_of(prompt_of(70 + 9 * i, 500 + i), 90,
                             i % 2 == 0 ? R"({"temperature":0.9,"top_k":20,"repetition_penalty":1.2})" : R"({"temperature":0})"));
    out.back().seed = i;
    out.back().logprobs = i == 2 ? 2 : -1;
    out.back().priority = static_cast<std::int32_t>(i % 3);
  }
  return out;
}

std::vector<Setup> short_setups(FakeTier& tier, bool asking) {
  auto setups = setups_over(tier, asking);
  setups.pop_back();  // without blocks nothing runs out
  for (Setup& setup : setups) setup.blocks[0] = 22;
  setups[1].blocks[1] = 20;
  setups[2].slots = 6;
  return setups;
}

void check_equal(const Answer& got, const Answer& wanted) {
  CHECK(got.finish == wanted.finish);
  CHECK(got.tokens == wanted.tokens);
  REQUIRE(got.infos.size() == wanted.infos.size());
  for (std::size_t i = 0; i < got.infos.size(); ++i) {
    CHECK(got.infos[i].logprob == wanted.infos[i].logprob);
    CHECK(got.infos[i].top.size() == wanted.infos[i].top.size());
  }
}

}  // namespace

TEST_CASE("a sequence that is swapped out goes on as if nothing had happened, and nothing is computed twice") {
  const auto requests = long_requests();
  for (const bool asking : {false, true})
    for (std::size_t which = 0; which < 3; ++which)
      for (const auto* scheduler : {"continuous", "priority", "fair"}) {
        FakeTier tier;
        Setup setup = short_setups(tier, asking)[which];
        setup.scheduler = scheduler;
        Bench bench{setup};
        std::vector<engine::RequestId> ids;
        for (const auto& request : requests) {
          ids.push_back(*bench.submit(request));
          for (int i = 0; i < 12; ++i) bench.step();
        }
        bench.run();
        CAPTURE(asking, which, scheduler);
        for (std::size_t i = 0; i < ids.size(); ++i) check_equal(bench.answer(ids[i]), alone(requests[i], setup)[0]);
        CHECK(bench.metric("mekik_num_preemptions_total", "kind=swap") > 0);
        CHECK(bench.metric("mekik_num_preemptions_total", "kind=recompute") == 0);
        CHECK(bench.metric("mekik_cache_tier_read_bytes_total") > 0);
        CHECK(bench.metric("mekik_preempted_tokens_computed_total") == 0);
        CHECK(bench.loop->stats().blocks_leaked == 0);
      }
}

TEST_CASE("however tight the blocks are, nothing is computed twice") {
  auto requests = long_requests();
  requests.resize(2);
  for (std::uint32_t blocks = 12; blocks < 23; ++blocks)
    for (const auto* scheduler : {"continuous", "priority", "fair"}) {
      FakeTier tier;
      Setup setup = setup_over(tier, true);
      setup.blocks = {blocks};
      setup.scheduler = scheduler;
      Bench bench{setup};
      std::vector<engine::RequestId> ids;
      for (const auto& request : requests) ids.push_back(*bench.submit(request));
      bench.run();
      CAPTURE(blocks, scheduler);
      for (std::size_t i = 0; i < ids.size(); ++i) check_equal(bench.answer(ids[i]), alone(requests[i], setup)[0]);
      CHECK(bench.metric("mekik_preempted_tokens_computed_total") == 0);
      CHECK(bench.loop->stats().blocks_leaked == 0);
    }
}

TEST_CASE("without a tier, or with one that loses everything, it is computed again") {
  const auto requests = long_requests();
  for (const auto fault : {FakeTier::Fault::none, FakeTier::Fault::refusing, FakeTier::Fault::garbage, FakeTier::Fault::late,
                           FakeTier::Fault::failing, FakeTier::Fault::forgetful})
    for (const bool asking : {false, true}) {
      FakeTier tier;
      tier.fault = fault;
      Setup setup = short_setups(tier, asking)[0];
      const bool none = fault == FakeTier::Fault::none;
      if (none) setup.own_cache = nullptr, setup.keeping_cache = true;
      Bench bench{setup};
      std::vector<engine::RequestId> ids;
      for (const auto& request : requests) ids.push_back(*bench.submit(request));
      bench.run();
      CAPTURE(static_cast<int>(fault), asking);
      for (std::size_t i = 0; i < ids.size(); ++i) check_equal(bench.answer(ids[i]), alone(requests[i], setup)[0]);
      CHECK(bench.metric("mekik_num_preemptions_total", none ? "kind=recompute" : "kind=swap") > 0);
      CHECK(bench.metric("mekik_preempted_tokens_computed_total") > 0);
      CHECK(bench.loop->stats().blocks_leaked == 0);
    }
}

TEST_CASE("who is cancelled while swapped out, or while it comes back, leaves nothing behind") {
  const auto requests = long_requests();
  for (const auto fault : {FakeTier::Fault::none, FakeTier::Fault::late})
    for (int when = 0; when < 40; when += 3) {
      FakeTier tier;
      Setup setup = short_setups(tier, true)[0];
      Bench bench{setup};
      std::vector<engine::RequestId> ids;
      for (const auto& request : requests) ids.push_back(*bench.submit(request));
      while (bench.metric("mekik_num_preemptions_total", "kind=swap") == 0) bench.step();
      tier.fault = fault;
      for (int i = 0; i < when; ++i) bench.step();
      bench.loop->cancel(ids[0]);
      bench.loop->cancel(ids[3]);
      bench.step();
      tier.fault = FakeTier::Fault::none;
      bench.run();
      CAPTURE(static_cast<int>(fault), when);
      for (const std::size_t i : {1u, 2u}) check_equal(bench.answer(ids[i]), alone(requests[i], setup)[0]);
      CHECK(bench.loop->stats().blocks_leaked == 0);
    }
}

TEST_CASE("drafts and swapping go together") {
  const auto requests = long_requests();
  for (std::size_t which = 0; which < 3; ++which) {
    FakeTier tier;
    Setup setup = short_setups(tier, true)[which];
    setup.drafter_name = "ngram";
    setup.drafter_options = "min = 1";
    Bench bench{setup};
    std::vector<engine::RequestId> ids;
    for (const auto& request : requests) ids.push_back(*bench.submit(request));
    bench.run();
    CAPTURE(which);
    for (std::size_t i = 0; i < ids.size(); ++i) check_equal(bench.answer(ids[i]), alone(requests[i], setup)[0]);
    CHECK(bench.metric("mekik_num_preemptions_total", "kind=swap") > 0);
  }
}

TEST_CASE("a storm of preemptions, cancels and faults of the tier changes no answer and loses no block") {
  std::mt19937 random{11};
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  double swaps = 0, read = 0;
  for (std::size_t which = 0; which < 6; ++which) {
    FakeTier tier;
    Setup setup = short_setups(tier, which >= 3)[which % 3];
    std::vector<engine::Request> requests;
    std::vector<Answer> expected;
    for (std::uint64_t i = 0; i < 10; ++i) {
      auto prompt = prompt_of(40, i / 5);
      const auto own = prompt_of(1 + i * 9, 70 + i);
      prompt.insert(prompt.end(), own.begin(), own.end());
      requests.push_back(
          request_of(prompt, 20 + static_cast<std::uint32_t>(i) * 6, i % 2 == 0 ? R"({"temperature":1})" : R"({"temperature":0})"));
      requests.back().priority = static_cast<std::int32_t>(i % 4);
      expected.push_back(alone(requests.back(), setup)[0]);
    }
    for (const auto* scheduler : {"priority", "continuous", "fair", "deadline", "static"}) {
      setup.scheduler = scheduler;
      Bench bench{setup};
      std::vector<std::pair<engine::RequestId, std::size_t>> sent;
      for (int turn = 0; turn < 500; ++turn) {
        if (below(10) == 0) tier.fault = static_cast<FakeTier::Fault>(below(3) == 0 ? below(7) : 0);
        if (below(10) == 0) sent.emplace_back(*bench.submit(requests[sent.size() % 10]), sent.size() % 10);
        if (below(40) == 0 && !sent.empty()) bench.loop->cancel(sent[below(sent.size())].first);
        bench.step();
      }
      bench.run();
      CAPTURE(which, scheduler);
      for (const auto& [id, i] : sent) {
        CHECK(bench.answer(id).finish != Finish::error);
        if (bench.answer(id).finish != Finish::cancelled) CHECK(bench.answer(id).tokens == expected[i].tokens);
      }
      CHECK(bench.loop->stats().blocks_leaked == 0);
      swaps += bench.metric("mekik_num_preemptions_total", "kind=swap");
      read += bench.metric("mekik_cache_tier_read_bytes_total");
    }
  }
  CHECK(swaps > 100);
  CHECK(read > 0);
}

TEST_CASE("swapping pays by what is measured, and does not change its mind for little") {
  engine::SwapCosts costs;
  constexpr std::uint64_t kMiB = 1 << 20;
  CHECK_FALSE(costs.pays(0, 10, 1000, false, 0));
  CHECK(costs.pays(kMiB, 10, 0, false, 0));  // nothing is known of computing
  costs.wrote(kMiB, kMiB, 1);                // a nanosecond a byte
  costs.read(kMiB, kMiB, 1);
  CHECK(costs.pays(1000, 10, 400, false, 2));        // 2 us against 4
  CHECK_FALSE(costs.pays(1000, 10, 220, false, 2));  // 2 against 2.2: too little to begin
  CHECK(costs.pays(1000, 10, 220, true, 2));         // and to end
  CHECK(costs.pays(1000, 10, 180, true, 2));
  CHECK_FALSE(costs.pays(1000, 10, 150, true, 2));
  for (int i = 0; i < 20; ++i) costs.read(kMiB, 20 * kMiB, 3);
  CHECK_FALSE(costs.pays(1000, 10, 1000, true, 4));
  CHECK(costs.pays(1000, 10, 1000, false, 200'000'000'000));  // forgotten
}

TEST_CASE("a loop whose tier is slower than computing computes again") {
  const auto requests = long_requests();
  for (const std::uint64_t token_ns : {1ull, 10'000'000ull}) {
    FakeTier tier;
    const Setup setup = short_setups(tier, false)[0];
    Bench bench{setup};
    bench.backend.hook = [&](auto, auto) { bench.clock.now += token_ns * 16; };
    std::vector<engine::RequestId> ids;
    for (const auto& request : requests) ids.push_back(*bench.submit(request));
    bench.run();
    CAPTURE(token_ns);
    for (std::size_t i = 0; i < ids.size(); ++i) check_equal(bench.answer(ids[i]), alone(requests[i], setup)[0]);
    CHECK(bench.metric("mekik_num_preemptions_total", token_ns == 1 ? "kind=swap" : "kind=recompute") == 0);
    CHECK(bench.metric("mekik_num_preemptions_total") > 0);
  }
}
