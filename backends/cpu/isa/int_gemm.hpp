// Integer GEMM: 16 rows x NC columns of int8 activations. Data: Matrix and Acts of kernels.hpp. Bound: two of the four vector pipes make
// products, so a column of 16 x 32 is 16 vpmaddubsw + 16 additions on AVX2; the rest (unpacking, scales) is shared by NC columns.
#pragma once
#include "isa/level.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

enum class Offset { none, some };  // some: a minimum, a zero point, or both

template <Codes C>
struct CodeTraits {
  static constexpr bool is_table = stored_as(C) != C;
  static constexpr bool is_signed = C == Codes::b8 || C == Codes::t3s || C == Codes::t4s;
  static constexpr int bits = C == Codes::b5 || is_table ? 5 : C == Codes::b6 ? 6 : 4;
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
  if constexpr (CodeTraits<C>::is_table) codes = V::lookup(w.table_codes, codes);
  if constexpr (CodeTraits<C>::is_signed) return V::signed_codes(codes);
  else return codes;
}

template <Codes C, int NC, int J, int kBegin, int kEnd>
MK_INLINE void dots(const Matrix& w, const std::uint8_t* block, const std::int8_t* q, std::size_t row, typename DotOf<C>::type* dot) {
  if constexpr (J < kEnd) {
    const auto codes = operand<C, J>(w, block);
#pragma GCC unroll 16
    for (int c = 0; c < NC; ++c)
      dot[c].template add<J - kBegin, J == kEnd - 1>(codes, V::quad(q + static_cast<std::size_t>(c) * row + 4 * J));
    dots<C, NC, J + 1, kBegin, kEnd>(w, block, q, row, dot);
  }
}

// Walks the numbers that groups of a stripe have, 16 at a time: direct ones, or small ones under a super.
struct Cursor {
  const std::uint8_t *at, *super_at;
  Num num, super;
  MK_INLINE Cursor(Num n, Num s, const std::uint8_t* first, const std::uint8_t* super_first, std::uint32_t group, std::uint32_t sup)
      : at{first + static_cast<std::size_t>(group) * kLanes * num_bytes(n)},
        super_at{super_first + static_cast<std::size_t>(sup) * kLanes * num_bytes(s)},
        num{n},
        super{s} {}
  MK_INLINE V::F load() const {
    if (num == Num::f16) return load_num<Num::f16>(at);
    const V::F small = load_num(num, at);
    return super == Num::none ? small : V::mul(load_num(super, super_at), small);
  }
  MK_INLINE void next(bool next_super) {
    at += kLanes * num_bytes(num);
    if (next_super) super_at += kLanes * num_bytes(super);
  }
};

// The groups of a stripe in order: scale, and what is taken away per unit of activation, min + scale * zero.
template <Offset O>
struct Groups {
  const Matrix& w;
  Cursor scale, min;
  const std::uint8_t* zero;
  std::uint32_t left;  // groups of this super
  MK_INLINE Groups(const Matrix& m, const std::uint8_t* stripe, std::uint32_t g)
      : w{m},
        scale{m.scale, m.super, stripe + m.off_scale, stripe + m.off_super, g, sup(m, g)},
        min{m.min, m.super_min, stripe + m.off_min, stripe + m.off_super_min, g, sup(m, g)},
        zero{stripe + m.off_zero + static_cast<std::size_t>(g) * kLanes},
        left{m.groups_per_super != 0 ? m.groups_per_super - g % m.groups_per_super : 0xFFFFFFFFu} {}
  static MK_INLINE std::uint32_t sup(const Matrix& m, std::uint32_t g) { return m.groups_per_super != 0 ? g / m.groups_per_super : 0; }
  MK_INLINE void load(V::F& s, V::F& m) const {
    s = scale.load();
    if constexpr (O == Offset::some) {
      if (w.has_zero) m = V::mul(s, V::to_float(w.codes == Codes::b8 ? V::load_i8(zero) : V::load_u8(zero)));
      else m = V::mul(s, V::set1(static_cast<float>(w.zero)));
      if (w.min != Num::none) m = V::add(m, min.load());
    }
  }
  MK_INLINE void next() {
    const bool next_super = --left == 0;
    if (next_super) left = w.groups_per_super;
    scale.next(next_super);
    if constexpr (O == Offset::some) {
      min.next(next_super);
      zero += kLanes;
    }
  }
};

// acc += scale * d * dot  [- m * ds]: the one place where integers become floats.
template <Codes C, Offset O>
MK_INLINE V::F close(V::I dot, V::F s, V::F m, float d, float ds, std::int32_t sum, V::F acc) {
  if constexpr (CodeTraits<C>::is_signed) dot = V::signed_sum(dot, sum);
  acc = V::fma(V::to_float(dot), V::mul(s, V::set1(d)), acc);
  if constexpr (O == Offset::some) acc = V::fnma(m, V::set1(ds), acc);
  return acc;
}

// One activation block for all columns, its 16 or 32 k under one group. Few blocks have low digits, and the same ones for every stripe, so
// that branches on them are foreseen.
template <Codes C, Offset O, int NC, int kBegin, int kEnd>
MK_INLINE void block_of(const Matrix& w, const std::uint8_t* block, const std::int8_t* q, const std::uint8_t* two, bool any_two, V::F s,
                        V::F m, const float* d, std::size_t nb, const float* ds, const std::int32_t* sums, std::size_t step, V::F* acc) {
  const std::size_t row = nb * 2 * kBlock;
  typename DotOf<C>::type dot[NC];
  dots<C, NC, kBegin, kBegin, kEnd>(w, block, q, row, dot);
  V::I sum[NC];
#pragma GCC unroll 16
  for (int c = 0; c < NC; ++c) sum[c] = V::shl<kDigit>(dot[c].sum);
  if (any_two) {
    V::I low[NC];
    for (int c = 0; c < NC; ++c) {
      if (two[c] != 0) {
        typename DotOf<C>::type one;
        dots<C, 1, kBegin, kBegin, kEnd>(w, block, q + kBlock + static_cast<std::size_t>(c) * row, row, &one);
        low[c] = one.sum;
      } else {
        low[c] = V::set1i(0);
      }
    }
#pragma GCC unroll 16
    for (int c = 0; c < NC; ++c) sum[c] = V::addi(sum[c], low[c]);
  }
#pragma GCC unroll 16
  for (int c = 0; c < NC; ++c) {
    const std::size_t at = static_cast<std::size_t>(c) * step;
    acc[c] = close<C, O>(sum[c], s, m, d[static_cast<std::size_t>(c) * nb], ds[at], sums[at], acc[c]);
  }
}

// Weights are read once and in order, from memory that is far away, and left to itself the hardware is late: it stops at the end of each
// page, and of the numbers behind a stripe's codes it sees too little to follow. So a block asks for codes at some distance, and for its
// part of the numbers of the next stripe.
struct Ahead {
  static constexpr std::size_t kLine = 64, kDistance = 2048;  // bytes; measured
  const std::uint8_t* numbers;
  std::size_t each;  // bytes of numbers that a block has
  MK_INLINE Ahead(const Matrix& w, const std::uint8_t* stripe, std::uint32_t b0)
      : numbers{stripe + w.stripe_bytes + w.off_scale}, each{(w.stripe_bytes - w.off_scale) / w.blocks} {
    numbers += b0 * each;
  }
  template <std::size_t kCodes>
  MK_INLINE void next(const std::uint8_t* codes) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kCodes; i += kLine) __builtin_prefetch(codes + kDistance + i);
    __builtin_prefetch(numbers);
    if (each > kLine) __builtin_prefetch(numbers + kLine);
    numbers += each;
  }
};

template <int NC>
MK_INLINE bool any(const std::uint8_t* flags) {
  std::uint8_t all = 0;
#pragma GCC unroll 16
  for (int c = 0; c < NC; ++c) all |= flags[c];
  return all != 0;
}

template <Codes C, Offset O, bool G16, int NC>
MK_INLINE void tile(const Matrix& w, const std::uint8_t* stripe, const Acts& a, std::uint32_t m0, std::uint32_t b0, std::uint32_t b1,
                    float* out) {
  const std::size_t nb = a.nb, first = m0 * nb + b0;
  const std::int8_t* q = a.q + first * 2 * kBlock;
  const std::uint8_t* two = a.two + static_cast<std::size_t>(b0) * a.rows + m0;
  const float *d = a.d + first, *ds = a.ds + first, *ds16 = a.ds16 + 2 * first;
  const std::int32_t *sums = a.s + first, *sums16 = a.s16 + 2 * first;
  const std::uint8_t* block = stripe + static_cast<std::size_t>(b0) * block_bytes(C);
  Ahead ahead{w, stripe, b0};
  V::F acc[NC], s, m = V::zero();
#pragma GCC unroll 16
  for (int c = 0; c < NC; ++c) acc[c] = V::load(out + c * 16);
  if constexpr (G16) {
    Groups<O> groups{w, stripe, 2 * b0};
    for (std::uint32_t b = b0; b < b1; ++b, block += block_bytes(C), q += 2 * kBlock, two += a.rows, ++d, ds16 += 2, sums16 += 2) {
      ahead.template next<block_bytes(C)>(block);
      const bool any_two = any<NC>(two);
      groups.load(s, m);
      block_of<C, O, NC, 0, 4>(w, block, q, two, any_two, s, m, d, nb, ds16, sums16, 2 * nb, acc);
      if (2 * b + 1 == w.groups) break;  // k ends inside the block
      groups.next();
      groups.load(s, m);
      block_of<C, O, NC, 4, 8>(w, block, q, two, any_two, s, m, d, nb, ds16 + 1, sums16 + 1, 2 * nb, acc);
      groups.next();
    }
  } else {
    const std::uint32_t each = w.group_k / kBlock;  // blocks of a group
    Groups<O> groups{w, stripe, b0 / each};
    for (std::uint32_t b = b0, end = (b0 / each + 1) * each; b < b1; end += each) {
      groups.load(s, m);
      for (const std::uint32_t stop = end < b1 ? end : b1; b < stop;
           ++b, block += block_bytes(C), q += 2 * kBlock, two += a.rows, ++d, ++ds, ++sums) {
        ahead.template next<block_bytes(C)>(block);
        block_of<C, O, NC, 0, 8>(w, block, q, two, any<NC>(two), s, m, d, nb, ds, sums, nb, acc);
      }
      groups.next();
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
  const bool g16 = w.group_k == 16, some = w.min != Num::none || w.has_zero || w.zero != 0;
  if (some) return g16 ? columns<C, Offset::some, true, kColumns> : columns<C, Offset::some, false, kColumns>;
  return g16 ? columns<C, Offset::none, true, kColumns> : columns<C, Offset::none, false, kColumns>;
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
