// mekik/numbers.hpp - numbers as files and states store them (mekik_num), bit by bit: the same on every compiler and machine. Rounding is
// to nearest, ties to even. Thread: any.
#pragma once
#include <mekik/plugin.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace mekik {

namespace numbers {
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class T>
T load(const void* array, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(array) + i * sizeof(T), sizeof(T));
  return value;
}
template <class T>
inline void store(void* array, std::size_t i, T value) {
  std::memcpy(static_cast<char*>(array) + i * sizeof(T), &value, sizeof(T));
}
}  // namespace numbers

inline float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = (std::uint32_t{bits} & 0x8000u) << 16, rest = (std::uint32_t{bits} & 0x7FFFu) << 13;
  if (rest >= 0x0F800000u) {  // infinite or NaN, the payload kept and made quiet, as the conversion of the processor does
    return std::bit_cast<float>(sign | 0x7F800000u | rest | (rest > 0x0F800000u ? 0x00400000u : 0u));
  }
  const float value = std::bit_cast<float>(rest) * 0x1p112f;  // exact, subnormals included
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

inline float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

// Infinite from 65520 on; a NaN stays one.
inline std::uint16_t to_f16(float value) {
  const auto all = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (all >> 16) & 0x8000u;
  std::uint32_t x = all & 0x7FFFFFFFu;
  if (x > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u | ((x >> 13) & 0x3FFu));
  if (x >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);
  // Below 2^-14: adding 0.5, whose unit in the last place is 2^-24, rounds to the subnormal's unit.
  if (x < 0x38800000u)
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(std::bit_cast<float>(x) + 0.5f) - 0x3F000000u));
  x += 0xFFFu + ((x >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((x - 0x38000000u) >> 13));
}

// A NaN stays one.
inline std::uint16_t to_bf16(float value) {
  const auto x = std::bit_cast<std::uint32_t>(value);
  if ((x & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((x >> 16) | 0x40u);
  return static_cast<std::uint16_t>((x + 0x7FFFu + ((x >> 16) & 1u)) >> 16);
}

// 2^(x - 127), 255 is NaN; and 2^(x - 128), 255 too.
inline float from_e8m0(std::uint8_t bits) { return bits == 255 ? numbers::kNaN : std::ldexp(1.0f, bits - 127); }
inline float from_e8m0_half(std::uint8_t bits) { return std::ldexp(1.0f, bits - 128); }

// OCP: 0x7f and 0xff are NaN, no infinities. Unsigned: the lower seven bits of E4M3, 0x7f is NaN.
inline float from_e4m3(std::uint8_t bits) {
  const int exponent = (bits >> 3) & 15;
  const int fraction = bits & 7;
  const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
  if (exponent == 15 && fraction == 7) return numbers::kNaN;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -9);
  return sign * std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
}

inline float from_e5m2(std::uint8_t bits) { return from_f16(static_cast<std::uint16_t>(bits << 8)); }
inline float from_ue4m3(std::uint8_t bits) { return from_e4m3(bits & 0x7F); }

// Bytes of one number; 0: not a mekik_num.
inline std::size_t num_size(std::uint32_t num) {
  switch (num) {
    case MEKIK_F64:
    case MEKIK_I64:
      return 8;
    case MEKIK_F32:
    case MEKIK_I32:
      return 4;
    case MEKIK_F16:
    case MEKIK_BF16:
    case MEKIK_I16:
      return 2;
    case MEKIK_E8M0:
    case MEKIK_E8M0_HALF:
    case MEKIK_UE4M3:
    case MEKIK_E4M3:
    case MEKIK_E5M2:
    case MEKIK_I8:
    case MEKIK_U8:
      return 1;
    default:
      return 0;
  }
}

// Element i of an array of `num`, as F32 (exact for all types up to 24 bits). The array need not be aligned.
inline float load_num(std::uint32_t num, const void* array, std::size_t i) {
  switch (num) {
    case MEKIK_F32:
      return numbers::load<float>(array, i);
    case MEKIK_F16:
      return from_f16(numbers::load<std::uint16_t>(array, i));
    case MEKIK_BF16:
      return from_bf16(numbers::load<std::uint16_t>(array, i));
    case MEKIK_E8M0:
      return from_e8m0(numbers::load<std::uint8_t>(array, i));
    case MEKIK_E8M0_HALF:
      return from_e8m0_half(numbers::load<std::uint8_t>(array, i));
    case MEKIK_UE4M3:
      return from_ue4m3(numbers::load<std::uint8_t>(array, i));
    case MEKIK_E4M3:
      return from_e4m3(numbers::load<std::uint8_t>(array, i));
    case MEKIK_E5M2:
      return from_e5m2(numbers::load<std::uint8_t>(array, i));
    case MEKIK_I8:
      return static_cast<float>(numbers::load<std::int8_t>(array, i));
    case MEKIK_U8:
      return static_cast<float>(numbers::load<std::uint8_t>(array, i));
    case MEKIK_I16:
      return static_cast<float>(numbers::load<std::int16_t>(array, i));
    case MEKIK_I32:
      return static_cast<float>(numbers::load<std::int32_t>(array, i));
    case MEKIK_I64:
      return static_cast<float>(numbers::load<std::int64_t>(array, i));
    case MEKIK_F64:
      return static_cast<float>(numbers::load<double>(array, i));
    default:
      return numbers::kNaN;
  }
}

// F32, F16 and BF16 only: what a KV state is stored in, and what `cast` rounds to.
inline bool is_storable(std::uint32_t num) { return num == MEKIK_F32 || num == MEKIK_F16 || num == MEKIK_BF16; }

inline void store_num(std::uint32_t num, void* array, std::size_t i, float value) {
  if (num == MEKIK_F32) numbers::store(array, i, value);
  else if (num == MEKIK_F16) numbers::store(array, i, to_f16(value));
  else numbers::store(array, i, to_bf16(value));
}

inline float round_num(std::uint32_t num, float value) {
  if (num == MEKIK_F16) return from_f16(to_f16(value));
  if (num == MEKIK_BF16) return from_bf16(to_bf16(value));
  return value;
}

}  // namespace mekik
