// Promise 4 at the loop's level: neighbours, chunks, preemption, sharing and the cache change no token.
#include "support/catch.hpp"
#include "support/engine_bench.hpp"

using namespace mekik;
using namespace mekik::test;
using engine::Finish;

TEST_CASE("neighbours and chunks change nothing (B105)") {
  const auto request = request_of(prompt_of(37, 1), 24);
  const auto expected = alone(request)[0].tokens;
  REQUIRE(expected.size() == 24);
  for (const auto* scheduler : {"continuous", "static"}) {
    for (const std::uint32_t max_tokens : {1u, 3u, 8u, 64u}) {
      for (const int neighbours : {0, 1, 3, 7}) {
        Setup setup;
        setup.max_tokens = max_tokens;
        setup.scheduler = scheduler;
        Bench bench{setup};
        for (int i = 0; i < neighbours; ++i)
          REQUIRE(bench.submit(request_of(prompt_of(5 + 9 * static_cast<std::size_t>(i), 100 + static_cast<std::uint64_t>(i)), 10)));
        const auto id = bench.submit(request);
        REQUIRE(id);
        bench.run();
        CAPTURE(scheduler, max_tokens, neighbours);
        CHECK(bench.answer(*id).tokens == expected);
        CHECK(bench.answer(*id).finish == Finish::length);
      }
    }
  }
}

TEST_CASE("a seeded request keeps its stream among others (B103)") {
  auto seeded = request_of(prompt_of(9, 3), 30, R"({"temperature":0.8})");
  seeded.seed = 42;
  const auto expected = alone(seeded)[0].tokens;
  CHECK(alone(seeded)[0].tokens == expected);
  auto other = seeded;
  other.seed = 43;
  CHECK(alone(other)[0].tokens != expected);
  Bench bench;
  auto unseeded = seeded;
  unseeded.seed.reset();
  const auto b = bench.submit(unseeded);
  const auto a = bench.submit(seeded);
  const auto c = bench.submit(other);
  REQUIRE((a && b && c));
  bench.run();
  CHECK(bench.answer(*a).tokens == expected);
  CHECK(bench.answer(*b).tokens != expected);
}

TEST_CASE("preemption gives the same tokens") {
  Setup setup;
  setup.blocks = {12};  // 48 tokens for four sequences that grow to 36 each
  for (const auto* scheduler : {"continuous", "static"}) {
    setup.scheduler = scheduler;
    Bench bench{setup};
    std::vector<engine::RequestId> ids;
    std::vector<engine::Request> requests;
    for (std::uint64_t i = 0; i < 4; ++i) {
      requests.push_back(request_of(prompt_of(6, 50 + i), 30, R"({"temperature":1})"));
      ids.push_back(*bench.submit(requests.back()));
    }
    bench.run();
    CAPTURE(scheduler);
    CHECK(bench.metric("mekik_num_preemptions_total") > 0);
    for (std::size_t i = 0; i < ids.size(); ++i) CHECK(bench.answer(ids[i]).tokens == alone(requests[i])[0].tokens);
  }
}

TEST_CASE("windowed groups let go of blocks behind the window and lose nothing") {
  Setup setup;
  setup.windows = {0, 10};
  setup.blocks = {64, 8};  // 32 tokens of the windowed group for a sequence of 120
  Bench bench{setup};
  const auto request = request_of(prompt_of(60, 4), 60);
  const auto id = bench.submit(request);
  REQUIRE(id);
  bench.run();
  CHECK(bench.answer(*id).finish == Finish::length);
  CHECK(bench.answer(*id).tokens == alone(request, setup)[0].tokens);
}

TEST_CASE("recurrent states follow their sequences") {
  Setup setup;
  setup.slots = 3;  // fewer than sequences
  setup.max_seqs = 3;
  Bench bench{setup};
  std::vector<engine::Request> requests;
  std::vector<engine::RequestId> ids;
  for (std::uint64_t i = 0; i < 6; ++i) {
    requests.push_back(request_of(prompt_of(5 + i * 3, 60 + i), 12));
    requests.back().n = i == 0 ? 3 : 1;
    ids.push_back(*bench.submit(requests.back()));
  }
  bench.run();
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::uint32_t k = 0; k < requests[i].n; ++k) CHECK(bench.answer(ids[i], k).tokens == alone(requests[i], setup)[k].tokens);
}

TEST_CASE("n answers share one prompt (B57)") {
  for (const std::size_t length : {7u, 8u, 1u}) {
    auto request = request_of(prompt_of(length, 5), 20, R"({"temperature":1})");
    request.n = 3;
    Bench bench;
    const auto id = bench.submit(request);
    REQUIRE(id);
    bench.run();
    std::set<std::vector<std::int32_t>> different;
    for (std::uint32_t i = 0; i < 3; ++i) {
      const auto& a = bench.answer(*id, i);
      CHECK(a.finish == Finish::length);
      CHECK(a.usage.prompt_tokens == length);
      CHECK(a.usage.completion_tokens == 20);
      different.insert(a.tokens);
    }
    CHECK(different.size() == 3);
    CHECK(bench.backend.tokens_run == length + 3 * 19);  // the prompt once
    CHECK(bench.backend.moves == (length % 4 == 0 ? 0 : 2));
    // The same answers when nothing can be shared: the copy fails, the prompt is computed again.
    Bench again;
    again.backend.fail_move = MEKIK_E_UNSUPPORTED;
    const auto second = again.submit(request);
    again.run();
    for (std::uint32_t i = 0; i < 3; ++i) CHECK(again.answer(*second, i).tokens == bench.answer(*id, i).tokens);
  }
}

TEST_CASE("the prefix index reuses all but the last token of a prompt and changes nothing (B93, B98)") {
  for (const std::size_t length : {15u, 16u, 17u, 32u, 33u, 150u}) {
    Setup setup;
    setup.keeping_cache = true;
    setup.block_tokens = 16;
    setup.windows = {0, 24};
    setup.blocks = {40, 40};
    Bench bench{setup};
    const auto request = request_of(prompt_of(length, 6), 20);
    const auto first = bench.submit(request);
    bench.run();
    const auto second = bench.submit(request);
    bench.run();
    CAPTURE(length);
    CHECK(bench.answer(*second).tokens == bench.answer(*first).tokens);
    CHECK(bench.answer(*first).tokens == alone(request, setup)[0].tokens);
    CHECK(bench.answer(*first).usage.cached_tokens == 0);
    CHECK(bench.answer(*second).usage.cached_tokens == length - 1);
    CHECK(bench.loop->stats().blocks_leaked == 0);
  }
}

// A sequence outlives the nodes of its first blocks, which go with the end of another; its later blocks must not become nodes that
// nobody can reach, and that a new parent would count wrongly when they go. Several prompts, since the order of nodes is that of hashes.
TEST_CASE("no block stays behind when sequences with one beginning come and go") {
  for (const bool keeping : {false, true}) {
    Setup setup;
    setup.keeping_cache = keeping;
    setup.forgetting_cache = !keeping;
    setup.blocks = {24};
    Bench bench{setup};
    for (std::uint64_t salt = 0; salt < 40; ++salt) {
      const auto prompt = prompt_of(9, salt);
      REQUIRE(bench.submit(request_of(prompt, 20)));
      bench.step();
      REQUIRE(bench.submit(request_of(prompt_of(3, salt + 1000), 2)));  // ends soon: the cache is asked what it still wants
      for (std::uint64_t i = 0; i < 2 + salt % 4; ++i) bench.step();
      REQUIRE(bench.submit(request_of(prompt, 3)));
      REQUIRE(bench.submit(request_of(prompt, 20)));
      bench.run();
      const auto stats = bench.loop->stats();
      CHECK(stats.blocks_leaked == 0);
      if (!keeping) CHECK(stats.blocks_free == stats.blocks_total);
    }
    // All blocks can still be had.
    const auto id = bench.submit(request_of(prompt_of(88, 7), 4));
    REQUIRE(id);
    bench.run();
    CHECK(bench.answer(*id).finish == engine::Finish::length);
  }
}

TEST_CASE("a shared beginning whose window has gone is computed again (B95)") {
  Setup setup;
  setup.keeping_cache = true;
  setup.windows = {0, 10};
  setup.blocks = {64, 12};
  Bench bench{setup};
  auto first = request_of(prompt_of(70, 7), 20), second = first;
  for (std::size_t i = 60; i < 70; ++i) second.prompt[i] = (second.prompt[i] + 1) % 64;
  const auto a = bench.submit(first);
  bench.run();
  const auto b = bench.submit(second);
  bench.run();
  const auto c = bench.submit(first);
  bench.run();
  CHECK(bench.answer(*a).tokens == alone(first, setup)[0].tokens);
  CHECK(bench.answer(*b).tokens == alone(second, setup)[0].tokens);
  CHECK(bench.answer(*c).tokens == bench.answer(*a).tokens);
}

TEST_CASE("a tenant does not see what another one's prompts left in the cache") {
  Setup setup;
  setup.keeping_cache = true;
  Bench bench{setup};
  auto request = request_of(prompt_of(20, 8), 4);
  request.salt = 1;
  REQUIRE(bench.submit(request));
  bench.run();
  request.salt = 2;
  const auto other = bench.submit(request);
  bench.run();
  CHECK(bench.answer(*other).usage.cached_tokens == 0);
  request.salt = 1;
  const auto same = bench.submit(request);
  bench.run();
  CHECK(bench.answer(*same).usage.cached_tokens == 19);
}

TEST_CASE("the last block of an answer is known to who goes on from it, and to who comes while it is filled") {
  Setup setup;
  setup.keeping_cache = true;
  setup.block_tokens = 16;
  setup.windows = {0, 24};
  setup.blocks = {60, 60};
  for (const std::size_t length : {3u, 16u, 21u, 43u}) {
    CAPTURE(length);
    Bench bench{setup};
    const auto request = request_of(prompt_of(length, 31), 9);
    const auto first = bench.submit(request);
    bench.run();
    auto next = request;
    next.prompt.insert(next.prompt.end(), bench.answer(*first).tokens.begin(), bench.answer(*first).tokens.end());
    next.prompt.push_back(5);
    const auto second = bench.submit(next);
    bench.run();
    // The answer's last token was never an input.
    CHECK(bench.answer(*second).usage.cached_tokens == length + 8);
    CHECK(bench.answer(*second).tokens == alone(next, setup)[0].tokens);
    auto other = next;
    other.prompt[length + 3] = (other.prompt[length + 3] + 1) % 64;  // differs inside of the answer
    const auto third = bench.submit(other);
    bench.run();
    CHECK(bench.answer(*third).usage.cached_tokens == length + 3);
    CHECK(bench.answer(*third).tokens == alone(other, setup)[0].tokens);
  }
  Bench bench{setup};
  const auto request = request_of(prompt_of(21, 32), 40);
  const auto owner = bench.submit(request);
  for (int i = 0; i < 5; ++i) bench.step();
  auto beside = request;
  beside.prompt.push_back(7);
  const auto guest = bench.submit(beside);
  bench.run();
  CHECK(bench.answer(*guest).usage.cached_tokens == 21);
  CHECK(bench.answer(*guest).tokens == alone(beside, setup)[0].tokens);
  CHECK(bench.answer(*owner).tokens == alone(request, setup)[0].tokens);
  CHECK(bench.loop->stats().blocks_leaked == 0);
}

TEST_CASE("a kept state is gone on from: the same prompt, the next turn, a branch that was seen") {
  for (const bool with_blocks : {true, false}) {
    Setup setup;
    setup.keeping_cache = true;
    setup.slots = with_blocks ? 40 : 2100;  // a state in every block
    setup.max_tokens = 50;
    setup.context = 1024;
    setup.block_tokens = 16;
    setup.blocks = {60};
    if (!with_blocks) setup.blocks.clear(), setup.windows.clear();
    CAPTURE(with_blocks);
    Bench bench{setup};
    const auto ask = [&](const std::vector<std::int32_t>& prompt, std::uint32_t known) {
      const auto request = request_of(prompt, 20);
      const auto before = bench.backend.tokens_run;
      const auto id = *bench.submit(request);
      bench.run();
      CAPTURE(prompt.size());
      CHECK(bench.answer(id).usage.cached_tokens == known);
      CHECK(bench.backend.tokens_run - before == prompt.size() + 19 - known);
      CHECK(bench.answer(id).tokens == alone(request, setup)[0].tokens);
      return bench.answer(id).tokens;
    };
    const auto prompt = prompt_of(203, 11);
    const auto answer = ask(prompt, 0);
    ask(prompt, 202);
    auto turn = prompt;
    turn.insert(turn.end(), answer.begin(), answer.end());
    const auto more = prompt_of(30, 12);
    turn.insert(turn.end(), more.begin(), more.end());
    ask(turn, 222);  // all but the last token of the answer, which nobody has computed
    auto branch = prompt;
    for (std::size_t i = 150; i < branch.size(); ++i) branch[i] = (branch[i] + 1) % 64;
    ask(branch, 144);  // the last kept one before it: a state is kept every few blocks
    for (std::size_t i = 150; i < branch.size(); ++i) branch[i] = (branch[i] + 1) % 64;
    ask(branch, 150);
    CHECK(bench.metric("mekik_cache_miss_total", "reason=new_prompt") == 1);
    CHECK(bench.metric("mekik_cache_miss_total", "reason=state") == 1);
    CHECK(bench.metric("mekik_cache_miss_total", "reason=diverged") == 2);
  }
}

TEST_CASE("a state is known while its owner runs, and given up for sequences that need the slot") {
  for (const bool with_blocks : {true, false}) {
    Setup setup;
    setup.keeping_cache = true;
    setup.slots = 6;
    setup.max_seqs = 4;
    setup.block_tokens = 16;
    setup.max_tokens = 64;
    if (!with_blocks) setup.blocks.clear(), setup.windows.clear();
    CAPTURE(with_blocks);
    Bench bench{setup};
    const auto request = request_of(prompt_of(45, 13), 60);
    const auto owner = *bench.submit(request);
    bench.step();
    bench.step();
    const auto second = *bench.submit(request);
    bench.run();
    CHECK(bench.answer(second).usage.cached_tokens == 44);
    CHECK(bench.answer(second).tokens == bench.answer(owner).tokens);
    std::vector<engine::RequestId> ids;
    for (std::uint64_t i = 0; i < 8; ++i) ids.push_back(*bench.submit(request_of(prompt_of(40, 20 + i), 30)));
    bench.run();
    for (std::uint64_t i = 0; i < 8; ++i)
      CHECK(bench.answer(ids[i]).tokens == alone(request_of(prompt_of(40, 20 + i), 30), setup)[0].tokens);
  }
}
