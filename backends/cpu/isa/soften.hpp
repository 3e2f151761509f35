// What the kinds of attention share: which positions a row sees, and the softmax over tiles of 64 positions, counted from 0 and merged in
// ascending order. Positions that a row may not see are never part of a sum.
#pragma once
#include "isa/math.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

struct Range {
  std::uint32_t lo, hi;  // visible positions of a row
};

MK_INLINE Range visible(const Attention& a, std::uint32_t row) {
  const std::uint32_t position = a.context + row;
  std::uint32_t hi = a.causal ? position + 1 : a.length;
  std::uint32_t lo = a.window != 0 && position + 1 > a.window ? static_cast<std::uint32_t>(position + 1 - a.window) : 0;
  if (a.near && a.window != 0 && hi - position > a.window) hi = static_cast<std::uint32_t>(position + a.window);
  if (a.chunk != 0) {
    const std::uint64_t first = position / a.chunk * a.chunk;
    lo = first > lo ? static_cast<std::uint32_t>(first) : lo;
    hi = first + a.chunk < hi ? static_cast<std::uint32_t>(first + a.chunk) : hi;
  }
  return {lo, hi};
}

MK_INLINE Range within(Range r, std::uint32_t t0, std::uint32_t t1) { return {r.lo > t0 ? r.lo : t0, r.hi < t1 ? r.hi : t1}; }

MK_INLINE V::Mask lanes_between(std::uint32_t from, Range r) {
  alignas(64) float seen[16];
  for (std::uint32_t i = 0; i < 16; ++i) seen[i] = from + i >= r.lo && from + i < r.hi ? 1.0F : 0.0F;
  return V::less(V::zero(), V::load(seen));
}

struct Vectors {
  float *q, *o, *s;  // [n][d], [n][dvp], [n][64]
  float m[kAttentionVectors], l[kAttentionVectors], shrink[kAttentionVectors];
  std::uint32_t row[kAttentionVectors], head[kAttentionVectors];
  Range range[kAttentionVectors];
  std::uint32_t n;
};

// f(i, n, seen) for vectors i .. i + n that see the same positions of a tile.
template <class F>
MK_INLINE void for_equal_ranges(const Vectors& x, std::uint32_t tile, F&& f) {
  const std::uint32_t t0 = tile * kTile, t1 = t0 + kTile;
  for (std::uint32_t i = 0; i < x.n;) {
    const Range seen = within(x.range[i], t0, t1);
    std::uint32_t j = i + 1;
    for (; j < x.n; ++j) {
      const Range other = within(x.range[j], t0, t1);
      if (other.lo != seen.lo || other.hi != seen.hi) break;
    }
    if (seen.lo < seen.hi) f(i, j - i, seen);
    i = j;
  }
}

// Scores of one vector in one tile become weights; the running maximum, sum and the factor for what was summed before follow.
MK_INLINE void soften(const Attention& a, Vectors& x, std::uint32_t i, std::uint32_t tile, Range seen) {
  float* s = x.s + static_cast<std::size_t>(i) * kTile;
  const float lowest = -__builtin_inff();
  const std::uint32_t t0 = tile * kTile;
  const bool whole = seen.lo <= t0 && seen.hi >= t0 + kTile;
  V::F v[4], top = V::set1(lowest);
#pragma GCC unroll 4
  for (std::uint32_t g = 0; g < 4; ++g) {
    v[g] = V::mul(V::set1(a.scale), V::load(s + 16 * g));
    if (a.softcap != 0.0F) v[g] = V::mul(V::set1(a.softcap), tanh(V::div(v[g], V::set1(a.softcap))));
    if (a.slopes != nullptr) {
      alignas(64) float distance[16];
      for (std::uint32_t j = 0; j < 16; ++j)
        distance[j] = static_cast<float>(static_cast<std::int64_t>(t0) + 16 * g + j - static_cast<std::int64_t>(a.context + x.row[i]));
      const V::F d = V::load(distance);
      v[g] = V::add(v[g], V::mul(V::set1(a.slopes[x.head[i]]), a.near ? negate(absolute(d)) : d));
    }
    if (!whole) v[g] = V::select(lanes_between(t0 + 16 * g, seen), v[g], V::set1(lowest));
    top = V::max(top, v[g]);
  }
  const float tile_top = V::reduce_max(top), before = x.m[i], m = before > tile_top ? before : tile_top;
  const V::F mv = V::set1(m == lowest ? 0.0F : m);
  V::F sum[4];
#pragma GCC unroll 4
  for (std::uint32_t g = 0; g < 4; ++g) {
    sum[g] = exp(V::sub(v[g], mv));
    V::store(s + 16 * g, sum[g]);
  }
  const float shrink = before == lowest ? 0.0F : before == m ? 1.0F : V::reduce_max(exp(V::set1(before - m)));
  x.m[i] = m;
  x.shrink[i] = shrink;
  x.l[i] = __builtin_fmaf(x.l[i], shrink, V::reduce_add(V::add(V::add(sum[0], sum[1]), V::add(sum[2], sum[3]))));
}

MK_INLINE void finish(const Attention& a, Vectors& x, std::uint32_t i) {
  float by = 1.0F / x.l[i];
  if (a.sinks != nullptr) {
    const float sink = a.sinks[x.head[i]], m = x.m[i] > sink ? x.m[i] : sink;
    const float keep = V::reduce_max(exp(V::set1(x.m[i] - m)));
    by = keep / __builtin_fmaf(x.l[i], keep, V::reduce_max(exp(V::set1(sink - m))));
  }
  const float* o = x.o + static_cast<std::size_t>(i) * a.dvp;
  float* out = a.out + static_cast<std::size_t>(x.row[i]) * a.out_stride + static_cast<std::size_t>(x.head[i]) * a.dv;
  std::uint32_t k = 0;
  for (; k + 16 <= a.dv; k += 16) V::store(out + k, V::mul(V::load(o + k), V::set1(by)));
  if (k < a.dv) store_tail(out + k, a.dv - k, V::mul(V::load(o + k), V::set1(by)));
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
