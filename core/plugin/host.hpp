// What a library sees of the engine: mekik_host and its services.
#pragma once
#include <mekik/plugin.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "metrics/metrics.hpp"
#include "plugin/tasks.hpp"

namespace mekik::plugin {

// Memory that one library asked for, by tag. [any thread]
class MemoryAccount {
 public:
  MemoryAccount(std::string library, metrics::Metrics& metrics) : library_{std::move(library)}, metrics_{metrics} {}
  void* alloc(std::size_t bytes, std::size_t align, const char* tag);  // nullptr when refused
  void release(void* memory);
  std::size_t bytes() const;  // not released yet
  // Has the kernel back what was given out with memory now, not when it is first touched; contents stay. Until `stop`.
  void make_resident(const std::atomic<bool>& stop) const;

 private:
  struct Block {
    std::size_t bytes, align;
    std::string tag;
  };
  mekik_metric* gauge_of(const std::string& tag);

  std::string library_;
  metrics::Metrics& metrics_;
  mutable std::mutex mutex_;
  std::map<void*, Block> blocks_;
  std::map<std::string, std::size_t> by_tag_;
  std::size_t total_ = 0;
};

// One per library, at a fixed address until its deinit.
class Host {
 public:
  Host(std::string library, metrics::Metrics& metrics, Tasks& tasks);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  const mekik_host* raw() const { return &raw_; }

  std::string library;
  metrics::Metrics& metrics;
  Tasks& tasks;
  MemoryAccount memory;

 private:
  mekik_host raw_{};
};

// The memory of the library that has this host, as MemoryAccount::make_resident. None of it may be released meanwhile.
void make_resident(const mekik_host* host, const std::atomic<bool>& stop);

}  // namespace mekik::plugin
