// The backend's own threads: they run the tasks of one phase after another, and sleep between steps.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace mekik::cpu {

// Some tasks that may run in any order and on any thread; the next phase starts when all of them are done.
struct Phase {
  std::uint32_t tasks;  // fewer than 2^24
  void (*run)(void* ctx, std::uint32_t phase, std::uint32_t task, std::uint32_t thread);
  std::uint32_t index;
};

// A phase ends with its tasks, not with the arrival of every thread: a thread whose core was taken away holds nobody up unless it is in
// the middle of a task. Thread: run() from one thread at a time; the caller is thread 0 of the team.
class Team {
 public:
  explicit Team(std::uint32_t threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  std::uint32_t size() const { return size_; }
  // Runs phase after phase. A phase of one task runs on the thread that ended the one before. `run` must not throw. `ends`, unless it is
  // nullptr: [n] when each phase ended, in nanoseconds of the steady clock.
  void run(const Phase* phases, std::uint32_t n, void* ctx, std::uint64_t* ends = nullptr);

 private:
  void run_some(const Phase* phases, std::uint32_t n, void* ctx, std::uint64_t* ends);
  void serve(std::uint32_t thread);
  bool take_one(std::uint64_t state, std::uint32_t thread);
  void open(std::uint32_t phase, std::uint32_t thread);

  std::uint32_t size_;
  std::vector<std::thread> workers_;
  // Of the run in progress; who holds a task may read them.
  const Phase* phases_ = nullptr;
  std::uint32_t n_ = 0, run_ = 0;
  void* ctx_ = nullptr;
  std::uint64_t* ends_ = nullptr;
  // Which run, which of its phases, and how many of that phase's tasks nobody has taken; each on a line of its own.
  alignas(128) std::atomic<std::uint64_t> state_{0};
  alignas(128) std::atomic<std::uint32_t> done_{0};
};

}  // namespace mekik::cpu
