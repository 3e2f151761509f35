#include <cmath>
#include <cstring>
#include <limits>

#include "pack/pack.hpp"

namespace mekik::cpu {

namespace {

template <class T>
T at(const void* p, std::uint64_t index) {
  T x;
  std::memcpy(&x, static_cast<const char*>(p) + index * sizeof(T), sizeof x);
  return x;
}

float from_bits(std::uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

float from_f16(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 0x3FFu;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(mantissa), -24), from_bits(sign | 0x3F800000u));
  if (exponent == 31) return from_bits(sign | 0x7F800000u | (mantissa << 13) | (mantissa != 0 ? 0x400000u : 0u));
  return from_bits(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// E4M3: bias 7, no infinity, NaN is all ones. E5M2: as IEEE. UE4M3: E4M3 without a sign; 0x7F is NaN.
float from_e4m3(std::uint8_t x) {
  const float sign = (x & 0x80u) != 0 ? -1.0F : 1.0F;
  const int exponent = (x >> 3) & 15, mantissa = x & 7;
  if (exponent == 15 && mantissa == 7) return std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
  return sign *
         (exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9) : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10));
}

float from_e8m0(std::uint8_t x, int bias) { return std::ldexp(1.0F, static_cast<int>(x) - bias); }

}  // namespace

std::uint32_t bytes_of(std::uint32_t num) {
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

float widen(std::uint32_t num, const void* p, std::uint64_t index) {
  switch (num) {
    case MEKIK_F16:
      return from_f16(at<std::uint16_t>(p, index));
    case MEKIK_BF16:
      return from_bits(static_cast<std::uint32_t>(at<std::uint16_t>(p, index)) << 16);
    case MEKIK_E8M0: {
      const auto x = at<std::uint8_t>(p, index);
      return x == 255 ? std::numeric_limits<float>::quiet_NaN() : from_e8m0(x, 127);
    }
    case MEKIK_E8M0_HALF:
      return from_e8m0(at<std::uint8_t>(p, index), 128);
    case MEKIK_UE4M3:
      return from_e4m3(at<std::uint8_t>(p, index) & 0x7Fu);
    case MEKIK_E4M3:
      return from_e4m3(at<std::uint8_t>(p, index));
    case MEKIK_E5M2:
      return from_f16(static_cast<std::uint16_t>(at<std::uint8_t>(p, index) << 8));
    case MEKIK_I8:
      return at<std::int8_t>(p, index);
    case MEKIK_U8:
      return at<std::uint8_t>(p, index);
    case MEKIK_I16:
      return at<std::int16_t>(p, index);
    case MEKIK_I32:
      return static_cast<float>(at<std::int32_t>(p, index));
    case MEKIK_F64:
      return static_cast<float>(at<double>(p, index));
    case MEKIK_I64:
      return static_cast<float>(at<std::int64_t>(p, index));
    default:
      return at<float>(p, index);
  }
}

}  // namespace mekik::cpu
