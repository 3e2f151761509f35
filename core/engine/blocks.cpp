#include "engine/blocks.hpp"

#include <algorithm>
#include <cassert>

namespace mekik::engine {

Lease Lease::share() const {
  if (pool_ == nullptr) return {};
  pool_->change(id_, 1, 0);
  return Lease{pool_, id_};
}

void Lease::reset() {
  if (pool_ != nullptr) pool_->release(id_);
  pool_ = nullptr;
  id_ = -1;
}

Pool::Pool(std::uint32_t size) : entries_(size) {
  free_.reserve(size);
  for (std::uint32_t i = size; i > 0; --i) free_.push_back(static_cast<std::int32_t>(i - 1));
}

Lease Pool::take() {
  if (free_.empty()) return {};
  const std::int32_t id = free_.back();
  free_.pop_back();
  entries_[static_cast<std::size_t>(id)].references = 1;
  return Lease{this, id};
}

void Pool::named(std::int32_t id, std::uint64_t ticket) {
  auto& entry = entries_[static_cast<std::size_t>(id)];
  entry.ticket = std::max(entry.ticket, ticket);
}

void Pool::completed(std::uint64_t ticket) {
  completed_ = std::max(completed_, ticket);
  std::erase_if(pending_, [this](std::int32_t id) {
    if (entries_[static_cast<std::size_t>(id)].ticket > completed_) return false;
    free_.push_back(id);
    return true;
  });
}

void Pool::change(std::int32_t id, int references, int kept) {
  auto& entry = entries_[static_cast<std::size_t>(id)];
  const bool was_kept = entry.kept > 0, was_alone = alone(entry);
  entry.references += static_cast<std::uint32_t>(references);
  entry.kept += static_cast<std::uint32_t>(kept);
  kept_ += static_cast<std::uint32_t>((entry.kept > 0) - was_kept);
  only_kept_ += static_cast<std::uint32_t>(alone(entry) - was_alone);
}

void Pool::release(std::int32_t id) {
  auto& entry = entries_[static_cast<std::size_t>(id)];
  assert(entry.references > 0);
  change(id, -1, 0);
  if (entry.references > 0) return;
  (entry.ticket > completed_ ? pending_ : free_).push_back(id);
}

}  // namespace mekik::engine
