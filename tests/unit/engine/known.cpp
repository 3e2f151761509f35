// What schedulers are told of waiting prompts: how much of them the cache has.
#include <map>

#include "support/catch.hpp"
#include "support/engine_bench.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

// A scheduler that runs all in order of arrival, or only the first `most`, and notes what it sees of those that wait.
struct Watcher {
  std::uint32_t most = UINT32_MAX;
  std::map<std::uint64_t, std::uint32_t> known;  // by sequence, in the last view where it waited
};
Watcher* watcher = nullptr;

const mekik_scheduler& table() {
  static const mekik_scheduler scheduler = [] {
    mekik_scheduler t{};
    t.struct_size = sizeof t;
    t.destroy = [](mekik_sched*) {};
    t.plan = [](mekik_sched*, const mekik_step_view* view, mekik_choice* out, std::uint32_t, std::uint32_t* n) -> mekik_status {
      std::uint32_t used = 0, tokens = view->max_tokens;
      for (std::uint32_t i = 0; i < view->n_seqs; ++i) {
        const auto& s = view->seqs[i];
        if (s.running == 0) watcher->known[s.id] = s.known;
        if (s.running != 0 && s.known != 0) return MEKIK_E_INTERNAL;  // the rest of a prompt that has begun is not known
        const std::uint32_t take = std::min(tokens, std::max(1u, s.prompt_left - s.known));
        if (used >= watcher->most || take == 0) continue;
        out[used++] = {i, MEKIK_RUN, take, 0, 0};
        tokens -= take;
      }
      *n = used;
      return MEKIK_OK;
    };
    return t;
  }();
  return scheduler;
}

Setup setup_of(std::vector<std::uint64_t> windows, std::uint32_t slots) {
  Setup setup;
  setup.own_scheduler = &table();
  setup.keeping_cache = true;
  setup.block_tokens = 16;
  setup.max_tokens = 64;
  setup.windows = std::move(windows);
  setup.blocks.assign(setup.windows.size(), 60);
  setup.slots = slots;
  return setup;
}

}  // namespace

TEST_CASE("a waiting prompt is told to be known as far as it then is") {
  const std::vector<Setup> kinds{setup_of({0}, 0), setup_of({0, 24}, 0), setup_of({0}, 40), setup_of({}, 200)};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    for (const std::size_t length : {5u, 16u, 17u, 50u, 150u}) {
      Watcher seen;
      watcher = &seen;
      Bench bench{kinds[kind]};
      const auto ask = [&](const std::vector<std::int32_t>& prompt) {
        CAPTURE(kind, length, prompt.size());
        const auto id = *bench.submit(request_of(prompt, 20));
        bench.run();
        CHECK(seen.known.at(id) == bench.answer(id).usage.cached_tokens);
        return bench.answer(id);
      };
      const auto prompt = prompt_of(length, 6);
      CHECK(ask(prompt).usage.cached_tokens == 0);
      const auto second = ask(prompt);
      CHECK(second.usage.cached_tokens == length - 1);
      auto turn = prompt;
      turn.insert(turn.end(), second.tokens.begin(), second.tokens.end());
      turn.push_back(5);
      CHECK(ask(turn).usage.cached_tokens == length + 19);
      turn[length / 2] ^= 1;
      ask(turn);
    }
  }
}

TEST_CASE("what is known of a waiting prompt follows what the cache keeps meanwhile") {
  Watcher seen;
  watcher = &seen;
  Setup setup = setup_of({0}, 0);
  setup.blocks = {12};
  Bench bench{setup};
  const auto prompt = prompt_of(60, 8);
  const auto first = *bench.submit(request_of(prompt, 4));
  seen.most = 1;  // the second waits for the first
  const auto second = *bench.submit(request_of(prompt, 4));
  const auto third = *bench.submit(request_of(prompt_of(50, 9), 4));
  bench.step();
  CHECK(seen.known[second] == 0);
  CHECK(seen.known[third] == 0);
  bench.step();
  CHECK(seen.known[second] >= 48);
  CHECK(seen.known[second] < 60);
  CHECK(seen.known[third] == 0);
  bench.loop->cancel(first);
  bench.loop->cancel(second);
  bench.run();
  // One that needs nearly all blocks pushes it out while another waits for it.
  const auto big = *bench.submit(request_of(prompt_of(170, 10), 4));
  const auto again = *bench.submit(request_of(prompt, 4));
  bench.step();
  CHECK(seen.known[again] >= 48);
  bench.step();
  bench.step();
  bench.step();
  CHECK(seen.known[again] < 48);
  bench.run();
  CHECK(bench.answer(big).finish == engine::Finish::length);
  CHECK(bench.answer(again).finish == engine::Finish::length);
}

TEST_CASE("another tenant's prompt and one whose tokens are scored are not told to be known") {
  Watcher seen;
  watcher = &seen;
  Bench bench{setup_of({0}, 0)};
  auto request = request_of(prompt_of(60, 8), 4);
  request.salt = 1;
  REQUIRE(bench.submit(request));
  bench.run();
  const auto same = *bench.submit(request);
  request.salt = 2;
  const auto other = *bench.submit(request);
  request.salt = 1;
  request.score_prompt = true;
  const auto scored = *bench.submit(request);
  bench.step();
  CHECK(seen.known[same] == 59);
  CHECK(seen.known[other] == 0);
  CHECK(seen.known[scored] == 0);
  bench.run();
}
