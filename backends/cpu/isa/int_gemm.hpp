// Integer GEMM: 16 rows x NC columns of int8 activations. Data: Matrix and Acts of kernels.hpp. Bound: two of the four vector pipes make
// products, so a column of 16 x 32 is 16 vpmaddubsw + 16 additions on AVX2; the rest (unpacking, scales) is shared by NC columns.
#pragma once
#include "isa/level.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

enum class Offset { zero, min, zeros };  // q - constant; a minimum; a zero point per group

template <Codes C>
struct CodeTraits {
  static constexpr bool is_signed = C == Codes::b8 || C == Codes::t4s;
  static constexpr int bits = C == Codes::b5 || C == Codes::t4u ? 5 : C == Codes::b6 ? 6 : 4;
};
template <Codes C, bool = CodeTraits<C>::is_signed>
struct DotOf {
  using type = V::Dot<CodeTraits<C>::bits>;
};
template <Codes C>
struct DotOf<C, true> {
  using type = V::SignedDot;
};

template <Codes C, int J>
MK_INLINE auto operand(const Matrix& w, const std::uint8_t* block) {
  V::Bytes codes = load_codes<C, J>(block);
  if constexpr (C == Codes::t4u || C == Codes::t4s) codes = V::lookup(w.table_codes, codes);
  if constexpr (CodeTraits<C>::is_signed) return V::signed_codes(codes);
  else return codes;
}

template <Codes C, int NC, int J, int kBegin, int kEnd>
MK_INLINE void dots(const Matrix& w, const std::uint8_t* block, const std::int8_t* q, std::size_t kp, typename DotOf<C>::type* dot) {
  if constexpr (J < kEnd) {
    const auto codes = operand<C, J>(w, block);
#pragma GCC unroll 16
    for (int c = 0; c < NC; ++c)
      dot[c].template add<J - kBegin, J == kEnd - 1>(codes, V::quad(q + static_cast<std::size_t>(c) * kp + 4 * J));
    dots<C, NC, J + 1, kBegin, kEnd>(w, block, q, kp, dot);
  }
}

// The scales of a group of one stripe.
struct GroupScales {
  V::F s, m;
  V::I z;
};
template <Offset O>
MK_INLINE GroupScales group_scales(const Matrix& w, const std::uint8_t* stripe, std::uint32_t g, std::uint32_t sup) {
  GroupScales r;
  r.s = load_scale(w.scale, stripe + w.off_scale, w.super, stripe + w.off_super, g, sup);
  if constexpr (O == Offset::min) r.m = load_scale(w.min, stripe + w.off_min, w.super_min, stripe + w.off_super_min, g, sup);
  if constexpr (O == Offset::zeros) {
    const std::uint8_t* at = stripe + w.off_zero + static_cast<std::size_t>(g) * kLanes;
    r.z = w.codes == Codes::b8 ? V::load_i8(at) : V::load_u8(at);
  } else if constexpr (O == Offset::zero) {
    r.z = V::set1i(w.zero);
  }
  return r;
}

// acc += scale * d * (dot - z * s)  [- min * ds]: the one place where integers become floats.
template <Codes C, Offset O>
MK_INLINE V::F close(V::I dot, const GroupScales& g, float d, float ds, std::int32_t s, V::F acc) {
  if constexpr (CodeTraits<C>::is_signed) dot = V::signed_sum(dot, s);
  if constexpr (O != Offset::min) dot = V::subi(dot, V::muli(g.z, V::set1i(s)));
  acc = V::fma(V::to_float(dot), V::mul(g.s, V::set1(d)), acc);
  if constexpr (O == Offset::min) acc = V::fnma(g.m, V::set1(ds), acc);
  return acc;
}

template <Codes C, Offset O, bool G16, int NC>
MK_INLINE void tile(const Matrix& w, const std::uint8_t* stripe, const Acts& a, std::uint32_t m, std::uint32_t b0, std::uint32_t b1,
                    float* out) {
  const std::uint32_t nb = a.nb;
  const std::size_t kp = a.kp();
  const std::int8_t* q = a.q + m * kp + static_cast<std::size_t>(b0) * kBlock;
  const float *d = a.d + static_cast<std::size_t>(m) * nb, *ds = a.ds + static_cast<std::size_t>(m) * nb;
  const std::int32_t* s = a.s + static_cast<std::size_t>(m) * nb;
  const std::uint8_t* block = stripe + static_cast<std::size_t>(b0) * block_bytes(C);
  V::F acc[NC];
#pragma GCC unroll 16
  for (int c = 0; c < NC; ++c) acc[c] = V::load(out + c * 16);
  const std::uint32_t blocks_per_group = G16 ? 1 : w.group_k / kBlock;
  std::uint32_t g = G16 ? 2 * b0 : b0 / blocks_per_group;
  std::uint32_t sup = w.groups_per_super != 0 ? g / w.groups_per_super : 0;
  std::uint32_t left = w.groups_per_super != 0 ? w.groups_per_super - g % w.groups_per_super : 0xFFFFFFFFu;  // groups of this super
  for (std::uint32_t b = b0; b < b1;) {
    if constexpr (G16) {
      const float* ds16 = a.ds16 + 2 * (static_cast<std::size_t>(m) * nb + b);
      const std::int32_t* s16 = a.s16 + 2 * (static_cast<std::size_t>(m) * nb + b);
      typename DotOf<C>::type dot[NC];
      const GroupScales first = group_scales<O>(w, stripe, g, sup);
      dots<C, NC, 0, 0, 4>(w, block, q, kp, dot);
#pragma GCC unroll 16
      for (int c = 0; c < NC; ++c) {
        const std::size_t at = static_cast<std::size_t>(c) * 2 * nb;
        acc[c] = close<C, O>(dot[c].sum, first, d[static_cast<std::size_t>(c) * nb + b], ds16[at], s16[at], acc[c]);
      }
      if (--left == 0) ++sup, left = w.groups_per_super;
      const bool more = g + 1 < w.groups;  // k may end inside the block: its second half is then all zero
      const GroupScales second = group_scales<O>(w, stripe, more ? g + 1 : g, more ? sup : w.supers - (w.supers != 0));
      dots<C, NC, 4, 4, 8>(w, block, q, kp, dot);
#pragma GCC unroll 16
      for (int c = 0; c < NC; ++c) {
        const std::size_t at = static_cast<std::size_t>(c) * 2 * nb + 1;
        acc[c] = close<C, O>(dot[c].sum, second, d[static_cast<std::size_t>(c) * nb + b], ds16[at], s16[at], acc[c]);
      }
      if (--left == 0) ++sup, left = w.groups_per_super;
      g += 2;
      ++b;
      block += block_bytes(C);
      q += kBlock;
    } else {
      const GroupScales scales = group_scales<O>(w, stripe, g, sup);
      const std::uint32_t end = (g + 1) * blocks_per_group < b1 ? (g + 1) * blocks_per_group : b1;
      for (; b < end; ++b, block += block_bytes(C), q += kBlock) {
        typename DotOf<C>::type dot[NC];
        dots<C, NC, 0, 0, 8>(w, block, q, kp, dot);
#pragma GCC unroll 16
        for (int c = 0; c < NC; ++c) {
          const std::size_t at = static_cast<std::size_t>(c) * nb + b;
          acc[c] = close<C, O>(dot[c].sum, scales, d[at], ds[at], s[at], acc[c]);
        }
      }
      ++g;
      if (--left == 0) ++sup, left = w.groups_per_super;
    }
  }
#pragma GCC unroll 16
  for (int c = 0; c < NC; ++c) V::store(out + c * 16, acc[c]);
}

template <Codes C, Offset O, bool G16, int NC>
void columns(const Matrix& w, const std::uint8_t* stripe, const Acts& a, std::uint32_t m0, std::uint32_t m1, std::uint32_t b0,
             std::uint32_t b1, float* acc) {
  for (; m1 - m0 >= NC; m0 += NC, acc += 16 * NC) tile<C, O, G16, NC>(w, stripe, a, m0, b0, b1, acc);
  if constexpr (NC > 1)
    if (m0 < m1) columns<C, O, G16, (NC > 4 ? NC / 2 : NC - 1)>(w, stripe, a, m0, m1, b0, b1, acc);
}

// The kernel of one kind of codes; instantiated by one file per kind.
template <Codes C>
IntGemm pick(const Matrix& w) {
  constexpr int kColumns = V::kIntColumns;
  const bool g16 = w.group_k == 16;
  if (w.min != Num::none) return g16 ? columns<C, Offset::min, true, kColumns> : columns<C, Offset::min, false, kColumns>;
  if (w.has_zero) return g16 ? nullptr : columns<C, Offset::zeros, false, kColumns>;
  return g16 ? columns<C, Offset::zero, true, kColumns> : columns<C, Offset::zero, false, kColumns>;
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
