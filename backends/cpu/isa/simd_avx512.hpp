// 16 lanes as one 512-bit register: AVX-512 F, BW, DQ, VL and VNNI. Each function is one intrinsic where one exists; the arithmetic is that
// of simd_portable.hpp.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "isa/inline.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

struct V {
  static constexpr int kIntColumns = 8, kFloatColumns = 12;
  struct F {
    __m512 v;
  };
  struct I {
    __m512i v;
  };
  struct Bytes {
    __m512i v;
  };
  using Mask = __mmask16;
  struct Quad {
    __m512i v;
  };

  MK_INLINE static F zero() { return {_mm512_setzero_ps()}; }
  MK_INLINE static F set1(float x) { return {_mm512_set1_ps(x)}; }
  MK_INLINE static F load(const float* p) { return {_mm512_loadu_ps(p)}; }
  MK_INLINE static void store(float* p, F x) { _mm512_storeu_ps(p, x.v); }
  MK_INLINE static F add(F x, F y) { return {_mm512_add_ps(x.v, y.v)}; }
  MK_INLINE static F sub(F x, F y) { return {_mm512_sub_ps(x.v, y.v)}; }
  MK_INLINE static F mul(F x, F y) { return {_mm512_mul_ps(x.v, y.v)}; }
  MK_INLINE static F div(F x, F y) { return {_mm512_div_ps(x.v, y.v)}; }
  MK_INLINE static F sqrt(F x) { return {_mm512_sqrt_ps(x.v)}; }
  MK_INLINE static F fma(F x, F y, F z) { return {_mm512_fmadd_ps(x.v, y.v, z.v)}; }
  MK_INLINE static F fnma(F x, F y, F z) { return {_mm512_fnmadd_ps(x.v, y.v, z.v)}; }
  MK_INLINE static F max(F x, F y) { return {_mm512_max_ps(x.v, y.v)}; }
  MK_INLINE static F min(F x, F y) { return {_mm512_min_ps(x.v, y.v)}; }
  MK_INLINE static F bit_and(F x, F y) { return {_mm512_and_ps(x.v, y.v)}; }
  MK_INLINE static F bit_or(F x, F y) { return {_mm512_or_ps(x.v, y.v)}; }
  MK_INLINE static Mask less(F x, F y) { return _mm512_cmp_ps_mask(x.v, y.v, _CMP_LT_OQ); }
  MK_INLINE static F select(Mask m, F x, F y) { return {_mm512_mask_blend_ps(m, y.v, x.v)}; }

  MK_INLINE static F load_f16(const std::uint16_t* p) { return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))}; }
  MK_INLINE static F load_bf16(const std::uint16_t* p) {
    const __m512i w = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(w, 16))};
  }
  MK_INLINE static void store_f16(std::uint16_t* p, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT));
  }

  MK_INLINE static I set1i(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
  MK_INLINE static I addi(I x, I y) { return {_mm512_add_epi32(x.v, y.v)}; }
  MK_INLINE static I subi(I x, I y) { return {_mm512_sub_epi32(x.v, y.v)}; }
  MK_INLINE static I muli(I x, I y) { return {_mm512_mullo_epi32(x.v, y.v)}; }
  MK_INLINE static I andi(I x, I y) { return {_mm512_and_si512(x.v, y.v)}; }
  MK_INLINE static I xori(I x, I y) { return {_mm512_xor_si512(x.v, y.v)}; }
  template <int N>
  MK_INLINE static I shl(I x) {
    return {_mm512_slli_epi32(x.v, N)};
  }
  template <int N>
  MK_INLINE static I shr(I x) {
    return {_mm512_srli_epi32(x.v, N)};
  }
  template <int N>
  MK_INLINE static I sar(I x) {
    return {_mm512_srai_epi32(x.v, N)};
  }
  MK_INLINE static F to_float(I x) { return {_mm512_cvtepi32_ps(x.v)}; }
  MK_INLINE static I round(F x) { return {_mm512_cvtps_epi32(x.v)}; }
  MK_INLINE static F as_float(I x) { return {_mm512_castsi512_ps(x.v)}; }
  MK_INLINE static I as_int(F x) { return {_mm512_castps_si512(x.v)}; }
  MK_INLINE static I load_i8(const std::uint8_t* p) { return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))}; }
  MK_INLINE static I load_u8(const std::uint8_t* p) { return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))}; }
  MK_INLINE static void storei(std::int32_t* p, I x) { _mm512_storeu_si512(p, x.v); }
  MK_INLINE static F gather(const float* table, I index) { return {_mm512_i32gather_ps(index.v, table, 4)}; }
  // Sixteen numbers in a register, by an index below 16.
  using Table16 = F;
  MK_INLINE static Table16 load_table(const float* table) { return load(table); }
  MK_INLINE static F lookup(const Table16& table, I index) { return {_mm512_permutexvar_ps(index.v, table.v)}; }

  MK_INLINE static Bytes load_bytes(const std::uint8_t* p) { return {_mm512_loadu_si512(p)}; }
  MK_INLINE static Bytes set_bytes(std::uint8_t x) { return {_mm512_set1_epi8(static_cast<char>(x))}; }
  MK_INLINE static Bytes and_bytes(Bytes x, Bytes y) { return {_mm512_and_si512(x.v, y.v)}; }
  MK_INLINE static Bytes or_bytes(Bytes x, Bytes y) { return {_mm512_or_si512(x.v, y.v)}; }
  template <int N>
  MK_INLINE static Bytes shift_bytes(Bytes x) {
    if constexpr (N > 0) return {_mm512_srli_epi16(x.v, N)};
    if constexpr (N < 0) return {_mm512_slli_epi16(x.v, -N)};
    return x;
  }
  MK_INLINE static Bytes lookup(const std::uint8_t* table16, Bytes index) {
    const __m512i t = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table16)));
    return {_mm512_shuffle_epi8(t, index.v)};
  }
  MK_INLINE static I as_int(Bytes x) { return {x.v}; }
  MK_INLINE static Quad quad(const std::int8_t* p) {
    std::int32_t x;
    std::memcpy(&x, p, 4);
    return {_mm512_set1_epi32(x)};
  }

  template <int Bits>
  struct Dot {
    I sum;
    template <int kIndex, bool kLast>
    MK_INLINE void add(Bytes w, Quad q) {
      if constexpr (kIndex == 0) sum = {_mm512_setzero_si512()};
      sum = {_mm512_dpbusd_epi32(sum.v, w.v, q.v)};
    }
  };
  // vpdpbusd wants unsigned codes: w + 128, and 128 times the sum of the activations is taken away at the end.
  struct SignedCodes {
    Bytes w;
  };
  MK_INLINE static SignedCodes signed_codes(Bytes w) { return {{_mm512_xor_si512(w.v, _mm512_set1_epi8(-128))}}; }
  struct SignedDot {
    I sum;
    template <int kIndex, bool kLast>
    MK_INLINE void add(SignedCodes c, Quad q) {
      if constexpr (kIndex == 0) sum = {_mm512_setzero_si512()};
      sum = {_mm512_dpbusd_epi32(sum.v, c.w.v, q.v)};
    }
  };
  MK_INLINE static I signed_sum(I sum, std::int32_t activations) { return subi(sum, set1i(128 * activations)); }

  // Activations of 15 bits beside codes of 8 (FineCodes): four consecutive k are 8 bytes, here the digits of 128 * high + low.
  MK_INLINE static void store_fine(std::uint8_t* p, I x) {  // 16 integers in -16256..16256
    const __m512i high = _mm512_srai_epi32(_mm512_add_epi32(x.v, _mm512_set1_epi32(64)), 7);
    const __m128i h = _mm512_cvtepi32_epi8(high), l = _mm512_cvtepi32_epi8(_mm512_sub_epi32(x.v, _mm512_slli_epi32(high, 7)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_unpacklo_epi32(h, l));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 16), _mm_unpackhi_epi32(h, l));
  }
  using FineCodes = Bytes;
  template <bool kSigned>
  MK_INLINE static FineCodes fine_codes(Bytes w) {
    if constexpr (kSigned) return signed_codes(w).w;
    return w;
  }
  struct FineDot {
    __m512i high, low;
    MK_INLINE void clear() { high = low = _mm512_setzero_si512(); }
    MK_INLINE void add(const FineCodes& c, const std::uint8_t* q) {
      std::int32_t h, l;
      std::memcpy(&h, q, 4);
      std::memcpy(&l, q + 4, 4);
      high = _mm512_dpbusd_epi32(high, c.v, _mm512_set1_epi32(h));
      low = _mm512_dpbusd_epi32(low, c.v, _mm512_set1_epi32(l));
    }
    MK_INLINE I sum() const { return {_mm512_add_epi32(_mm512_slli_epi32(high, 7), low)}; }
  };
  static constexpr int kFineColumns = 8;

  // Lane i of a pair (i, i + kHalf) takes the sum, lane i + kHalf the difference.
  template <int kHalf>
  MK_INLINE static F butterfly(F x) {
    const __m512 y = kHalf == 8   ? _mm512_shuffle_f32x4(x.v, x.v, 0x4E)
                     : kHalf == 4 ? _mm512_shuffle_f32x4(x.v, x.v, 0xB1)
                     : kHalf == 2 ? _mm512_permute_ps(x.v, 0x4E)
                                  : _mm512_permute_ps(x.v, 0xB1);
    constexpr __mmask16 kUpper = kHalf == 8 ? 0xFF00 : kHalf == 4 ? 0xF0F0 : kHalf == 2 ? 0xCCCC : 0xAAAA;
    return {_mm512_mask_sub_ps(_mm512_add_ps(x.v, y), kUpper, y, x.v)};
  }

  MK_INLINE static float reduce_add(F x) {
    const __m256 e = _mm256_add_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
    const __m128 q = _mm_add_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps(d, d, 1)));
  }
  MK_INLINE static float reduce_max(F x) {
    const __m256 e = _mm256_max_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
    const __m128 q = _mm_max_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    const __m128 d = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(d, _mm_shuffle_ps(d, d, 1)));
  }
  MK_INLINE static std::int32_t reduce_addi(I x) { return _mm512_reduce_add_epi32(x.v); }
  MK_INLINE static void store_i8(std::int8_t* p, I x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(x.v)); }
};

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
