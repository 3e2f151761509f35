// What the values of the slower tier look like. Only for tier*.cpp.
#pragma once
#include <cstdint>

namespace mekik::engine::tier {

inline constexpr std::uint64_t kInFlight = std::uint64_t{256} << 20;  // bytes on their way to or from the tier
inline constexpr char kMagic[8] = {'m', 'e', 'k', 'i', 'k', 'k', 'v', '1'};

// In front of every value. Behind it the tokens, then the blocks of the groups in `groups`, or a slot; each begins at a multiple of 64.
struct Head {
  char magic[8];
  std::uint32_t what, n_tokens, groups, n_states;  // n_states: of a note, the tokens of the node after which there are states
  std::uint64_t bytes;                             // of all
  std::uint8_t parent[32];
};

inline std::uint64_t up(std::uint64_t x) { return (x + 63) / 64 * 64; }
inline std::uint64_t body(std::uint64_t n_words) { return up(sizeof(Head) + n_words * sizeof(std::int32_t)); }

}  // namespace mekik::engine::tier
