// Attention over paged K and V, one kv head at a time. Tiles of 64 positions counted from 0, merged in ascending order (online softmax);
// scores have 16 positions in lanes, outputs 16 columns of V. Positions that a row may not see are never part of a sum.
#include "isa/float_gemm.hpp"
#include "isa/head_rows.hpp"
#include "isa/rows.hpp"
#include "isa/soften.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

namespace {

// One tile's 16-position groups of K ([d][16]) and rows of V ([16][dvp]): in place, or gathered when blocks are not multiples of 16.
struct TileMemory {
  const std::uint8_t *k[4], *v[4];
};

template <Num N>
void gather_group(const Attention& a, std::uint32_t from, std::uint32_t lo, std::uint32_t hi, std::uint8_t* k, std::uint8_t* v) {
  constexpr std::size_t e = num_bytes(N);
  for (std::uint32_t t = 0; t < 16; ++t) {
    const std::uint32_t p = from + t;
    if (p < lo || p >= hi) continue;
    const std::uint8_t* block = a.base + static_cast<std::uint64_t>(a.table[p / a.block_tokens]) * a.block_bytes;
    const std::uint32_t row = p % a.block_tokens;
    const std::uint8_t* ks = block + a.k_off + static_cast<std::size_t>(row) * a.d * e;
    for (std::uint32_t i = 0; i < a.d; ++i) std::memcpy(k + (static_cast<std::size_t>(i) * 16 + t) * e, ks + i * e, e);
    std::memcpy(v + static_cast<std::size_t>(t) * a.dvp * e, block + a.v_off + static_cast<std::size_t>(row) * a.dvp * e, a.dvp * e);
  }
}

// Code i of a token's key or value, from its byte (HeadLayout).
MK_INLINE float code_of(std::uint8_t byte, std::uint32_t bits, bool upper) {
  if (bits == 8) return static_cast<float>(static_cast<std::int8_t>(byte));
  return static_cast<float>(static_cast<int>(upper ? byte >> 4 : byte & 15) - 8);
}

// As gather_group, from integers to floats.
void decode_group(const Attention& a, std::uint32_t from, std::uint32_t lo, std::uint32_t hi, float* k, float* v) {
  const HeadLayout& h = a.codes;
  const bool fine = h.bits == 8;
  for (std::uint32_t t = 0; t < 16; ++t) {
    const std::uint32_t p = from + t, row = p % a.block_tokens;
    if (p < lo || p >= hi) continue;
    const std::uint8_t* block = a.base + static_cast<std::uint64_t>(a.table[p / a.block_tokens]) * a.block_bytes;
    const std::uint8_t *ks = block + a.k_off, *vs = block + a.v_off;
    const float k_scale = from_bf16(ks + h.key_scales() + std::size_t{2} * row),
                v_scale = from_bf16(vs + h.value_scales() + std::size_t{2} * row);
    for (std::uint32_t i = 0; i < a.d; ++i)
      k[static_cast<std::size_t>(i) * 16 + t] = k_scale * code_of(ks[h.key_at(row, fine ? i : i / 8 * 4 + i % 4)], h.bits, i % 8 >= 4);
    for (std::uint32_t i = 0; i < a.dvp; ++i)
      v[static_cast<std::size_t>(t) * a.dvp + i] =
          v_scale * code_of(vs[h.value_at(row, fine ? i : i / 32 * 16 + i % 16)], h.bits, i % 32 >= 16);
  }
}

template <Num N>
MK_INLINE void find_tile(const Attention& a, std::uint32_t tile, std::uint32_t lo, std::uint32_t hi, std::uint8_t* buffer,
                         TileMemory& out) {
  constexpr std::size_t e = num_bytes(N);
  for (std::uint32_t g = 0; g < 4; ++g) {
    const std::uint32_t from = tile * kTile + g * 16;
    out.k[g] = out.v[g] = nullptr;
    if (from >= hi || from + 16 <= lo) continue;
    if (a.codes.bits == 0 && a.lanes) {
      const std::uint8_t* block = a.base + static_cast<std::uint64_t>(a.table[from / a.block_tokens]) * a.block_bytes;
      const std::uint32_t row = from % a.block_tokens;
      out.k[g] = block + a.k_off + static_cast<std::size_t>(row) * a.d * e;
      out.v[g] = block + a.v_off + static_cast<std::size_t>(row) * a.dvp * e;
    } else {
      std::uint8_t* k = buffer + static_cast<std::size_t>(g) * 16 * (a.d + a.dvp) * e;
      std::uint8_t* v = k + static_cast<std::size_t>(16) * a.d * e;
      if (a.codes.bits != 0) decode_group(a, from, lo, hi, reinterpret_cast<float*>(k), reinterpret_cast<float*>(v));
      else gather_group<N>(a, from, lo, hi, k, v);
      out.k[g] = k;
      out.v[g] = v;
    }
  }
}

// Vectors i .. i + c see the same positions of this tile.
template <Num N>
void run_group(const Attention& a, Vectors& x, std::uint32_t i, std::uint32_t c, std::uint32_t tile, Range seen, const TileMemory& mem) {
  constexpr std::size_t e = num_bytes(N);
  const std::uint32_t t0 = tile * kTile;
  float* s = x.s + static_cast<std::size_t>(i) * kTile;
  for (std::uint32_t j = 0; j < c * kTile; j += 16) V::store(s + j, V::zero());
  for (std::uint32_t g = 0; g < 4; ++g)
    if (t0 + 16 * g < seen.hi && t0 + 16 * g + 16 > seen.lo)
      mac_columns<N>(mem.k[g], 16, a.d, x.q + static_cast<std::size_t>(i) * a.d, a.d, c, s + 16 * g, kTile);
  for (std::uint32_t j = i; j < i + c; ++j) soften(a, x, j, tile, seen);
  for (std::uint32_t j = i; j < i + c; ++j) {
    if (x.shrink[j] == 1.0F) continue;
    float* o = x.o + static_cast<std::size_t>(j) * a.dvp;
    for (std::uint32_t k = 0; k < a.dvp; k += 16) V::store(o + k, V::mul(V::load(o + k), V::set1(x.shrink[j])));
  }
  for (std::uint32_t g = 0; g < 4; ++g) {
    const std::uint32_t from = t0 + 16 * g;
    if (from >= seen.hi || from + 16 <= seen.lo) continue;
    const std::uint32_t lo = seen.lo > from ? seen.lo - from : 0, hi = seen.hi < from + 16 ? seen.hi - from : 16;
    for (std::uint32_t k = 0; k < a.dvp; k += 16)
      mac_columns<N>(mem.v[g] + (static_cast<std::size_t>(lo) * a.dvp + k) * e, a.dvp, hi - lo, s + 16 * g + lo, kTile, c,
                     x.o + static_cast<std::size_t>(i) * a.dvp + k, a.dvp);
  }
}

template <Num N>
void run(const Attention& a) {
  Vectors x{};
  x.q = a.scratch;
  x.o = x.q + static_cast<std::size_t>(kAttentionVectors) * a.d;
  x.s = x.o + static_cast<std::size_t>(kAttentionVectors) * a.dvp;
  auto* buffer = reinterpret_cast<std::uint8_t*>(x.s + static_cast<std::size_t>(kAttentionVectors) * kTile);
  std::uint32_t lo = 0xFFFFFFFFu, hi = 0;
  for (std::uint32_t row = a.row0; row < a.row1; ++row)
    for (std::uint32_t h = a.head0; h < a.head0 + a.heads; ++h) {
      const std::uint32_t i = x.n++;
      std::memcpy(x.q + static_cast<std::size_t>(i) * a.d,
                  a.q + static_cast<std::size_t>(row) * a.q_stride + static_cast<std::size_t>(h) * a.d, a.d * sizeof(float));
      if (a.codes.bits != 0) turn_back(x.q + static_cast<std::size_t>(i) * a.d, a.d);
      x.m[i] = -__builtin_inff();
      x.row[i] = row;
      x.head[i] = h;
      x.range[i] = visible(a, row);
      if (x.range[i].lo < lo) lo = x.range[i].lo;
      if (x.range[i].hi > hi) hi = x.range[i].hi;
    }
  for (std::size_t j = 0; j < static_cast<std::size_t>(x.n) * a.dvp; ++j) x.o[j] = 0.0F;
  for (std::uint32_t tile = lo / kTile; tile * kTile < hi; ++tile) {
    TileMemory mem;
    find_tile<N>(a, tile, lo, hi, buffer, mem);
    for_equal_ranges(x, tile, [&](std::uint32_t i, std::uint32_t n, Range seen) { run_group<N>(a, x, i, n, tile, seen, mem); });
  }
  for (std::uint32_t i = 0; i < x.n; ++i) {
    if (a.codes.bits != 0) turn_back(x.o + static_cast<std::size_t>(i) * a.dvp, a.dv);
    finish(a, x, i);
  }
}

}  // namespace

void attention(const Attention& a) {
  if (a.codes.bits != 0) return a.exact ? run<Num::f32>(a) : attention_heads(a);
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
