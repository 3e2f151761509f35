// The backend's own threads: they run phases together, meet at a barrier between phases, and sleep between steps.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace mekik::cpu {

// Some tasks that may run in any order and on any thread; a barrier follows.
struct Phase {
  std::uint32_t tasks;
  void (*run)(void* ctx, std::uint32_t phase, std::uint32_t task, std::uint32_t thread);
  std::uint32_t index;
};

// Thread: run() from one thread at a time; the caller is thread 0 of the team.
class Team {
 public:
  explicit Team(std::uint32_t threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  std::uint32_t size() const { return size_; }
  // Runs phase after phase; consecutive phases of one task each run on the caller without a barrier. `run` must not throw.
  void run(const Phase* phases, std::uint32_t n, void* ctx);

 private:
  void work(std::uint32_t thread);
  void serve(std::uint32_t thread);
  void barrier();

  std::uint32_t size_;
  std::vector<std::thread> workers_;
  const Phase* phases_ = nullptr;
  std::uint32_t n_ = 0;
  void* ctx_ = nullptr;
  // Each on a line of its own.
  alignas(128) std::atomic<std::uint32_t> next_{0};
  alignas(128) std::atomic<std::uint32_t> arrived_{0};
  alignas(128) std::atomic<std::uint32_t> generation_{0};
  alignas(128) std::atomic<std::uint32_t> started_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace mekik::cpu
