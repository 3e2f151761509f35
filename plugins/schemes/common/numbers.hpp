// Numbers of a block, little-endian and unaligned.
#pragma once
#include <mekik/numbers.hpp>

#include <cstdint>

namespace mekik_blocks {

inline std::uint16_t load_u16(const std::uint8_t* from) { return static_cast<std::uint16_t>(from[0] | (from[1] << 8)); }
inline void store_u16(std::uint8_t* to, std::uint16_t value) {
  to[0] = static_cast<std::uint8_t>(value);
  to[1] = static_cast<std::uint8_t>(value >> 8);
}
inline float load_f16(const std::uint8_t* from) { return mekik::from_f16(load_u16(from)); }
inline void store_f16(std::uint8_t* to, float value) { store_u16(to, mekik::to_f16(value)); }

}  // namespace mekik_blocks
