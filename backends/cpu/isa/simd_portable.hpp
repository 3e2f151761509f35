// 16 lanes as arrays: the definition of what the other levels compute, for machines without AVX2 and as the truth in tests.
// max and min, the rounding, and the trees of sums are written out so that every level gives the same bits.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "isa/inline.hpp"

#define MK_SLOW __attribute__((noinline))
#define MK_LANES for (int i = 0; i < 16; ++i)

namespace mekik::cpu::MEKIK_CPU_LEVEL {

struct V {
  static constexpr int kIntColumns = 2, kFloatColumns = 4;
  struct F {
    float v[16];
  };
  struct I {
    std::int32_t v[16];
  };
  struct Bytes {
    std::uint8_t v[64];
  };
  struct Mask {
    bool v[16];
  };
  struct Quad {
    std::int8_t v[4];
  };

  template <class Out, class Op>
  MK_INLINE static Out each(Op op) {
    Out r;
    MK_LANES r.v[i] = op(i);
    return r;
  }
  MK_INLINE static F zero() { return set1(0.0F); }
  MK_INLINE static F set1(float x) {
    return each<F>([&](int) { return x; });
  }
  MK_INLINE static F load(const float* p) {
    return each<F>([&](int i) { return p[i]; });
  }
  MK_INLINE static void store(float* p, F x) { MK_LANES p[i] = x.v[i]; }
  MK_INLINE static F add(F x, F y) {
    return each<F>([&](int i) { return x.v[i] + y.v[i]; });
  }
  MK_INLINE static F sub(F x, F y) {
    return each<F>([&](int i) { return x.v[i] - y.v[i]; });
  }
  MK_INLINE static F mul(F x, F y) {
    return each<F>([&](int i) { return x.v[i] * y.v[i]; });
  }
  MK_INLINE static F div(F x, F y) {
    return each<F>([&](int i) { return x.v[i] / y.v[i]; });
  }
  MK_INLINE static F sqrt(F x) {
    return each<F>([&](int i) { return __builtin_sqrtf(x.v[i]); });
  }
  MK_SLOW static F fma(F x, F y, F z) {
    return each<F>([&](int i) { return __builtin_fmaf(x.v[i], y.v[i], z.v[i]); });
  }
  MK_SLOW static F fnma(F x, F y, F z) {
    return each<F>([&](int i) { return __builtin_fmaf(-x.v[i], y.v[i], z.v[i]); });
  }
  MK_INLINE static F max(F x, F y) {
    return each<F>([&](int i) { return x.v[i] > y.v[i] ? x.v[i] : y.v[i]; });
  }
  MK_INLINE static F min(F x, F y) {
    return each<F>([&](int i) { return x.v[i] < y.v[i] ? x.v[i] : y.v[i]; });
  }
  MK_INLINE static F bit_and(F x, F y) {
    const I a = as_int(x), b = as_int(y);
    return as_float(each<I>([&](int i) { return a.v[i] & b.v[i]; }));
  }
  MK_INLINE static F bit_or(F x, F y) {
    const I a = as_int(x), b = as_int(y);
    return as_float(each<I>([&](int i) { return a.v[i] | b.v[i]; }));
  }
  MK_INLINE static Mask less(F x, F y) {
    return each<Mask>([&](int i) { return x.v[i] < y.v[i]; });
  }
  MK_INLINE static F select(Mask m, F x, F y) {
    return each<F>([&](int i) { return m.v[i] ? x.v[i] : y.v[i]; });
  }

  MK_INLINE static float half(std::uint16_t h) {
    const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 0x3FFu;
    std::uint32_t bits;
    float f;
    if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
      f = static_cast<float>(mantissa) * 0x1p-24F;
      std::memcpy(&bits, &f, 4);
      bits |= sign;
    } else if (exponent == 31) {  // a signalling NaN becomes quiet, as the hardware does
      bits = sign | 0x7F800000u | (mantissa << 13) | (mantissa != 0 ? 0x400000u : 0u);
    } else {
      bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
    }
    std::memcpy(&f, &bits, 4);
    return f;
  }
  MK_INLINE static std::uint16_t to_half(float x) {  // to nearest even
    std::uint32_t bits;
    std::memcpy(&bits, &x, 4);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    bits &= 0x7FFFFFFFu;
    if (bits > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u | ((bits >> 13) & 0x3FFu));
    if (bits >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);
    if (bits < 0x38800000u) {  // below 2^-14: a multiple of 2^-24
      float f;
      std::memcpy(&f, &bits, 4);
      return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(std::lrintf(f * 0x1p24F)));
    }
    return static_cast<std::uint16_t>(sign | ((bits - 0x38000000u + 0xFFFu + ((bits >> 13) & 1u)) >> 13));
  }
  MK_SLOW static F load_f16(const std::uint16_t* p) {
    return each<F>([&](int i) { return half(p[i]); });
  }
  MK_SLOW static F load_bf16(const std::uint16_t* p) {
    return as_float(each<I>([&](int i) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(p[i]) << 16); }));
  }
  MK_INLINE static void store_f16(std::uint16_t* p, F x) { MK_LANES p[i] = to_half(x.v[i]); }

  MK_INLINE static I set1i(std::int32_t x) {
    return each<I>([&](int) { return x; });
  }
  MK_INLINE static I addi(I x, I y) {
    return each<I>(
        [&](int i) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(x.v[i]) + static_cast<std::uint32_t>(y.v[i])); });
  }
  MK_INLINE static I subi(I x, I y) {
    return each<I>(
        [&](int i) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(x.v[i]) - static_cast<std::uint32_t>(y.v[i])); });
  }
  MK_SLOW static I muli(I x, I y) {
    return each<I>(
        [&](int i) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(x.v[i]) * static_cast<std::uint32_t>(y.v[i])); });
  }
  MK_INLINE static I andi(I x, I y) {
    return each<I>([&](int i) { return x.v[i] & y.v[i]; });
  }
  MK_INLINE static I xori(I x, I y) {
    return each<I>([&](int i) { return x.v[i] ^ y.v[i]; });
  }
  template <int N>
  MK_INLINE static I shl(I x) {
    return each<I>([&](int i) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(x.v[i]) << N); });
  }
  template <int N>
  MK_INLINE static I shr(I x) {
    return each<I>([&](int i) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(x.v[i]) >> N); });
  }
  template <int N>
  MK_INLINE static I sar(I x) {
    return each<I>([&](int i) { return x.v[i] >> N; });
  }
  MK_SLOW static F to_float(I x) {
    return each<F>([&](int i) { return static_cast<float>(x.v[i]); });
  }
  MK_SLOW static I round(F x) {  // to nearest even; INT_MIN where the hardware says so
    return each<I>([&](int i) {
      return x.v[i] >= -2147483648.0F && x.v[i] < 2147483648.0F ? static_cast<std::int32_t>(std::lrintf(x.v[i])) : INT32_MIN;
    });
  }
  MK_INLINE static F as_float(I x) {
    F r;
    std::memcpy(&r, &x, sizeof r);
    return r;
  }
  MK_INLINE static I as_int(F x) {
    I r;
    std::memcpy(&r, &x, sizeof r);
    return r;
  }
  MK_SLOW static I load_i8(const std::uint8_t* p) {
    return each<I>([&](int i) { return static_cast<std::int8_t>(p[i]); });
  }
  MK_SLOW static I load_u8(const std::uint8_t* p) {
    return each<I>([&](int i) { return p[i]; });
  }
  MK_INLINE static void storei(std::int32_t* p, I x) { MK_LANES p[i] = x.v[i]; }
  MK_SLOW static F gather(const float* table, I index) {
    return each<F>([&](int i) { return table[index.v[i]]; });
  }
  using Table16 = F;
  MK_INLINE static Table16 load_table(const float* table) { return load(table); }
  MK_SLOW static F lookup(const Table16& table, I index) {
    return each<F>([&](int i) { return table.v[index.v[i] & 15]; });
  }

  template <class Op>
  MK_INLINE static Bytes each_byte(Op op) {
    Bytes r;
    for (int i = 0; i < 64; ++i) r.v[i] = static_cast<std::uint8_t>(op(i));
    return r;
  }
  MK_SLOW static Bytes load_bytes(const std::uint8_t* p) {
    Bytes r;
    std::memcpy(r.v, p, 64);
    return r;
  }
  MK_SLOW static Bytes set_bytes(std::uint8_t x) {
    return each_byte([&](int) { return x; });
  }
  MK_SLOW static Bytes and_bytes(const Bytes& x, const Bytes& y) {
    return each_byte([&](int i) { return x.v[i] & y.v[i]; });
  }
  MK_SLOW static Bytes or_bytes(const Bytes& x, const Bytes& y) {
    return each_byte([&](int i) { return x.v[i] | y.v[i]; });
  }
  template <int N>
  MK_SLOW static Bytes shift_bytes(const Bytes& x) {
    if constexpr (N >= 0) return each_byte([&](int i) { return x.v[i] >> N; });
    else return each_byte([&](int i) { return x.v[i] << -N; });
  }
  MK_SLOW static Bytes lookup(const std::uint8_t* table16, const Bytes& index) {
    return each_byte([&](int i) { return table16[index.v[i] & 15]; });
  }
  MK_INLINE static I as_int(Bytes x) {
    I r;
    std::memcpy(&r, &x, sizeof r);
    return r;
  }
  MK_INLINE static Quad quad(const std::int8_t* p) {
    Quad r;
    std::memcpy(r.v, p, 4);
    return r;
  }

  // Out of line: inlined into the fully unrolled kernels these loops take the compiler minutes.
  template <class Byte>
  static __attribute__((noinline)) void multiply_add(const Bytes& w, const Quad& q, I& sum) {
    MK_LANES for (int j = 0; j < 4; ++j) sum.v[i] += static_cast<Byte>(w.v[4 * i + j]) * q.v[j];
  }
  template <int Bits>
  struct Dot {
    I sum;
    template <int kIndex, bool kLast>
    MK_INLINE void add(const Bytes& w, const Quad& q) {
      if constexpr (kIndex == 0) sum = set1i(0);
      multiply_add<std::uint8_t>(w, q, sum);
    }
  };
  struct SignedCodes {
    Bytes w;
  };
  MK_INLINE static SignedCodes signed_codes(Bytes w) { return {w}; }
  struct SignedDot {
    I sum;
    template <int kIndex, bool kLast>
    MK_INLINE void add(const SignedCodes& c, const Quad& q) {
      if constexpr (kIndex == 0) sum = set1i(0);
      multiply_add<std::int8_t>(c.w, q, sum);
    }
  };
  MK_INLINE static I signed_sum(I sum, std::int32_t) { return sum; }

  // Activations of 15 bits beside codes of 8 (FineCodes): four consecutive k are 8 bytes, here as they are.
  MK_INLINE static void store_fine(std::uint8_t* p, I x) {  // 16 integers in -16256..16256
    MK_LANES {
      const auto v = static_cast<std::int16_t>(x.v[i]);
      std::memcpy(p + 2 * i, &v, 2);
    }
  }
  struct FineCodes {
    std::int16_t w[64];
  };
  template <bool kSigned>
  MK_SLOW static FineCodes fine_codes(const Bytes& w) {
    FineCodes c;
    for (int i = 0; i < 64; ++i) c.w[i] = kSigned ? static_cast<std::int8_t>(w.v[i]) : w.v[i];
    return c;
  }
  struct FineDot {
    I total;
    MK_INLINE void clear() { total = set1i(0); }
    MK_SLOW void add(const FineCodes& c, const std::uint8_t* q) {
      std::int16_t x[4];
      std::memcpy(x, q, sizeof x);
      MK_LANES for (int j = 0; j < 4; ++j) total.v[i] += c.w[4 * i + j] * x[j];
    }
    MK_INLINE I sum() const { return total; }
  };
  static constexpr int kFineColumns = 2;

  // Lane i of a pair (i, i + kHalf) takes the sum, lane i + kHalf the difference.
  template <int kHalf>
  MK_SLOW static F butterfly(F x) {
    return each<F>([&](int i) { return (i & kHalf) == 0 ? x.v[i] + x.v[i + kHalf] : x.v[i - kHalf] - x.v[i]; });
  }

  MK_INLINE static float reduce_add(F x) {
    for (int half_width = 8; half_width > 0; half_width /= 2)
      for (int i = 0; i < half_width; ++i) x.v[i] = x.v[i] + x.v[i + half_width];
    return x.v[0];
  }
  MK_INLINE static float reduce_max(F x) {
    for (int half_width = 8; half_width > 0; half_width /= 2)
      for (int i = 0; i < half_width; ++i) x.v[i] = x.v[i] > x.v[i + half_width] ? x.v[i] : x.v[i + half_width];
    return x.v[0];
  }
  MK_INLINE static std::int32_t reduce_addi(I x) {
    std::int32_t s = 0;
    MK_LANES s += x.v[i];
    return s;
  }
  MK_INLINE static void store_i8(std::int8_t* p, I x) {
    MK_LANES p[i] = static_cast<std::int8_t>(x.v[i] < -128 ? -128 : x.v[i] > 127 ? 127 : x.v[i]);
  }
};

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
#undef MK_LANES
#undef MK_SLOW
