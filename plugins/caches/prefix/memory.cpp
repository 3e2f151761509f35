#include "memory.hpp"

namespace mekik::prefix_cache {

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

}  // namespace mekik::prefix_cache
