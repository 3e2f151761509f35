// The threads of the cpu backend: every task once, phases in order, whoever is late.
#include "team.hpp"

#include <sched.h>

#include <random>

#include "support/catch.hpp"

using namespace mekik;

namespace {

struct Work {
  std::vector<cpu::Phase> phases;
  std::vector<std::atomic<std::uint32_t>> done, times;  // tasks done by phase; how often each task ran
  std::vector<std::uint32_t> first;                     // of a phase in `times`
  std::atomic<std::uint32_t> early{0}, strangers{0};
  std::uint32_t threads;
  bool yields;

  Work(std::uint32_t n_phases, std::uint32_t n_threads, unsigned seed)
      : done(n_phases), times(n_phases * 40), threads{n_threads}, yields{seed % 2 == 0} {
    std::mt19937 random{seed};
    for (std::uint32_t p = 0; p < n_phases; ++p) {
      phases.push_back({random() % 3 == 0 ? std::uint32_t{1} : static_cast<std::uint32_t>(random() % 40), run, p});
      first.push_back(p * 40);
    }
  }
  static void run(void* ctx, std::uint32_t phase, std::uint32_t task, std::uint32_t thread) {
    auto& w = *static_cast<Work*>(ctx);
    if (phase > 0 && w.done[phase - 1] != w.phases[phase - 1].tasks) ++w.early;
    if (thread >= w.threads) ++w.strangers;
    if (w.yields && task % 7 == 3) sched_yield();
    ++w.times[w.first[phase] + task];
    ++w.done[phase];
  }
};

}  // namespace

TEST_CASE("a team says when each phase ended", "[cpu]") {
  for (const std::uint32_t threads : {1u, 3u}) {
    Work w{50, threads, threads};
    for (cpu::Phase& phase : w.phases) phase.tasks %= 5;  // some have none, many have one
    cpu::Team team{threads};
    const auto now = [] {
      return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds{1});
    };
    std::vector<std::uint64_t> ends(w.phases.size());
    std::uint64_t before = now();
    team.run(w.phases.data(), static_cast<std::uint32_t>(w.phases.size()), &w, ends.data());
    const std::uint64_t after = now();
    for (const std::uint64_t end : ends) {
      CHECK(before <= end);
      before = end;
    }
    CHECK(before <= after);
  }
}

TEST_CASE("a team runs every task once, and a phase after the one before") {
  for (const std::uint32_t threads : {1u, 2u, 3u, 8u}) {
    cpu::Team team{threads};
    for (unsigned seed = 0; seed < 60; ++seed) {
      Work work{seed % 5 == 0 ? 1u : 1 + seed * 3, threads, seed};
      team.run(work.phases.data(), static_cast<std::uint32_t>(work.phases.size()), &work);
      std::uint32_t wrong = 0;
      for (std::size_t p = 0; p < work.phases.size(); ++p)
        for (std::uint32_t t = 0; t < 40; ++t) wrong += work.times[work.first[p] + t] != (t < work.phases[p].tasks ? 1 : 0);
      CAPTURE(threads, seed);
      CHECK(wrong == 0);
      CHECK(work.early == 0);
      CHECK(work.strangers == 0);
    }
    team.run(nullptr, 0, nullptr);
  }
}

TEST_CASE("a run may have more phases than one word counts") {
  cpu::Team team{2};
  Work work{17000, 2, 5};
  team.run(work.phases.data(), 17000, &work);
  CHECK(work.early == 0);
  std::uint32_t unfinished = 0;
  for (std::size_t p = 0; p < 17000; ++p) unfinished += work.done[p] != work.phases[p].tasks;
  CHECK(unfinished == 0);
}
