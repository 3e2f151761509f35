// Attention over latents, which are keys and values at once: a stored row [dvp] is read as it lies, so a key's score is a sum over 16
// lanes along the row and one tree, 4 positions and 4 queries at a time. Data: Attention of kernels.hpp. Bound: 2 fma of 16 lanes a cycle.
#include "isa/float_gemm.hpp"
#include "isa/head_rows.hpp"
#include "isa/rows.hpp"
#include "isa/soften.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

namespace {

constexpr std::uint32_t kSide = V::kFloatColumns >= 12 ? 4 : 2;  // positions, and queries, side by side in registers

// Rows of a tile; those that nobody sees are nullptr.
struct Rows {
  const std::uint8_t* row[kTile];
};

template <Num N>
MK_INLINE void find_rows(const Attention& a, std::uint32_t tile, std::uint32_t lo, std::uint32_t hi, Rows& out) {
  for (std::uint32_t t = 0; t < kTile; ++t) {
    const std::uint32_t p = tile * kTile + t;
    out.row[t] = nullptr;
    if (p < lo || p >= hi) continue;
    const std::uint8_t* block = a.base + static_cast<std::uint64_t>(a.table[p / a.block_tokens]) * a.block_bytes;
    out.row[t] = block + a.v_off + static_cast<std::size_t>(p % a.block_tokens) * a.dvp * num_bytes(N);
  }
}

// The same from integers, as floats [kTile][dvp] in `to`; one more row behind them is used.
void decode_rows(const Attention& a, std::uint32_t tile, std::uint32_t lo, std::uint32_t hi, float* to, Rows& out) {
  const LatentLayout& l = a.latents;
  float* rest = to + static_cast<std::size_t>(kTile) * a.dvp;
  for (std::uint32_t t = 0; t < kTile; ++t, to += a.dvp) {
    const std::uint32_t p = tile * kTile + t;
    out.row[t] = nullptr;
    if (p < lo || p >= hi) continue;
    const std::uint8_t* block = a.base + static_cast<std::uint64_t>(a.table[p / a.block_tokens]) * a.block_bytes;
    const std::uint8_t* row = block + a.v_off + static_cast<std::size_t>(p % a.block_tokens) * l.bytes();
    decode_value(row, l.bits, from_bf16(row + l.scales()), l.dv, to);
    decode_value(row + l.part(l.dv), l.bits, from_bf16(row + l.scales() + 2), l.rot, rest);
    for (std::uint32_t i = l.dv; i < a.dvp; ++i) to[i] = i - l.dv < l.rot ? rest[i - l.dv] : 0.0F;
    out.row[t] = reinterpret_cast<const std::uint8_t*>(to);
  }
}

template <Num N, std::uint32_t NQ>
MK_INLINE void score(const Attention& a, const float* q, const std::uint8_t* const* rows, float* s) {  // s [NQ][kTile]
  V::F sum[NQ][kSide];
  for (std::uint32_t i = 0; i < NQ; ++i)
    for (std::uint32_t t = 0; t < kSide; ++t) sum[i][t] = V::zero();
  for (std::uint32_t c = 0; c < a.dvp; c += 16) {
    V::F k[kSide];
#pragma GCC unroll 4
    for (std::uint32_t t = 0; t < kSide; ++t) k[t] = load_num<N>(rows[t] + static_cast<std::size_t>(c) * num_bytes(N));
#pragma GCC unroll 4
    for (std::uint32_t i = 0; i < NQ; ++i) {
      const V::F x = V::load(q + static_cast<std::size_t>(i) * a.dvp + c);
#pragma GCC unroll 4
      for (std::uint32_t t = 0; t < kSide; ++t) sum[i][t] = V::fma(x, k[t], sum[i][t]);
    }
  }
  for (std::uint32_t i = 0; i < NQ; ++i)
    for (std::uint32_t t = 0; t < kSide; ++t) s[i * kTile + t] = V::reduce_add(sum[i][t]);
}

// Queries i .. i + c see the positions `seen` of this tile.
template <Num N>
void run_group(const Attention& a, Vectors& x, std::uint32_t i, std::uint32_t c, std::uint32_t tile, Range seen, const Rows& rows) {
  const std::uint32_t t0 = tile * kTile, lo = seen.lo - t0, hi = seen.hi - t0;
  float* s = x.s + static_cast<std::size_t>(i) * kTile;
  for (std::uint32_t j = 0; j < c * kTile; j += 16) V::store(s + j, V::zero());
  for (std::uint32_t t = lo / kSide * kSide; t < hi; t += kSide) {
    const std::uint8_t* at[kSide];
    for (std::uint32_t u = 0; u < kSide; ++u) at[u] = t + u >= lo && t + u < hi ? rows.row[t + u] : rows.row[lo];  // masked below
    std::uint32_t j = 0;
    for (; j + kSide <= c; j += kSide) score<N, kSide>(a, x.q + static_cast<std::size_t>(i + j) * a.dvp, at, s + j * kTile + t);
    for (; j < c; ++j) score<N, 1>(a, x.q + static_cast<std::size_t>(i + j) * a.dvp, at, s + j * kTile + t);
  }
  for (std::uint32_t j = i; j < i + c; ++j) soften(a, x, j, tile, seen);
  for (std::uint32_t j = i; j < i + c; ++j) {
    if (x.shrink[j] == 1.0F) continue;
    float* o = x.o + static_cast<std::size_t>(j) * a.dvp;
    for (std::uint32_t k = 0; k < a.dv; k += 16) V::store(o + k, V::mul(V::load(o + k), V::set1(x.shrink[j])));
  }
  // Rows of one block follow each other: as many as do are one product.
  const std::size_t pitch = static_cast<std::size_t>(a.dvp) * num_bytes(N);
  for (std::uint32_t t = lo; t < hi;) {
    std::uint32_t end = t + 1;
    while (end < hi && rows.row[end] == rows.row[end - 1] + pitch) ++end;
    for (std::uint32_t k = 0; k < a.dv; k += 16)
      mac_columns<N>(rows.row[t] + static_cast<std::size_t>(k) * num_bytes(N), a.dvp, end - t, s + t, kTile, c,
                     x.o + static_cast<std::size_t>(i) * a.dvp + k, a.dvp);
    t = end;
  }
}

MK_INLINE void take_query(const Attention& a, std::uint32_t row, std::uint32_t head, float* q) {
  const float* latent = a.q + static_cast<std::size_t>(row) * a.q_stride + static_cast<std::size_t>(head) * a.dv;
  const float* turned = a.q_rot + static_cast<std::size_t>(row) * a.q_rot_stride + static_cast<std::size_t>(head) * a.rot;
  for (std::uint32_t i = 0; i < a.dvp; ++i) q[i] = i < a.dv ? latent[i] : i < a.dv + a.rot ? turned[i - a.dv] : 0.0F;
}

template <Num N>
void run(const Attention& a) {
  Vectors x{};
  x.q = a.scratch;
  x.o = x.q + static_cast<std::size_t>(kAttentionVectors) * a.dvp;
  x.s = x.o + static_cast<std::size_t>(kAttentionVectors) * a.dvp;
  float* decoded = x.s + static_cast<std::size_t>(kAttentionVectors) * kTile;
  const bool integers = a.latents.bits != 0;
  std::uint32_t lo = 0xFFFFFFFFu, hi = 0;
  for (std::uint32_t row = a.row0; row < a.row1; ++row)
    for (std::uint32_t h = a.head0; h < a.head0 + a.heads; ++h) {
      const std::uint32_t i = x.n++;
      take_query(a, row, h, x.q + static_cast<std::size_t>(i) * a.dvp);
      if (integers) {
        turn_back(x.q + static_cast<std::size_t>(i) * a.dvp, a.dv);
        turn_back(x.q + static_cast<std::size_t>(i) * a.dvp + a.dv, a.rot);
      }
      x.m[i] = -__builtin_inff();
      x.row[i] = row;
      x.head[i] = h;
      x.range[i] = visible(a, row);
      if (x.range[i].lo < lo) lo = x.range[i].lo;
      if (x.range[i].hi > hi) hi = x.range[i].hi;
    }
  for (std::size_t j = 0; j < static_cast<std::size_t>(x.n) * a.dvp; ++j) x.o[j] = 0.0F;
  for (std::uint32_t tile = lo / kTile; tile * kTile < hi; ++tile) {
    Rows rows;
    if (integers) decode_rows(a, tile, lo, hi, decoded, rows);
    else find_rows<N>(a, tile, lo, hi, rows);
    for_equal_ranges(x, tile, [&](std::uint32_t i, std::uint32_t n, Range seen) { run_group<N>(a, x, i, n, tile, seen, rows); });
  }
  for (std::uint32_t i = 0; i < x.n; ++i) {
    if (integers) turn_back(x.o + static_cast<std::size_t>(i) * a.dvp, a.dv);
    finish(a, x, i);
  }
}

}  // namespace

void latent(const Attention& a) {
  if (a.latents.bits != 0) return run<Num::f32>(a);
  switch (a.kv) {
    case Num::f16:
      return run<Num::f16>(a);
    case Num::bf16:
      return run<Num::bf16>(a);
    default:
      return run<Num::f32>(a);
  }
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
