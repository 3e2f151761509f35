// Rows of codes of a head become floats; and the Hadamard matrix that they are behind.
#pragma once
#include "isa/math.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

MK_INLINE float from_bf16(const std::uint8_t* at) {
  std::uint16_t half;
  std::memcpy(&half, at, sizeof half);
  const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

template <int kHalf>
MK_INLINE void turn_lanes(float* x, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; i += 16) V::store(x + i, V::butterfly<kHalf>(V::load(x + i)));
}

// mekik::hadamard.
MK_INLINE std::uint32_t turn_row(float* x, std::uint32_t n) {
  const std::uint32_t part = n & (~n + 1);
  if (part < 16) {
    for (std::uint32_t half = 1; half < part; half *= 2)
      for (std::uint32_t i = 0; i < n; ++i) {
        if ((i & half) != 0) continue;
        const float a = x[i], b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
      }
    return part;
  }
  turn_lanes<1>(x, n);
  turn_lanes<2>(x, n);
  turn_lanes<4>(x, n);
  turn_lanes<8>(x, n);
  for (std::uint32_t half = 16; half < part; half *= 2)
    for (std::uint32_t i = 0; i < n; i += 16) {
      if ((i & half) != 0) continue;
      const V::F a = V::load(x + i), b = V::load(x + i + half);
      V::store(x + i, V::add(a, b));
      V::store(x + i + half, V::sub(a, b));
    }
  return part;
}
// A query meets turned keys, a sum of turned values is turned back: the matrix, divided by its part (a power of two: exact).
MK_INLINE void turn_back(float* x, std::uint32_t n) {
  const float by = 1.0F / static_cast<float>(turn_row(x, n));
  for (std::uint32_t i = 0; i < n; ++i) x[i] *= by;
}

// The n numbers of a packed value (HeadLayout::pack_value); writes a multiple of 16.
MK_INLINE void decode_value(const std::uint8_t* bytes, std::uint32_t bits, float scale, std::uint32_t n, float* x) {
  const V::F by = V::set1(scale);
  for (std::uint32_t i = 0; i < n; i += 16) {
    V::I codes;
    if (bits == 8) {
      codes = V::load_i8(bytes + i);
    } else {
      const V::I both = V::load_u8(bytes + i / 32 * 16);
      codes = V::subi(i % 32 == 0 ? V::andi(both, V::set1i(15)) : V::shr<4>(both), V::set1i(8));
    }
    V::store(x + i, V::mul(V::to_float(codes), by));
  }
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
