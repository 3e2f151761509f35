// Attention over keys and values that are integers, one kv head at a time. As attention.cpp, with the same tiles and the same softmax, but
// scores and weighted sums are integer sums: queries, and the weights of a tile times the values' scales, have 15 bits. Data: HeadLayout.
// Bound: 64 products of 8 x 8 bits an instruction with VNNI, two of them for 15 bits; else 16 of 16 x 16.
#include "isa/head_rows.hpp"
#include "isa/rows.hpp"
#include "isa/soften.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

namespace {

constexpr float kFinest = 127.0F * 128.0F;

// Sixteen positions of a tile: in place, or gathered where blocks are not multiples of 16. nullptr: nobody sees them.
struct CodeGroup {
  const std::uint8_t *k, *v;
  const std::uint8_t *k_scale, *v_scale;  // BF16 [16]
};
struct CodeTile {
  CodeGroup group[4];
};

// Fifteen-bit integers of the vectors: of queries [n][pitch], of weights [n][2 * kTile] bytes, with their scales and sums.
struct Fine {
  std::uint8_t *q, *p;
  std::size_t pitch;
  float q_scale[kAttentionVectors], p_scale[kAttentionVectors];
  std::int32_t q_sum[kAttentionVectors], p_sum[kAttentionVectors];
};

MK_INLINE void copy_scale(const std::uint8_t* from, std::uint32_t at, std::uint8_t* to, std::uint32_t t) {
  std::memcpy(to + std::size_t{2} * t, from + std::size_t{2} * at, 2);
}

void gather_group(const Attention& a, std::uint32_t from, std::uint32_t lo, std::uint32_t hi, std::uint8_t* to, CodeGroup& out) {
  const HeadLayout& h = a.codes;
  HeadLayout group = h;
  group.tokens = 16;
  group.lanes = true;
  std::uint8_t* const v = to + group.key_scales();
  std::uint8_t* const scales = v + group.value_scales();
  for (std::uint32_t t = 0; t < 16; ++t) {
    const std::uint32_t p = from + t;
    if (p < lo || p >= hi) continue;
    const std::uint8_t* block = a.base + static_cast<std::uint64_t>(a.table[p / a.block_tokens]) * a.block_bytes;
    const std::uint32_t row = p % a.block_tokens;
    const std::uint8_t *ks = block + a.k_off, *vs = block + a.v_off;
    for (std::uint32_t i = 0; i < h.key_bytes(); ++i) to[group.key_at(t, i)] = ks[h.key_at(row, i)];
    for (std::uint32_t i = 0; i < h.value_bytes(); ++i) v[group.value_at(t, i)] = vs[h.value_at(row, i)];
    copy_scale(ks + h.key_scales(), row, scales, t);
    copy_scale(vs + h.value_scales(), row, scales + 32, t);
  }
  out = {to, v, scales, scales + 32};
}

MK_INLINE std::size_t group_bytes(const HeadLayout& h) { return std::size_t{16} * (h.key_bytes() + h.value_bytes()) + 64; }

void find_tile(const Attention& a, std::uint32_t tile, std::uint32_t lo, std::uint32_t hi, std::uint8_t* buffer, CodeTile& out) {
  const HeadLayout& h = a.codes;
  for (std::uint32_t g = 0; g < 4; ++g) {
    const std::uint32_t from = tile * kTile + g * 16;
    CodeGroup& to = out.group[g];
    to = {};
    if (from >= hi || from + 16 <= lo) continue;
    if (!h.lanes) {
      gather_group(a, from, lo, hi, buffer + g * group_bytes(h), to);
      continue;
    }
    const std::uint8_t* block = a.base + static_cast<std::uint64_t>(a.table[from / a.block_tokens]) * a.block_bytes;
    const std::uint32_t row = from % a.block_tokens;
    const std::uint8_t *k = block + a.k_off, *v = block + a.v_off;
    to.k = k + std::size_t{row} * h.key_bytes();
    to.v = v + std::size_t{row} * h.value_bytes();
    to.k_scale = k + h.key_scales() + std::size_t{2} * row;
    to.v_scale = v + h.value_scales() + std::size_t{2} * row;
  }
}

// Integers of x [n], n a multiple of 16, in steps of a scale: the largest becomes 127 * 128. NaN and infinities make the scale NaN.
struct Rounded {
  float scale;
  std::int32_t sum;
};
MK_INLINE Rounded round_fine(const float* x, std::uint32_t n, std::uint8_t* to) {
  V::F most = V::zero(), poison = V::zero();
  for (std::uint32_t i = 0; i < n; i += 16) {
    const V::F v = V::load(x + i);
    most = V::max(most, absolute(v));
    poison = V::fma(v, V::zero(), poison);
  }
  const float amax = V::reduce_max(most), scale = amax / kFinest + V::reduce_add(poison);
  const V::F by = V::set1(scale > 0.0F ? scale : 1.0F), high = V::set1(kFinest), low = V::set1(-kFinest);
  V::I sum = V::set1i(0);
  for (std::uint32_t i = 0; i < n; i += 16) {  // max() lets `low` stand for a NaN
    const V::I all = V::round(V::min(V::max(V::div(V::load(x + i), by), low), high));
    V::store_fine(to + std::size_t{2} * i, all);
    sum = V::addi(sum, all);
  }
  return {scale, V::reduce_addi(sum)};
}

// dot [NC] += codes x integers, n units of 16 rows x 4 bytes at `step` bytes; half: which codes of 4 bits, -1: both in turn.
template <std::uint32_t Bits, int NC>
MK_INLINE void add_units(const std::uint8_t* codes, std::size_t step, std::uint32_t n, const std::uint8_t* q, std::size_t pitch, bool upper,
                         bool both, V::FineDot* dot) {
  for (std::uint32_t u = 0; u < n; ++u, codes += step) {
    const V::Bytes bytes = V::load_bytes(codes);
    if constexpr (Bits == 8) {
      const V::FineCodes c = V::fine_codes<true>(bytes);
#pragma GCC unroll 16
      for (int i = 0; i < NC; ++i) dot[i].add(c, q + static_cast<std::size_t>(i) * pitch);
      q += 8;
    } else {
      if (both || !upper) {
        const V::FineCodes c = V::fine_codes<false>(V::and_bytes(bytes, V::set_bytes(15)));
#pragma GCC unroll 16
        for (int i = 0; i < NC; ++i) dot[i].add(c, q + static_cast<std::size_t>(i) * pitch);
        q += 8;
      }
      if (both || upper) {
        const V::FineCodes c = V::fine_codes<false>(V::and_bytes(V::shift_bytes<4>(bytes), V::set_bytes(15)));
#pragma GCC unroll 16
        for (int i = 0; i < NC; ++i) dot[i].add(c, q + static_cast<std::size_t>(i) * pitch);
        q += 8;
      }
    }
  }
}

template <std::uint32_t Bits>
MK_INLINE V::F as_float(const V::FineDot& dot, std::int32_t sum) {
  return V::to_float(Bits == 8 ? V::signed_sum(dot.sum(), sum) : V::subi(dot.sum(), V::set1i(8 * sum)));
}

// Scores of NC vectors from i on against 16 positions, to s.
template <std::uint32_t Bits, int NC>
MK_INLINE void score(const Attention& a, const Fine& f, std::uint32_t i, const CodeGroup& g, float* s) {
  V::FineDot dot[NC];
#pragma GCC unroll 16
  for (int c = 0; c < NC; ++c) dot[c].clear();
  add_units<Bits, NC>(g.k, 64, a.codes.units(), f.q + i * f.pitch, f.pitch, false, true, dot);
  const V::F scale = load_num<Num::bf16>(g.k_scale);
#pragma GCC unroll 16
  for (int c = 0; c < NC; ++c) {
    const std::uint32_t at = i + static_cast<std::uint32_t>(c);
    V::store(s + static_cast<std::size_t>(c) * kTile, V::mul(as_float<Bits>(dot[c], f.q_sum[at]), V::mul(V::set1(f.q_scale[at]), scale)));
  }
}

// o [NC][dvp] += the weights of NC vectors from i on times 16 columns of the tile's values.
template <std::uint32_t Bits, int NC>
MK_INLINE void gather_values(const Attention& a, const Fine& f, std::uint32_t i, const CodeTile& tile, const bool* seen,
                             std::uint32_t column, float* o) {
  V::FineDot dot[NC];
#pragma GCC unroll 16
  for (int c = 0; c < NC; ++c) dot[c].clear();
  const std::size_t step = std::size_t{4} * a.codes.value_bytes();
  const bool upper = Bits == 4 && column % 32 != 0;
  const std::size_t at = Bits == 8 ? std::size_t{4} * column : std::size_t{2} * (column - (upper ? 16 : 0));
  for (std::uint32_t g = 0; g < 4; ++g)
    if (seen[g])
      add_units<Bits, NC>(tile.group[g].v + at, step, 4, f.p + (std::size_t{2} * i * kTile + 32 * g), 2 * kTile, upper, false, dot);
#pragma GCC unroll 16
  for (int c = 0; c < NC; ++c) {
    const std::uint32_t v = i + static_cast<std::uint32_t>(c);
    float* to = o + static_cast<std::size_t>(c) * a.dvp + column;
    V::store(to, V::fma(as_float<Bits>(dot[c], f.p_sum[v]), V::set1(f.p_scale[v]), V::load(to)));
  }
}

template <std::uint32_t Bits, int NC = V::kFineColumns>
void score_columns(const Attention& a, const Fine& f, std::uint32_t i, std::uint32_t n, const CodeGroup& g, float* s) {
  for (; n >= NC; n -= NC, i += NC, s += static_cast<std::size_t>(NC) * kTile) score<Bits, NC>(a, f, i, g, s);
  if constexpr (NC > 1)
    if (n > 0) score_columns<Bits, (NC > 4 ? NC / 2 : NC - 1)>(a, f, i, n, g, s);
}
template <std::uint32_t Bits, int NC = V::kFineColumns>
void gather_columns(const Attention& a, const Fine& f, std::uint32_t i, std::uint32_t n, const CodeTile& tile, const bool* seen, float* o) {
  for (; n >= NC; n -= NC, i += NC, o += static_cast<std::size_t>(NC) * a.dvp)
    for (std::uint32_t k = 0; k < a.dvp; k += 16) gather_values<Bits, NC>(a, f, i, tile, seen, k, o);
  if constexpr (NC > 1)
    if (n > 0) gather_columns<Bits, (NC > 4 ? NC / 2 : NC - 1)>(a, f, i, n, tile, seen, o);
}

// The weights of vector j in this tile times the scales of the values they meet, as integers.
MK_INLINE void round_weights(Vectors& x, Fine& f, std::uint32_t j, std::uint32_t t0, Range range, const CodeTile& tile, const bool* seen) {
  float* s = x.s + static_cast<std::size_t>(j) * kTile;
  const bool whole = range.lo <= t0 && range.hi >= t0 + kTile;
#pragma GCC unroll 4
  for (std::uint32_t g = 0; g < 4; ++g) {
    V::F p = V::zero();
    if (seen[g]) {  // what lies in lanes that are not was perhaps never written
      p = V::mul(V::load(s + 16 * g), load_num<Num::bf16>(tile.group[g].v_scale));
      if (!whole) p = V::select(lanes_between(t0 + 16 * g, range), p, V::zero());
    }
    V::store(s + 16 * g, p);
  }
  const Rounded r = round_fine(s, kTile, f.p + std::size_t{2} * j * kTile);
  f.p_scale[j] = r.scale;
  f.p_sum[j] = r.sum;
}

// Vectors i .. i + c see the same positions of this tile.
template <std::uint32_t Bits>
void run_group(const Attention& a, Vectors& x, Fine& f, std::uint32_t i, std::uint32_t c, std::uint32_t tile, Range range,
               const CodeTile& mem) {
  const std::uint32_t t0 = tile * kTile;
  float* s = x.s + static_cast<std::size_t>(i) * kTile;
  bool seen[4];
  for (std::uint32_t g = 0; g < 4; ++g) {
    seen[g] = t0 + 16 * g < range.hi && t0 + 16 * g + 16 > range.lo;
    if (seen[g]) score_columns<Bits>(a, f, i, c, mem.group[g], s + 16 * g);
    else
      for (std::uint32_t j = 0; j < c; ++j) V::store(s + static_cast<std::size_t>(j) * kTile + 16 * g, V::zero());
  }
  for (std::uint32_t j = i; j < i + c; ++j) {
    soften(a, x, j, tile, range);
    round_weights(x, f, j, t0, range, mem, seen);
    if (x.shrink[j] == 1.0F) continue;
    float* o = x.o + static_cast<std::size_t>(j) * a.dvp;
    for (std::uint32_t k = 0; k < a.dvp; k += 16) V::store(o + k, V::mul(V::load(o + k), V::set1(x.shrink[j])));
  }
  gather_columns<Bits>(a, f, i, c, mem, seen, x.o + static_cast<std::size_t>(i) * a.dvp);
}

template <std::uint32_t Bits>
void run(const Attention& a) {
  Vectors x{};
  Fine f{};
  const std::uint32_t wide = (a.codes.key_numbers() + 15) / 16 * 16;
  f.pitch = std::size_t{2} * wide;
  x.q = a.scratch;
  x.o = x.q + wide;  // one query at a time
  x.s = x.o + static_cast<std::size_t>(kAttentionVectors) * a.dvp;
  f.q = reinterpret_cast<std::uint8_t*>(x.s + static_cast<std::size_t>(kAttentionVectors) * kTile);
  f.p = f.q + kAttentionVectors * f.pitch;
  std::uint8_t* buffer = f.p + static_cast<std::size_t>(kAttentionVectors) * 2 * kTile;
  for (std::uint32_t j = a.d; j < wide; ++j) x.q[j] = 0.0F;
  std::uint32_t lo = 0xFFFFFFFFu, hi = 0;
  for (std::uint32_t row = a.row0; row < a.row1; ++row)
    for (std::uint32_t h = a.head0; h < a.head0 + a.heads; ++h) {
      const std::uint32_t i = x.n++;
      std::memcpy(x.q, a.q + static_cast<std::size_t>(row) * a.q_stride + static_cast<std::size_t>(h) * a.d, a.d * sizeof(float));
      turn_back(x.q, a.d);
      const Rounded r = round_fine(x.q, wide, f.q + i * f.pitch);
      f.q_scale[i] = r.scale;
      f.q_sum[i] = r.sum;
      x.m[i] = -__builtin_inff();
      x.row[i] = row;
      x.head[i] = h;
      x.range[i] = visible(a, row);
      if (x.range[i].lo < lo) lo = x.range[i].lo;
      if (x.range[i].hi > hi) hi = x.range[i].hi;
    }
  for (std::size_t j = 0; j < static_cast<std::size_t>(x.n) * a.dvp; ++j) x.o[j] = 0.0F;
  for (std::uint32_t tile = lo / kTile; tile * kTile < hi; ++tile) {
    CodeTile mem;
    find_tile(a, tile, lo, hi, buffer, mem);
    for_equal_ranges(x, tile, [&](std::uint32_t i, std::uint32_t n, Range seen) { run_group<Bits>(a, x, f, i, n, tile, seen, mem); });
  }
  for (std::uint32_t i = 0; i < x.n; ++i) {
    turn_back(x.o + static_cast<std::size_t>(i) * a.dvp, a.dv);
    finish(a, x, i);
  }
}

}  // namespace

void attention_heads(const Attention& a) { return a.codes.bits == 8 ? run<8>(a) : run<4>(a); }

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
