#include "team.hpp"

#include <cfenv>
#include <chrono>

namespace mekik::cpu {

namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Waits until `word` is no longer `old`: spins for at most 20 us, then sleeps in the kernel.
void await(const std::atomic<std::uint32_t>& word, std::uint32_t old) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 64; ++i) {
    if (word.load(std::memory_order_acquire) != old) return;
    relax();
  }
  const auto end = Clock::now() + std::chrono::microseconds{20};
  while (Clock::now() < end)
    for (int i = 0; i < 16; ++i) {
      if (word.load(std::memory_order_acquire) != old) return;
      relax();
    }
  word.wait(old, std::memory_order_acquire);
}

}  // namespace

Team::Team(std::uint32_t threads) : size_{threads} {
  for (std::uint32_t t = 1; t < threads; ++t) workers_.emplace_back([this, t] { serve(t); });
}

Team::~Team() {
  stop_ = true;
  started_.fetch_add(1);
  started_.notify_all();
  for (std::thread& w : workers_) w.join();
}

void Team::serve(std::uint32_t thread) {
  std::fesetenv(FE_DFL_ENV);
  for (std::uint32_t seen = 0;;) {
    await(started_, seen);
    seen = started_.load(std::memory_order_acquire);
    if (stop_) return;
    work(thread);
  }
}

void Team::barrier() {
  const std::uint32_t generation = generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    generation_.notify_all();
  } else {
    await(generation_, generation);
  }
}

void Team::work(std::uint32_t thread) {
  // Copies: after the last barrier the caller may already be preparing its next run.
  const Phase* const phases = phases_;
  const std::uint32_t n = n_;
  void* const ctx = ctx_;
  for (std::uint32_t p = 0; p < n;) {
    if (phases[p].tasks <= 1) {
      for (; p < n && phases[p].tasks <= 1; ++p)
        if (thread == 0 && phases[p].tasks == 1) phases[p].run(ctx, phases[p].index, 0, 0);
    } else {
      const Phase& phase = phases[p++];
      for (std::uint32_t i = next_.fetch_add(1, std::memory_order_relaxed); i < phase.tasks;
           i = next_.fetch_add(1, std::memory_order_relaxed))
        phase.run(ctx, phase.index, i, thread);
    }
    barrier();
  }
}

void Team::run(const Phase* phases, std::uint32_t n, void* ctx) {
  if (size_ == 1) {
    for (std::uint32_t p = 0; p < n; ++p)
      for (std::uint32_t i = 0; i < phases[p].tasks; ++i) phases[p].run(ctx, phases[p].index, i, 0);
    return;
  }
  if (n == 0) return;
  phases_ = phases;
  n_ = n;
  ctx_ = ctx;
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_all();
  work(0);
}

}  // namespace mekik::cpu
