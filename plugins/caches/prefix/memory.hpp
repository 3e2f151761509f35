// Values in the host's memory.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>
#include <cstring>
#include <list>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace mekik::prefix_cache {

struct KeyHash {
  std::size_t operator()(const mekik_key& key) const {
    std::size_t out = 0;
    std::memcpy(&out, key.sha256, sizeof out);
    return out;
  }
};
struct SameKey {
  bool operator()(const mekik_key& a, const mekik_key& b) const { return std::memcmp(&a, &b, sizeof a) == 0; }
};

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
  const std::uint64_t budget_;
  mutable std::mutex mutex_;
  std::list<Value> values_;  // the last used first
  std::unordered_map<mekik_key, std::list<Value>::iterator, KeyHash, SameKey> places_;
  std::uint64_t used_ = 0;
};

}  // namespace mekik::prefix_cache
