// Vector codebooks (IQ1, IQ2, IQ3): a code names a point of a lattice, that is 4 or 8 values at once, and signs or an offset stand apart.
// The values are few all the same, six or sixteen a type, all under a scale (2 * s + 1) * d of a group. So these types, too, factor exactly
// into codebooks, of one value each: w = (d * (2 * s + 1)) * table[code], all of it exact in F32 before the last product.
#pragma once
#include <mekik/plugin.h>

#include <array>

#include "codebook.hpp"

namespace mekik_blocks {

inline constexpr std::size_t kLattice = 256;  // values of a block

// Points of a lattice of D coordinates 0 .. L - 1 in ascending order, the last coordinate the most significant digit. `members` has a bit
// for each of the L^D points.
template <std::size_t Points, std::size_t D, std::size_t L>
struct Grid {
  static constexpr std::size_t all() {
    std::size_t count = 1;
    for (std::size_t i = 0; i < D; ++i) count *= L;
    return count;
  }
  static constexpr std::size_t kWords = (all() + 63) / 64;
  std::uint8_t points[Points][D] = {};

  constexpr Grid(const std::uint64_t (&members)[kWords]) {
    std::size_t at = 0;
    for (std::size_t point = 0; point < all(); ++point) {
      if (((members[point / 64] >> (point % 64)) & 1u) == 0) continue;
      std::size_t rest = point;
      for (std::size_t i = 0; i < D; ++i, rest /= L) points[at][i] = static_cast<std::uint8_t>(rest % L);
      ++at;
    }
  }
};

// Seven signs of eight: the eighth makes the number of minus signs even.
inline unsigned even_signs(unsigned seven) {
  const unsigned parity = static_cast<unsigned>(__builtin_popcount(seven & 127u)) & 1u;
  return (seven & 127u) | (parity << 7);
}

// Codes of n values: the table ascends and is symmetric, so the levels count away from its middle.
inline void signed_codes(const std::uint8_t* levels, unsigned signs, std::size_t n, std::uint8_t middle, std::uint8_t* codes) {
  for (std::size_t i = 0; i < n; ++i)
    codes[i] = static_cast<std::uint8_t>(((signs >> i) & 1u) != 0 ? middle - 1 - levels[i] : middle + levels[i]);
}

inline std::uint32_t load_u32(const std::uint8_t* from) { return load_u16(from) | (std::uint32_t{load_u16(from + 2)} << 16); }
inline std::uint8_t nibble(const std::uint8_t* packed, std::size_t i) { return (packed[i / 2] >> (4 * (i % 2))) & 15u; }
inline std::uint8_t odd(unsigned scale) { return static_cast<std::uint8_t>(2 * scale + 1); }

// What a type is made of: kBytes, kGroup (values under a scale), kTable, kUnit (of the table's integers); and of one block the number under
// which its scales are, the scales (odd integers) and the codes.
template <class T>
struct LatticeBlock : T {
  static constexpr std::uint32_t kElems = kLattice, kGroups = kLattice / T::kGroup;

  static void form(mekik_form& form) {
    codebook_form(form, table().data(), T::kGroup, MEKIK_U8);
    form.bits = T::kTable.size() > 8 ? 4 : 3;
    form.n_table = static_cast<std::uint32_t>(T::kTable.size());
    form.table_unit = T::kUnit;
    form.super_k = kLattice;
    form.super_num = MEKIK_F16;
  }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    store_u16(out.super, T::super(block));
    T::unpack_block(block, out.scale, out.codes);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t scales[kGroups], codes[kLattice];
    T::unpack_block(block, scales, codes);
    const float d = mekik::from_f16(T::super(block));
    for (std::size_t g = 0; g < kGroups; ++g)
      decode_codebook(d * static_cast<float>(scales[g]), table().data(), codes + g * T::kGroup, T::kGroup, out + g * T::kGroup);
  }

 private:
  static const std::array<float, T::kTable.size()>& table() {
    static constexpr auto kValues = [] {
      std::array<float, T::kTable.size()> values{};
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = T::kUnit * static_cast<float>(T::kTable[i]);
      return values;
    }();
    return kValues;
  }
};

// Tables of integers: levels of IQ2, IQ3_XXS and IQ3_S with both signs; and -1, 0, 1 of IQ1 with an eighth added or taken.
inline constexpr std::array<int, 6> kIq2Table{-43, -25, -8, 8, 25, 43};
inline constexpr std::array<int, 16> kIq3XxsTable{-62, -52, -44, -36, -28, -20, -12, -4, 4, 12, 20, 28, 36, 44, 52, 62};
inline constexpr std::array<int, 16> kIq3STable{-15, -13, -11, -9, -7, -5, -3, -1, 1, 3, 5, 7, 9, 11, 13, 15};
inline constexpr std::array<int, 6> kIq1Table{-9, -7, -1, 1, 7, 9};

// Levels 0, 1, 2 of a point of IQ1 under one offset.
inline void offset_codes(const std::uint8_t* levels, bool below, std::uint8_t* codes) {
  for (std::size_t i = 0; i < 8; ++i) codes[i] = static_cast<std::uint8_t>(2 * levels[i] + (below ? 0 : 1));
}

}  // namespace mekik_blocks
