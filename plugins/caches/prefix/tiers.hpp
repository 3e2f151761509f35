// Where values go beyond the backend's memory: the host's memory, then a directory.
#pragma once
#include <mekik/plugin.h>

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "disk.hpp"

namespace mekik::prefix_cache {

// The longest unused go when the budget is used up. Thread: any.
class Memory {
 public:
  explicit Memory(std::uint64_t budget) : budget_{budget} {}
  bool has(const mekik_key& key, std::uint64_t& bytes) const;
  void write(const mekik_key& key, const void* data, std::uint64_t bytes);
  bool read(const mekik_key& key, void* data, std::uint64_t bytes);

 private:
  struct Value {
    mekik_key key;
    std::vector<std::uint8_t> bytes;
  };
  struct Hash {
    std::size_t operator()(const mekik_key& key) const {
      std::size_t out = 0;
      std::memcpy(&out, key.sha256, sizeof out);
      return out;
    }
  };
  struct Same {
    bool operator()(const mekik_key& a, const mekik_key& b) const { return std::memcmp(&a, &b, sizeof a) == 0; }
  };
  const std::uint64_t budget_;
  mutable std::mutex mutex_;
  std::list<Value> values_;  // the last used first
  std::unordered_map<mekik_key, std::list<Value>::iterator, Hash, Same> places_;
  std::uint64_t used_ = 0;
};

// As mekik_cache_policy says of has, store, fetch and cancel. The directory is read and written by a thread each.
class Tiers {
 public:
  Tiers(std::uint64_t memory, const std::string& folder, std::uint64_t disk_budget);
  ~Tiers();
  bool any() const { return memory_ || disk_; }
  bool has(const mekik_key& key, std::uint64_t& bytes, std::uint64_t& expected_ns) const;
  void store(const mekik_key& key, const void* data, std::uint64_t bytes, mekik_done done, void* ctx);
  void fetch(const mekik_key& key, void* data, std::uint64_t bytes, mekik_done done, void* ctx);
  void cancel(void* ctx);

 private:
  struct Job {
    mekik_key key;
    const void* from;
    void* to;
    std::uint64_t bytes;
    mekik_done done;
    void* ctx;
  };
  // A thread that takes one kind of jobs in their order.
  struct Worker {
    std::deque<Job> jobs;
    std::thread thread;
  };
  void add(Worker& worker, const Job& job);
  void work(Worker& worker);
  mekik_status run(const Job& job);
  void said(const std::string& text);

  std::optional<Memory> memory_;
  std::optional<Disk> disk_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  Worker reader_, writer_;
  std::uint64_t said_ns_ = 0, quiet_until_ns_ = 0;  // under mutex_; after a failure nothing is written for a while
};

}  // namespace mekik::prefix_cache
