#include "plugin/tasks.hpp"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace mekik::plugin {

namespace {

struct Job {
  void (*fn)(void*, std::uint32_t);
  void* ctx;
  std::uint32_t n;
  std::atomic<std::uint32_t> next{0};

  void work() {
    for (std::uint32_t i = next.fetch_add(1, std::memory_order_relaxed); i < n; i = next.fetch_add(1, std::memory_order_relaxed))
      fn(ctx, i);
  }
};

// A task that asks for tasks must not wait for the threads that wait for it.
thread_local bool inside_task = false;

}  // namespace

struct Tasks::Pool {
  std::mutex callers;  // held by the thread whose job the pool runs
  std::mutex mutex;
  std::condition_variable wake, done;
  Job* job = nullptr;  // not nullptr: workers may join
  std::uint64_t generation = 0;
  std::uint32_t active = 0;
  bool stop = false;
  std::vector<std::thread> threads;

  ~Pool() {
    {
      const std::lock_guard lock{mutex};
      stop = true;
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void start(std::uint32_t workers) {
    while (threads.size() < workers) threads.emplace_back([this] { run(); });
  }

  void run() {
    inside_task = true;
    std::uint64_t seen = 0;
    std::unique_lock lock{mutex};
    for (;;) {
      wake.wait(lock, [&] { return stop || (job != nullptr && generation != seen); });
      if (stop) return;
      seen = generation;
      Job& mine = *job;
      ++active;
      lock.unlock();
      std::fesetenv(FE_DFL_ENV);  // each time: an earlier task may have left another mode behind
      mine.work();
      lock.lock();
      if (--active == 0) done.notify_one();
    }
  }

  void run_job(Job& mine) {
    {
      const std::lock_guard lock{mutex};
      job = &mine;
      ++generation;
    }
    wake.notify_all();
    inside_task = true;
    mine.work();
    inside_task = false;
    std::unique_lock lock{mutex};
    job = nullptr;  // from here nobody joins
    done.wait(lock, [&] { return active == 0; });
  }
};

Tasks::Tasks(std::uint32_t width) : pool_{std::make_unique<Pool>()} { set_width(width); }
void Tasks::set_width(std::uint32_t width) { width_ = std::clamp<std::uint32_t>(width, 1, 1024); }
Tasks::~Tasks() = default;

void Tasks::parallel(std::uint32_t n, void (*fn)(void* ctx, std::uint32_t i), void* ctx) {
  std::unique_lock lock{pool_->callers, std::defer_lock};
  if (width_ == 1 || n < 2 || inside_task || !lock.try_lock()) {
    for (std::uint32_t i = 0; i < n; ++i) fn(ctx, i);
    return;
  }
  pool_->start(width_ - 1);
  Job job{fn, ctx, n, {}};
  pool_->run_job(job);
}

}  // namespace mekik::plugin
