// 16 lanes as two 256-bit registers: AVX2, FMA and F16C. Lane r of a float or an integer is output row r of a stripe; bytes 4r..4r+3 of
// `Bytes` are four consecutive k of that row. Each function is one or two intrinsics; the arithmetic is that of simd_portable.hpp.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "isa/inline.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

struct V {
  static constexpr int kIntColumns = 4, kFloatColumns = 6;
  struct F {
    __m256 a, b;
  };
  struct I {
    __m256i a, b;
  };
  struct Bytes {
    __m256i a, b;
  };
  using Mask = F;
  using Quad = __m256i;  // four activations, repeated

  MK_INLINE static F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  MK_INLINE static F set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  MK_INLINE static F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  MK_INLINE static void store(float* p, F x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
  }
  MK_INLINE static F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  MK_INLINE static F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  MK_INLINE static F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  MK_INLINE static F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
  MK_INLINE static F sqrt(F x) { return {_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)}; }
  MK_INLINE static F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
  MK_INLINE static F fnma(F x, F y, F z) { return {_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)}; }
  // x > y ? x : y, so a NaN in y wins and one in x is lost; min likewise.
  MK_INLINE static F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  MK_INLINE static F min(F x, F y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
  MK_INLINE static F bit_and(F x, F y) { return {_mm256_and_ps(x.a, y.a), _mm256_and_ps(x.b, y.b)}; }
  MK_INLINE static F bit_or(F x, F y) { return {_mm256_or_ps(x.a, y.a), _mm256_or_ps(x.b, y.b)}; }
  MK_INLINE static Mask less(F x, F y) { return {_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)}; }
  MK_INLINE static F select(Mask m, F x, F y) { return {_mm256_blendv_ps(y.a, x.a, m.a), _mm256_blendv_ps(y.b, x.b, m.b)}; }

  MK_INLINE static F load_f16(const std::uint16_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  MK_INLINE static F load_bf16(const std::uint16_t* p) {
    const __m256i lo = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const __m256i hi = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(lo, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(hi, 16))};
  }
  MK_INLINE static void store_f16(std::uint16_t* p, F x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
  }

  MK_INLINE static I set1i(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
  MK_INLINE static I addi(I x, I y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
  MK_INLINE static I subi(I x, I y) { return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
  MK_INLINE static I muli(I x, I y) { return {_mm256_mullo_epi32(x.a, y.a), _mm256_mullo_epi32(x.b, y.b)}; }
  MK_INLINE static I andi(I x, I y) { return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
  MK_INLINE static I xori(I x, I y) { return {_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)}; }
  template <int N>
  MK_INLINE static I shl(I x) {
    return {_mm256_slli_epi32(x.a, N), _mm256_slli_epi32(x.b, N)};
  }
  template <int N>
  MK_INLINE static I shr(I x) {  // logical
    return {_mm256_srli_epi32(x.a, N), _mm256_srli_epi32(x.b, N)};
  }
  template <int N>
  MK_INLINE static I sar(I x) {
    return {_mm256_srai_epi32(x.a, N), _mm256_srai_epi32(x.b, N)};
  }
  MK_INLINE static F to_float(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
  MK_INLINE static I round(F x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }  // to nearest even
  MK_INLINE static F as_float(I x) { return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
  MK_INLINE static I as_int(F x) { return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)}; }
  MK_INLINE static I load_i8(const std::uint8_t* p) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi8_epi32(v), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(v, v))};
  }
  MK_INLINE static I load_u8(const std::uint8_t* p) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepu8_epi32(v), _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(v, v))};
  }
  MK_INLINE static void storei(std::int32_t* p, I x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.a);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), x.b);
  }
  MK_INLINE static F gather(const float* table, I index) {
    return {_mm256_i32gather_ps(table, index.a, 4), _mm256_i32gather_ps(table, index.b, 4)};
  }
  using Table16 = F;
  MK_INLINE static Table16 load_table(const float* table) { return load(table); }
  MK_INLINE static __m256 lookup_half(const Table16& table, __m256i index) {  // bit 3 of the index becomes the sign that blends
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(table.a, index), _mm256_permutevar8x32_ps(table.b, index),
                            _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
  }
  MK_INLINE static F lookup(const Table16& table, I index) { return {lookup_half(table, index.a), lookup_half(table, index.b)}; }

  MK_INLINE static Bytes load_bytes(const std::uint8_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
  }
  MK_INLINE static Bytes set_bytes(std::uint8_t x) {
    return {_mm256_set1_epi8(static_cast<char>(x)), _mm256_set1_epi8(static_cast<char>(x))};
  }
  MK_INLINE static Bytes and_bytes(Bytes x, Bytes y) { return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
  MK_INLINE static Bytes or_bytes(Bytes x, Bytes y) { return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)}; }
  // Shifts of 16-bit halves: what crosses a byte must be masked away by the caller. N < 0 shifts left.
  template <int N>
  MK_INLINE static Bytes shift_bytes(Bytes x) {
    if constexpr (N > 0) return {_mm256_srli_epi16(x.a, N), _mm256_srli_epi16(x.b, N)};
    if constexpr (N < 0) return {_mm256_slli_epi16(x.a, -N), _mm256_slli_epi16(x.b, -N)};
    return x;
  }
  MK_INLINE static Bytes lookup(const std::uint8_t* table16, Bytes index) {
    const __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table16)));
    return {_mm256_shuffle_epi8(t, index.a), _mm256_shuffle_epi8(t, index.b)};
  }
  MK_INLINE static I as_int(Bytes x) { return {x.a, x.b}; }
  MK_INLINE static Quad quad(const std::int8_t* p) {
    std::int32_t x;
    std::memcpy(&x, p, 4);
    return _mm256_set1_epi32(x);
  }

  // Makes the compiler finish a sum here. gcc would put off all additions of a block to its end and spill every product until then.
  MK_INLINE static void hold(I& x) { asm("" : "+x"(x.a), "+x"(x.b)); }

  // Sums of unsigned codes below 2^Bits times activations in -127..127. A product pair is at most 2 * 127 * (2^Bits - 1), so kRoom of
  // them fit the 16-bit sums that vpmaddubsw makes. kIndex counts the additions, kLast closes the sum.
  template <int Bits>
  struct Dot {
    static constexpr int kRoom = Bits <= 4 ? 8 : Bits == 5 ? 4 : Bits == 6 ? 2 : 1;
    I pairs, sum;
    template <int kIndex, bool kLast>
    MK_INLINE void add(Bytes w, Quad q) {
      const I p{_mm256_maddubs_epi16(w.a, q), _mm256_maddubs_epi16(w.b, q)};
      if constexpr (kIndex % kRoom == 0) pairs = p;
      else pairs = {_mm256_add_epi16(pairs.a, p.a), _mm256_add_epi16(pairs.b, p.b)};
      hold(pairs);
      if constexpr (kLast || kIndex % kRoom == kRoom - 1) {
        const __m256i one = _mm256_set1_epi16(1);
        const I t{_mm256_madd_epi16(pairs.a, one), _mm256_madd_epi16(pairs.b, one)};
        if constexpr (kIndex < kRoom) sum = t;
        else sum = addi(sum, t);
        hold(sum);
      }
    }
  };
  // Signed codes: |w| times the activation with w's sign; 2 * 128 * 127 fits 16 bits.
  struct SignedCodes {
    Bytes magnitude, w;
  };
  MK_INLINE static SignedCodes signed_codes(Bytes w) { return {{_mm256_abs_epi8(w.a), _mm256_abs_epi8(w.b)}, w}; }
  struct SignedDot {
    I sum;
    template <int kIndex, bool kLast>
    MK_INLINE void add(SignedCodes c, Quad q) {
      const __m256i one = _mm256_set1_epi16(1);
      const I t{_mm256_madd_epi16(_mm256_maddubs_epi16(c.magnitude.a, _mm256_sign_epi8(q, c.w.a)), one),
                _mm256_madd_epi16(_mm256_maddubs_epi16(c.magnitude.b, _mm256_sign_epi8(q, c.w.b)), one)};
      if constexpr (kIndex == 0) sum = t;
      else sum = addi(sum, t);
      hold(sum);
    }
  };
  // What is left to take from a SignedDot, given the sum of its activations: nothing here.
  MK_INLINE static I signed_sum(I sum, std::int32_t) { return sum; }

  // Activations of 15 bits beside codes of 8 (FineCodes): four consecutive k are 8 bytes, here as they are.
  MK_INLINE static void store_fine(std::uint8_t* p, I x) {  // 16 integers in -16256..16256
    const __m256i w = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xD8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), w);
  }
  struct FineCodes {
    __m256i w[4];  // rows 4i .. 4i + 3
  };
  template <bool kSigned>
  MK_INLINE static FineCodes fine_codes(Bytes w) {
    const __m128i part[4] = {_mm256_castsi256_si128(w.a), _mm256_extracti128_si256(w.a, 1), _mm256_castsi256_si128(w.b),
                             _mm256_extracti128_si256(w.b, 1)};
    FineCodes c;
    for (int i = 0; i < 4; ++i) c.w[i] = kSigned ? _mm256_cvtepi8_epi16(part[i]) : _mm256_cvtepu8_epi16(part[i]);
    return c;
  }
  struct FineDot {
    __m256i s[4];  // of rows 4i .. 4i + 3 two sums each
    MK_INLINE void clear() { s[0] = s[1] = s[2] = s[3] = _mm256_setzero_si256(); }
    MK_INLINE void add(const FineCodes& c, const std::uint8_t* q) {
      std::int64_t x;
      std::memcpy(&x, q, 8);
      const __m256i four = _mm256_set1_epi64x(x);
      for (int i = 0; i < 4; ++i) s[i] = _mm256_add_epi32(s[i], _mm256_madd_epi16(c.w[i], four));
    }
    MK_INLINE I sum() const {
      return {_mm256_permute4x64_epi64(_mm256_hadd_epi32(s[0], s[1]), 0xD8), _mm256_permute4x64_epi64(_mm256_hadd_epi32(s[2], s[3]), 0xD8)};
    }
  };
  static constexpr int kFineColumns = 2;

  // Lane i of a pair (i, i + kHalf) takes the sum, lane i + kHalf the difference.
  template <int kHalf>
  MK_INLINE static __m256 butterfly_half(__m256 x) {
    const __m256 y = kHalf == 4 ? _mm256_permute2f128_ps(x, x, 1) : kHalf == 2 ? _mm256_permute_ps(x, 0x4E) : _mm256_permute_ps(x, 0xB1);
    constexpr int kUpper = kHalf == 4 ? 0xF0 : kHalf == 2 ? 0xCC : 0xAA;
    return _mm256_blend_ps(_mm256_add_ps(x, y), _mm256_sub_ps(y, x), kUpper);
  }
  template <int kHalf>
  MK_INLINE static F butterfly(F x) {
    if constexpr (kHalf == 8) return {_mm256_add_ps(x.a, x.b), _mm256_sub_ps(x.a, x.b)};
    else return {butterfly_half<kHalf>(x.a), butterfly_half<kHalf>(x.b)};
  }

  // Sums and maxima over lanes: 16 -> 8 -> 4 -> 2 -> 1, lane i with lane i + half.
  MK_INLINE static float reduce_add(F x) {
    const __m256 e = _mm256_add_ps(x.a, x.b);
    const __m128 q = _mm_add_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(d, _mm_shuffle_ps(d, d, 1)));
  }
  MK_INLINE static float reduce_max(F x) {
    const __m256 e = _mm256_max_ps(x.a, x.b);
    const __m128 q = _mm_max_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    const __m128 d = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(d, _mm_shuffle_ps(d, d, 1)));
  }
  MK_INLINE static std::int32_t reduce_addi(I x) {
    const __m256i e = _mm256_add_epi32(x.a, x.b);
    __m128i q = _mm_add_epi32(_mm256_castsi256_si128(e), _mm256_extracti128_si256(e, 1));
    q = _mm_add_epi32(q, _mm_shuffle_epi32(q, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(q, _mm_shuffle_epi32(q, 0xB1)));
  }
  // 16 integers in -128..127 as bytes.
  MK_INLINE static void store_i8(std::int8_t* p, I x) {
    const __m256i w = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xD8);
    const __m128i b = _mm_packs_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), b);
  }
};

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
