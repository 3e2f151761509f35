// A thread that takes jobs in their order.
#pragma once
#include <mekik/plugin.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace mekik::prefix_cache {

// What a store writes to several places is over when all of them are.
struct Writing {
  std::uint32_t left;
  mekik_status status;
};

struct Job {
  enum class Kind { read, write, ask, copy } kind;  // copy: a write that nobody waits for
  mekik_key key{};
  const void* from = nullptr;
  void* to = nullptr;
  std::uint64_t bytes = 0;
  mekik_done done = nullptr;
  void* ctx = nullptr;
  std::shared_ptr<Writing> writing{};                 // shared: by the jobs of one store
  std::shared_ptr<std::vector<std::uint8_t>> held{};  // of a copy; shared, so that a Job can be copied
  const mekik_key* keys = nullptr;                    // of a question
  std::uint32_t n = 0;
  bool chain = false;
  char* out = nullptr;  // mekik_known, with their stride
  std::size_t out_step = 0;
};

// `run` takes each job; what is left at the end gets `drop`. Both end the job.
class Worker {
 public:
  using Run = std::function<void(Job&)>;
  void start(Run run, Run drop) {
    drop_ = std::move(drop);
    thread_ = std::thread{[this, run = std::move(run)] { work(run); }};
  }
  ~Worker() { stop(); }
  void stop() {
    {
      const std::lock_guard lock{mutex_};
      stop_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  void add(Job job) {
    {
      const std::lock_guard lock{mutex_};
      bytes_ += job.bytes;
      if (job.kind == Job::Kind::ask) jobs_.push_front(std::move(job));  // somebody waits for the answer to decide something
      else jobs_.push_back(std::move(job));
    }
    changed_.notify_all();
  }
  // Of the jobs that have not begun.
  std::optional<Job> take(void* ctx) {
    const std::lock_guard lock{mutex_};
    const auto at = std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& j) { return j.ctx == ctx && j.kind != Job::Kind::copy; });
    if (at == jobs_.end()) return {};
    Job job = std::move(*at);
    bytes_ -= job.bytes;
    jobs_.erase(at);
    return job;
  }
  std::uint64_t bytes() const {
    const std::lock_guard lock{mutex_};
    return bytes_;
  }

 private:
  void work(const Run& run) {
    std::unique_lock lock{mutex_};
    while (true) {
      changed_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      bytes_ -= job.bytes;
      const bool over = stop_;
      lock.unlock();
      (over ? drop_ : run)(job);
      lock.lock();
    }
  }
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::uint64_t bytes_ = 0;
  bool stop_ = false;
  Run drop_;
  std::thread thread_;
};

}  // namespace mekik::prefix_cache
