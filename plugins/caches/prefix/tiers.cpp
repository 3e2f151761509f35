#include "tiers.hpp"

#include <algorithm>
#include <chrono>
#include <mekik/plugin.hpp>

namespace mekik::prefix_cache {

namespace {

constexpr std::uint64_t kDiskNsPerMiB = 1'000'000, kDiskNs = 200'000;  // of a disk that reads a gigabyte a second
constexpr std::uint64_t kMemoryNsPerMiB = 200'000;
constexpr std::uint64_t kSaidEveryNs = 60'000'000'000, kQuietNs = 10'000'000'000;

std::uint64_t now() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

}  // namespace

bool Memory::has(const mekik_key& key, std::uint64_t& bytes) const {
  const std::lock_guard lock{mutex_};
  const auto at = places_.find(key);
  if (at == places_.end()) return false;
  bytes = at->second->bytes.size();
  return true;
}

void Memory::write(const mekik_key& key, const void* data, std::uint64_t bytes) {
  if (bytes > budget_) return;
  const auto* from = static_cast<const std::uint8_t*>(data);
  Value value{key, {from, from + bytes}};
  const std::lock_guard lock{mutex_};
  if (const auto at = places_.find(key); at != places_.end()) {
    used_ -= at->second->bytes.size();
    values_.erase(at->second);
    places_.erase(at);
  }
  while (used_ + bytes > budget_) {
    used_ -= values_.back().bytes.size();
    places_.erase(values_.back().key);
    values_.pop_back();
  }
  values_.push_front(std::move(value));
  places_[key] = values_.begin();
  used_ += bytes;
}

bool Memory::read(const mekik_key& key, void* data, std::uint64_t bytes) {
  const std::lock_guard lock{mutex_};
  const auto at = places_.find(key);
  if (at == places_.end() || at->second->bytes.size() != bytes) return false;
  std::memcpy(data, at->second->bytes.data(), bytes);
  values_.splice(values_.begin(), values_, at->second);
  return true;
}

Tiers::Tiers(std::uint64_t memory, const std::string& folder, std::uint64_t disk_budget) {
  if (memory > 0) memory_.emplace(memory);
  if (folder.empty()) return;
  disk_.emplace(folder, disk_budget);
  for (Worker* worker : {&reader_, &writer_}) worker->thread = std::thread{[this, worker] { work(*worker); }};
}

Tiers::~Tiers() {
  {
    const std::lock_guard lock{mutex_};
    stop_ = true;
  }
  changed_.notify_all();
  for (Worker* worker : {&reader_, &writer_})
    if (worker->thread.joinable()) worker->thread.join();
}

bool Tiers::has(const mekik_key& key, std::uint64_t& bytes, std::uint64_t& expected_ns) const {
  if (memory_ && memory_->has(key, bytes)) {
    expected_ns = (bytes >> 20) * kMemoryNsPerMiB;
    return true;
  }
  if (!disk_ || !disk_->has(key, bytes)) return false;
  expected_ns = (bytes >> 20) * kDiskNsPerMiB + kDiskNs;
  return true;
}

void Tiers::store(const mekik_key& key, const void* data, std::uint64_t bytes, mekik_done done, void* ctx) {
  if (!any()) throw Error{MEKIK_E_UNSUPPORTED, "this cache has no slower tier"};
  if (bytes == 0) throw Error{MEKIK_E_INVALID, "a value has at least one byte"};
  if (memory_) memory_->write(key, data, bytes);
  if (disk_) add(writer_, {key, data, nullptr, bytes, done, ctx});
  else done(ctx, MEKIK_OK);
}

void Tiers::fetch(const mekik_key& key, void* data, std::uint64_t bytes, mekik_done done, void* ctx) {
  if (memory_ && memory_->read(key, data, bytes)) done(ctx, MEKIK_OK);
  else if (disk_) add(reader_, {key, nullptr, data, bytes, done, ctx});
  else done(ctx, MEKIK_E_INVALID);
}

// A job that has not begun is over at once; one that has takes no longer than the disk does.
void Tiers::cancel(void* ctx) {
  for (Worker* worker : {&reader_, &writer_}) {
    std::optional<Job> job;
    {
      const std::lock_guard lock{mutex_};
      const auto at = std::find_if(worker->jobs.begin(), worker->jobs.end(), [&](const Job& j) { return j.ctx == ctx; });
      if (at == worker->jobs.end()) continue;
      job = *at;
      worker->jobs.erase(at);
    }
    job->done(job->ctx, MEKIK_E_CANCELLED);
  }
}

void Tiers::add(Worker& worker, const Job& job) {
  {
    const std::lock_guard lock{mutex_};
    worker.jobs.push_back(job);
  }
  changed_.notify_all();
}

void Tiers::work(Worker& worker) {
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !worker.jobs.empty(); });
    if (worker.jobs.empty()) return;
    const Job job = worker.jobs.front();
    worker.jobs.pop_front();
    const bool skip = stop_ || (job.to == nullptr && now() < quiet_until_ns_);
    lock.unlock();
    job.done(job.ctx, skip ? std::int32_t{MEKIK_E_CANCELLED} : run(job));
    lock.lock();
  }
}

mekik_status Tiers::run(const Job& job) {
  try {
    if (job.to != nullptr) disk_->read(job.key, job.to, job.bytes);
    else disk_->write(job.key, job.from, job.bytes);
    return MEKIK_OK;
  } catch (const Error& e) {
    if (e.code != MEKIK_E_INVALID) said(e.what());
    const std::lock_guard lock{mutex_};
    if (job.to == nullptr) quiet_until_ns_ = now() + kQuietNs;
    return e.code;
  } catch (const std::exception& e) {
    said(e.what());
    return MEKIK_E_INTERNAL;
  }
}

void Tiers::said(const std::string& text) {
  const std::lock_guard lock{mutex_};
  if (said_ns_ != 0 && now() - said_ns_ < kSaidEveryNs) return;
  said_ns_ = now();
  write_log(3, "cache", text + "; what it would have held is computed again");
}

}  // namespace mekik::prefix_cache
