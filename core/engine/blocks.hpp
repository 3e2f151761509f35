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
  const std::vector<std::int32_t>& free_ids() const { return free_; }
  const std::vector<std::int32_t>& pending_ids() const { return pending_; }

 private:
  friend class Lease;
  void release(std::int32_t id);
  struct Entry {
    std::uint32_t references = 0;
    std::uint64_t ticket = 0;  // the last call that named it
  };
  std::vector<Entry> entries_;
  std::vector<std::int32_t> free_, pending_;
  std::uint64_t completed_ = 0;
};

}  // namespace mekik::engine
