// Half precision and bfloat16, bit by bit: the same on every compiler and machine.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

namespace mekik_blocks {

inline float from_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline std::uint32_t to_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float f16_to_f32(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = half & 0x7FFFu;
  if (magnitude >= 0x7C00u) return from_bits(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
  if (magnitude >= 0x0400u) return from_bits(sign | ((magnitude << 13) + (112u << 23)));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return from_bits(sign | to_bits(subnormal));
}

// Round to nearest, ties to even; too large becomes infinity, NaN stays NaN.
inline std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = to_bits(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);
  if (magnitude >= 0x38800000u) {
    const std::uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
    return static_cast<std::uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
  }
  // A subnormal half is a multiple of 2^-24; adding 0.5 leaves that multiple, rounded, in the low bits.
  const std::uint32_t aligned = to_bits(from_bits(magnitude) + 0.5f) - to_bits(0.5f);
  return static_cast<std::uint16_t>(sign | aligned);
}

inline float bf16_to_f32(std::uint16_t value) { return from_bits(static_cast<std::uint32_t>(value) << 16); }

inline std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = to_bits(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

inline std::uint16_t load_u16(const std::uint8_t* from) { return static_cast<std::uint16_t>(from[0] | (from[1] << 8)); }
inline void store_u16(std::uint8_t* to, std::uint16_t value) {
  to[0] = static_cast<std::uint8_t>(value);
  to[1] = static_cast<std::uint8_t>(value >> 8);
}
inline float load_f16(const std::uint8_t* from) { return f16_to_f32(load_u16(from)); }
inline void store_f16(std::uint8_t* to, float value) { store_u16(to, f32_to_f16(value)); }

}  // namespace mekik_blocks
