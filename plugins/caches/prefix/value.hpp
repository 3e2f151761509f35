// What stands in front of a value outside of this process, so that it is known whole and as the one that was asked for.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace mekik::prefix_cache {

inline constexpr char kMagic[8] = {'m', 'e', 'k', 'i', 'k', 'c', 'v', '1'};

struct ValueHead {
  char magic[8];
  mekik_key key;
  std::uint64_t bytes;
  XXH128_canonical_t check;  // of the value
};

inline ValueHead head_of(const mekik_key& key, const void* data, std::uint64_t bytes) {
  ValueHead head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.key = key;
  head.bytes = bytes;
  XXH128_canonicalFromHash(&head.check, XXH3_128bits(data, bytes));
  return head;
}

inline bool is_whole(const ValueHead& head, const mekik_key& key, const void* data, std::uint64_t bytes) {
  const ValueHead wanted = head_of(key, data, bytes);
  return std::memcmp(&head, &wanted, sizeof head) == 0;
}

}  // namespace mekik::prefix_cache
