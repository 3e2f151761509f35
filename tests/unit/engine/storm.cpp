// Random arrivals, lengths, cancels, shortages and schedulers that break the rules: every finished answer equals the request alone, no
// block is lost, nothing waits for ever; and the loop's calls from several threads at once.
#include <thread>

#include "support/storm.hpp"

using namespace mekik;
using namespace mekik::test;
using engine::Finish;

namespace {

// Returns how often a sequence lost its blocks on the way.
double storm(const Setup& setup, const Expected& expected, unsigned seed) {
  Random random{seed};
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Bench bench{setup};
  std::vector<Sent> sent;
  for (int turn = 0; turn < 200; ++turn) {
    for (std::size_t arrivals = below(3) == 0 ? below(4) : 0; arrivals > 0; --arrivals) {
      const std::size_t which = below(expected.size());
      const auto id = bench.submit(expected.request(which));
      INFO(id.status().text);
      REQUIRE(id);
      sent.push_back({*id, which});
    }
    if (!sent.empty() && below(12) == 0) {
      Sent& gone = sent[below(sent.size())];
      gone.cancelled = true;
      bench.loop->cancel(gone.id);
    }
    bench.step();
  }
  bench.run();
  check_answers(bench, expected, sent);
  check_balance(bench, setup.keeping_cache || !setup.cache_options.empty());
  return bench.metric("mekik_num_preemptions_total");
}

// A scheduler that plans at random within the rules and, one time in three, outside of them. `this` of the bench serves as its state.
Random rogue_random{1};
mekik_status rogue_plan(mekik_sched*, const mekik_step_view* view, mekik_choice* out, std::uint32_t, std::uint32_t* n) {
  const auto below = [](std::uint32_t m) { return static_cast<std::uint32_t>(rogue_random() % m); };
  for (std::uint32_t i = 0; i < *n; ++i) {
    const bool wild = below(3) == 0;
    out[i] = {wild ? below(2 * *n) : i, wild ? below(9) : (below(8) == 0 ? std::uint32_t{MEKIK_DROP} : std::uint32_t{MEKIK_RUN}),
              wild ? static_cast<std::uint32_t>(rogue_random()) : 1 + below(view->max_tokens), wild ? below(100) : 0, 0};
    if (out[i].action == MEKIK_REFUSE) out[i].action = MEKIK_RUN;  // an honest refusal ends a request
  }
  if (below(10) == 0) *n = static_cast<std::uint32_t>(rogue_random());  // more than there was room for
  else if (below(10) == 0) *n = 0;
  return MEKIK_OK;
}

}  // namespace

TEST_CASE("a storm of arrivals, cancels and shortages changes no answer and loses no block") {
  const Setup plain;
  const Expected expected{plain};
  unsigned seed = 1;
  double preemptions = 0;
  for (const auto* scheduler : {"continuous", "static", "priority", "fair", "deadline"})
    for (const std::uint32_t blocks : {32u, 60u, 256u})  // 32: the longest request fits alone
      for (const std::uint32_t max_tokens : {4u, 16u, 64u})
        for (const bool keeping : {false, true}) {
          Setup setup = plain;
          setup.scheduler = scheduler;
          setup.blocks = {blocks};
          setup.max_tokens = max_tokens;
          setup.keeping_cache = keeping;
          CAPTURE(scheduler, blocks, max_tokens, keeping);
          preemptions += storm(setup, expected, seed++);
        }
  CHECK(preemptions > 10);
}

TEST_CASE("a storm over windows and recurrent states changes no answer") {
  Setup windows;
  windows.windows = {0, 9};
  windows.blocks = {40, 24};
  Setup states;
  states.slots = 3;
  states.blocks = {40};
  Setup only_states = states;
  only_states.blocks = {};
  only_states.windows = {};
  Setup both = windows;
  both.slots = 4;
  for (const Setup& setup : {windows, states, only_states, both}) {
    const Expected expected{setup};
    for (const bool keeping : {false, true})
      for (const std::uint32_t more_slots : {0u, 1u, 20u}) {
        Setup kept = setup;
        kept.keeping_cache = keeping;
        kept.forgetting_cache = !keeping && more_slots > 0;
        if (setup.slots > 0) kept.slots += more_slots;
        for (unsigned seed = 100; seed < 106; ++seed) {
          CAPTURE(setup.slots, setup.blocks.size(), keeping, more_slots, seed);
          storm(kept, expected, seed);
        }
      }
  }
}

// With the cache that is used, and beginnings in common: blocks of windows go before those of other groups and come again, in part or
// whole.
TEST_CASE("a storm over windows with common beginnings changes no answer") {
  Setup setup;
  setup.windows = {0, 9};
  setup.blocks = {64, 40};
  setup.max_rows = 16;
  setup.cache_options = "victims = \"lru\"";
  const Expected expected{setup, requests_with_common_beginnings()};
  for (const auto* scheduler : {"continuous", "priority", "fair"})
    for (unsigned seed = 400; seed < 600; ++seed) {
      setup.scheduler = scheduler;
      CAPTURE(scheduler, seed);
      storm(setup, expected, seed);
    }
}

// Drafters that are right half of the time, never, and by what was said before.
TEST_CASE("a storm of drafts beside shortages, windows and recurrent states changes no answer") {
  Setup plain, windows, states;
  windows.windows = {0, 9};
  windows.blocks = {40, 24};
  states.slots = 5;
  states.blocks = {40};
  double drafted = 0, accepted = 0, preemptions = 0;
  unsigned seed = 300;
  for (const Setup& kind : {plain, windows, states}) {
    const Expected expected{kind};
    Oracle oracle{0.5};
    for (std::size_t i = 0; i < expected.size(); ++i)
      for (std::uint32_t k = 0; k < expected.request(i).n; ++k) oracle.learn(expected.request(i).prompt, expected.answer(i, k));
    for (const auto* scheduler : {"continuous", "static"})
      for (const int which : {0, 1, 2, 3, 4})
        for (const std::uint32_t blocks : {32u, 256u}) {
          OwnDrafter knowing{oracle}, lying{Liar{seed}};
          Setup setup = kind;
          setup.scheduler = scheduler;
          setup.blocks[0] = blocks;
          setup.keeping_cache = blocks > 32;
          setup.adaptive_drafts = which == 3;
          if (which == 2) setup.drafter_name = "ngram", setup.drafter_options = "min = 1";
          else if (which == 4) setup.drafter_name = "model", setup.drafter_options = "model = \"draft.gguf\"", setup.draft_model = true;
          else (which == 1 ? lying : knowing).use_in(setup);
          CAPTURE(scheduler, which, blocks);
          preemptions += storm(setup, expected, seed++);
          for (const OwnDrafter* drafter : {&knowing, &lying}) {
            CHECK(drafter->faults == std::vector<std::string>{});
            CHECK(drafter->known.empty());
          }
          drafted += static_cast<double>(knowing.run);
          accepted += static_cast<double>(knowing.accepted);
        }
  }
  CHECK(drafted > 1000);
  CHECK(accepted > 400);
  CHECK(preemptions > 10);
}

TEST_CASE("a scheduler that breaks every rule of its plan harms no answer") {
  static const mekik_scheduler rogue{sizeof(mekik_scheduler), 0, nullptr, [](mekik_sched*) {}, rogue_plan, nullptr};
  Setup setup;
  setup.own_scheduler = &rogue;
  setup.blocks = {60};
  const Expected expected{Setup{}};
  for (unsigned seed = 200; seed < 210; ++seed) storm(setup, expected, seed);
  setup.drafter_name = "ngram";
  for (unsigned seed = 210; seed < 215; ++seed) storm(setup, expected, seed);
}

TEST_CASE("requests come, go and are looked at from several threads") {
  const Expected expected{Setup{}};
  Setup setup;
  setup.blocks = {64};
  Bench bench{setup};
  std::atomic<bool> stop{false};
  std::thread turner{[&] {
    while (!stop)
      if (bench.loop->step() != engine::Loop::Turn::ran) bench.loop->sleep(1'000'000);
  }};
  std::atomic<int> wrong{0}, finished{0}, refused{0};
  const auto client = [&](unsigned seed) {
    Random random{seed};
    for (int i = 0; i < 40; ++i) {
      const std::size_t which = random() % expected.size();
      const auto& request = expected.request(which);
      const auto tokens = std::make_shared<std::vector<std::vector<std::int32_t>>>(request.n);  // shared: events outlive this turn
      const auto id = bench.loop->submit(request, [&, which, tokens](const engine::Event& e) {
        auto& mine = (*tokens)[e.index];
        for (const auto& t : e.tokens) mine.push_back(t.id);
        if (e.finish == Finish::none) return;
        if (e.finish != Finish::cancelled && mine != expected.answer(which, e.index).tokens) ++wrong;
        ++finished;
      });
      if (!id) {
        ++refused;
        continue;
      }
      finished -= static_cast<int>(request.n);  // back to 0 when all have ended
      if (random() % 4 == 0) bench.loop->cancel(*id);
      bench.loop->stats();
    }
  };
  std::vector<std::thread> clients;
  for (unsigned seed = 1; seed <= 3; ++seed) clients.emplace_back(client, seed);
  for (auto& c : clients) c.join();
  CHECK(bench.loop->wait_until_done(60'000'000'000));
  stop = true;
  bench.loop->wake();
  turner.join();
  CHECK(finished == 0);
  CHECK(wrong == 0);
  CHECK(refused == 0);
  CHECK(bench.loop->check_invariants().ok());
  check_balance(bench, false);
}
