#include "team.hpp"

#include <algorithm>
#include <cfenv>
#include <chrono>

namespace mekik::cpu {

namespace {

// The word that everybody looks at: run in the upper bits, phase (kOver: the run is over, kStop: no more runs), tasks left to take. A run's
// number makes a word that a late thread still has worthless.
constexpr int kTaskBits = 24, kPhaseBits = 14;
constexpr std::uint32_t kStop = (1u << kPhaseBits) - 1, kOver = kStop - 1;
constexpr std::uint64_t state_of(std::uint32_t run, std::uint32_t phase, std::uint32_t left) {
  return (std::uint64_t{run} << (kPhaseBits + kTaskBits)) | (std::uint64_t{phase} << kTaskBits) | left;
}
constexpr std::uint32_t phase_of(std::uint64_t state) { return static_cast<std::uint32_t>(state >> kTaskBits) & kStop; }
constexpr std::uint32_t left_of(std::uint64_t state) { return static_cast<std::uint32_t>(state) & ((1u << kTaskBits) - 1); }

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// Waits until `word` is no longer `old`: spins for at most 20 us, then sleeps in the kernel.
void await(const std::atomic<std::uint64_t>& word, std::uint64_t old) {
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
  state_.store(state_of(0, kStop, 0));
  state_.notify_all();
  for (std::thread& w : workers_) w.join();
}

void Team::serve(std::uint32_t thread) {
  std::fesetenv(FE_DFL_ENV);
  for (;;) {
    const std::uint64_t state = state_.load(std::memory_order_acquire);
    if (phase_of(state) == kStop) return;
    if (!take_one(state, thread)) await(state_, state);
  }
}

// Takes and runs a task of the open phase; false: there was none left. Whoever ends the last task opens the next phase.
bool Team::take_one(std::uint64_t state, std::uint32_t thread) {
  if (left_of(state) == 0) return false;
  if (!state_.compare_exchange_strong(state, state - 1, std::memory_order_acq_rel)) return true;  // somebody was faster: look again
  const std::uint32_t p = phase_of(state);
  const Phase phase = phases_[p];  // a copy: once the last task is done the caller may take its phases away
  phase.run(ctx_, phase.index, phase.tasks - left_of(state), thread);
  if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == phase.tasks) open(p + 1, thread);
  return true;
}

void Team::open(std::uint32_t p, std::uint32_t thread) {
  if (p > 0 && ends_ != nullptr) ends_[p - 1] = now_ns();
  for (; p < n_ && phases_[p].tasks <= 1; ++p) {
    if (phases_[p].tasks == 1) phases_[p].run(ctx_, phases_[p].index, 0, thread);
    if (ends_ != nullptr) ends_[p] = now_ns();
  }
  done_.store(0, std::memory_order_relaxed);
  state_.store(p < n_ ? state_of(run_, p, phases_[p].tasks) : state_of(run_, kOver, 0), std::memory_order_release);
  state_.notify_all();
}

void Team::run_some(const Phase* phases, std::uint32_t n, void* ctx, std::uint64_t* ends) {
  phases_ = phases;
  n_ = n;
  ctx_ = ctx;
  ends_ = ends;
  ++run_;
  open(0, 0);
  for (;;) {
    const std::uint64_t state = state_.load(std::memory_order_acquire);
    if (phase_of(state) == kOver) return;
    if (!take_one(state, 0)) await(state_, state);
  }
}

void Team::run(const Phase* phases, std::uint32_t n, void* ctx, std::uint64_t* ends) {
  if (size_ == 1) {
    for (std::uint32_t p = 0; p < n; ++p) {
      for (std::uint32_t i = 0; i < phases[p].tasks; ++i) phases[p].run(ctx, phases[p].index, i, 0);
      if (ends != nullptr) ends[p] = now_ns();
    }
    return;
  }
  for (std::uint32_t p = 0; p < n; p += kOver) run_some(phases + p, std::min(n - p, kOver), ctx, ends == nullptr ? nullptr : ends + p);
}

}  // namespace mekik::cpu
