// Where values go beyond the backend's memory: the host's memory, a directory, a Redis server. The nearest that has one gives it.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include <mekik/plugin.hpp>

#include "disk.hpp"
#include "memory.hpp"
#include "redis.hpp"
#include "worker.hpp"

namespace mekik::prefix_cache {

struct TierOptions {
  std::uint64_t memory = 0;  // bytes; 0: none
  std::string folder;        // empty: none
  std::uint64_t disk_bytes = 0;
  std::optional<RedisOptions> redis;
};

// As mekik_cache_policy says of has, store, fetch, cancel and ask. The directory and the server are each read and written by a thread of
// their own; memory is at hand at once, and so is what is on its way to the others. Thread: any.
class Tiers {
 public:
  explicit Tiers(const TierOptions& options);
  ~Tiers();
  bool any() const { return memory_ || disk_ || redis_; }
  bool has(const mekik_key& key, std::uint64_t& bytes, std::uint64_t& expected_ns) const;  // without the server
  void store(const mekik_key& key, const void* data, std::uint64_t bytes, mekik_done done, void* ctx);
  void fetch(const mekik_key& key, void* data, std::uint64_t bytes, mekik_done done, void* ctx);
  void ask(std::span<const mekik_key> keys, bool chain, Strided<mekik_known> out, mekik_done done, void* ctx);
  void cancel(void* ctx);

 private:
  // A tier that may fail: what it says, once a minute, how often it failed, what it takes.
  struct Place {
    void say(const std::string& text);
    void fail() const;
    void took(std::uint64_t bytes, std::uint64_t ns);
    std::uint64_t expected_ns(std::uint64_t bytes) const;
    std::mutex mutex;
    std::uint64_t said_ns = 0;
    std::atomic<std::uint64_t> ns_per_mib{0}, least_ns{0};
    mekik_metric *reads = nullptr, *failures = nullptr;
  };
  struct Pending {
    const void* data;
    std::uint64_t bytes;
    void* ctx;
  };
  struct Remotes {
    RedisOptions options;
    std::unique_ptr<Remote> reader, writer;
  };
  void count(Place& place, const char* tier) const;
  bool nearby(const mekik_key& key, void* data, std::uint64_t bytes);
  void read_disk(Job& job);
  void read_redis(Job& job);
  void write_disk(Job& job);
  void write_redis(Job& job);
  void answer(Job& job);
  void look(const Job& job);
  void keep(const Job& job, bool disk);
  template <class Call>
  mekik_status guarded(Place& place, Call&& call);
  void end(Job& job, mekik_status status);

  std::optional<Memory> memory_;
  std::optional<Disk> disk_;
  std::optional<Remotes> redis_;
  Place disk_place_, redis_place_;
  mekik_metric* memory_reads_ = nullptr;
  std::atomic<std::uint64_t> quiet_until_ns_{0};                      // after a failure the directory is not written for a while
  mutable std::mutex mutex_;                                          // of the following, and of Writing
  std::unordered_map<mekik_key, Pending, KeyHash, SameKey> pending_;  // what is being written
  Worker disk_writer_, redis_writer_, disk_reader_, redis_reader_;    // last: they use the rest
};

}  // namespace mekik::prefix_cache
