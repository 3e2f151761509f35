// Numbered things of a backend that sequences share: the KV blocks of one group, or the state slots.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace mekik::engine {

class Pool;

// One reference to a block. Dropping the last one gives the block back. [engine thread]
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept : pool_{std::exchange(other.pool_, nullptr)}, id_{std::exchange(other.id_, -1)} {}
  Lease& operator=(Lease&& other) noexcept {
    if (this != &other) {
      reset();
      pool_ = std::exchange(other.pool_, nullptr);
      id_ = std::exchange(other.id_, -1);
    }
    return *this;
  }
  ~Lease() { reset(); }
  Lease share() const;  // a further reference to the same block
  void reset();
  std::int32_t id() const { return id_; }  // -1: none
  explicit operator bool() const { return pool_ != nullptr; }

 private:
  friend class Pool;
  friend class Kept;
  Lease(Pool* pool, std::int32_t id) : pool_{pool}, id_{id} {}
  Pool* pool_ = nullptr;
  std::int32_t id_ = -1;
};

// Ids 0 .. size-1. Each is free, pending (nobody holds it, but a submitted call that names it has not completed) or held. The pool
// must outlive its leases.
class Pool {
 public:
  explicit Pool(std::uint32_t size);
  Lease take();                                       // an empty lease when none is free
  void named(std::int32_t id, std::uint64_t ticket);  // a call with this ticket reads or writes the block
  void completed(std::uint64_t ticket);               // this one and all before it
  std::uint32_t size() const { return static_cast<std::uint32_t>(entries_.size()); }
  std::uint32_t free() const { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t pending() const { return static_cast<std::uint32_t>(pending_.size()); }
  std::uint32_t held() const { return size() - free() - pending(); }
  std::uint32_t references(std::int32_t id) const { return entries_[static_cast<std::size_t>(id)].references; }
  std::uint32_t kept() const { return kept_; }            // held by a Kept
  std::uint32_t only_kept() const { return only_kept_; }  // and by nobody else
  bool only_kept(std::int32_t id) const { return alone(entries_[static_cast<std::size_t>(id)]); }
  const std::vector<std::int32_t>& free_ids() const { return free_; }
  const std::vector<std::int32_t>& pending_ids() const { return pending_; }

 private:
  friend class Lease;
  friend class Kept;
  struct Entry {
    std::uint32_t references = 0, kept = 0;  // kept: how many of them are Kept
    std::uint64_t ticket = 0;                // the last call that named it
  };
  static bool alone(const Entry& entry) { return entry.kept > 0 && entry.references == entry.kept; }
  void change(std::int32_t id, int references, int kept);
  void release(std::int32_t id);
  std::vector<Entry> entries_;
  std::vector<std::int32_t> free_, pending_;
  std::uint64_t completed_ = 0;
  std::uint32_t kept_ = 0, only_kept_ = 0;
};

// A lease of somebody who gives it up when others need the block: the pool counts what could be had so. [engine thread]
class Kept {
 public:
  Kept() = default;
  explicit Kept(Lease lease) : lease_{std::move(lease)} { mark(1); }
  Kept(Kept&&) noexcept = default;
  Kept& operator=(Kept&& other) noexcept {
    if (this != &other) {
      reset();
      lease_ = std::move(other.lease_);
    }
    return *this;
  }
  ~Kept() { reset(); }
  void reset() {
    mark(-1);
    lease_.reset();
  }
  Lease share() const { return lease_.share(); }
  Lease release() {  // it is no longer only kept
    mark(-1);
    return std::move(lease_);
  }
  bool alone() const { return lease_ && lease_.pool_->references(lease_.id()) == 1; }
  std::int32_t id() const { return lease_.id(); }
  explicit operator bool() const { return static_cast<bool>(lease_); }

 private:
  void mark(int kept) const {
    if (lease_) lease_.pool_->change(lease_.id_, 0, kept);
  }
  Lease lease_;
};

}  // namespace mekik::engine
