// The host that a plugin is tried with: by the book, but as unlike the engine's as the book allows.
#pragma once
#include <mekik/plugin.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "support/arena.hpp"
#include "support/mode.hpp"

namespace mekik::validate {

// Why this thread's call failed; empty: fail() was not called. Clears it.
struct Failure {
  bool said = false;
  mekik_status code = 0;
  std::string why;
};
Failure take_failure();
void remember_rejection(mekik_str why);

class Host {
 public:
  explicit Host(const Mode& mode);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  const mekik_host* raw() const { return static_cast<const mekik_host*>(data(table_)); }
  void set_mode(const Mode& mode) { mode_ = mode, allocations_ = 0; }
  void end();  // after deinit: from now on every use of it traps

  std::int64_t blocks() const { return blocks_; }
  std::int64_t bytes() const { return bytes_; }
  std::int64_t peak_bytes() const { return peak_; }
  void reset_peak() { peak_ = bytes_.load(); }
  std::uint64_t allocations() const { return allocations_; }
  bool refused() const { return refused_; }
  std::set<std::string> asked() const;  // services

 private:
  struct Service;
  static Host& of(const mekik_host* host);
  const void* find(const char* id);
  void* alloc(std::size_t bytes, std::size_t align);
  void release(void* memory);
  mekik_metric* metric(const char* name, const char* help, const char* labels, bool histogram, const double* bounds, std::uint32_t n);
  void run(std::uint32_t n, void (*fn)(void*, std::uint32_t), void* ctx);
  void make_tables();

  Mode mode_;
  Piece* table_;
  std::vector<Piece*> texts_;
  std::map<std::string, Piece*> services_;
  mutable std::mutex lock_;
  std::map<void*, Piece*> memory_;
  std::map<const void*, std::pair<std::string, Piece*>> metrics_;
  std::set<std::string> asked_;
  std::atomic<std::int64_t> blocks_{0}, bytes_{0}, peak_{0};
  std::atomic<std::uint64_t> allocations_{0};
  std::atomic<bool> refused_{false};
};

bool is_utf8(std::string_view text);

}  // namespace mekik::validate
