// The cache's slower tier at the loop's level: what one loop stored another finds; a tier that is late, forgets or lies changes no answer.
#include <random>

#include "support/catch.hpp"
#include "support/fake_tier.hpp"

using namespace mekik;
using namespace mekik::test;

TEST_CASE("what one loop has stored another goes on from") {
  for (std::size_t which = 0; which < 8; ++which) {
    CAPTURE(which);
    FakeTier tier;
    const Setup setup = setups_over(tier, which >= 4)[which % 4];
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
    for (std::size_t which = 0; which < 8; ++which) {
      FakeTier tier;
      const Setup setup = setups_over(tier, which >= 4)[which % 4];
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
  for (std::size_t which = 0; which < 8; ++which) {
    Setup setup = setups_over(tier, which >= 4)[which % 4];
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
