// Small floats of checkpoints, as tables of a codebook, and grids of scales over a matrix.
#pragma once
#include "factored.hpp"

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {
#endif
namespace checkpoint {

inline bool is_fp8(std::uint32_t num) { return num == MEKIK_E4M3 || num == MEKIK_E5M2; }

// All 256 values of an 8-bit float.
inline std::vector<float> table_of(std::uint32_t num) {
  std::vector<float> out(256);
  for (std::uint32_t i = 0; i < 256; ++i) {
    const auto byte = static_cast<std::uint8_t>(i);
    out[i] = load_num(num, &byte, 0);
  }
  return out;
}

// E2M1 (4 bits) and E2M3 (6 bits): a sign, two bits of exponent, no infinities. Minus zero keeps its sign.
inline std::vector<float> table_fp4() { return {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6}; }
inline std::vector<float> table_fp6() {
  std::vector<float> out(64);
  for (int i = 0; i < 32; ++i) {
    const int exponent = i / 8, fraction = i % 8;
    out[static_cast<std::size_t>(i)] =
        exponent == 0 ? static_cast<float>(fraction) / 8 : std::ldexp(1 + static_cast<float>(fraction) / 8, exponent - 1);
    out[static_cast<std::size_t>(i) + 32] = -out[static_cast<std::size_t>(i)];
  }
  return out;
}

inline void codebook(Weight& w, std::vector<float> table, std::uint32_t bits, float unit = 0) {
  w.kind = MEKIK_FORM_CODEBOOK;
  w.table = std::move(table);
  w.bits = bits;
  w.table_unit = unit;
}

// Scales over a matrix of n x k: one for block_n rows of block_k columns, the last blocks may be short.
struct Grid {
  std::uint64_t block_n = 1, block_k = 1, columns = 1;
};

inline std::uint64_t blocks_of(std::uint64_t size, std::uint64_t each) { return (size + each - 1) / each; }

// Blocks that the configuration names: their scales have one shape.
inline Grid block_grid(const Part& scales, std::uint64_t n, std::uint64_t k, std::uint64_t block_n, std::uint64_t block_k) {
  block_n = std::min(block_n, n);
  block_k = std::min(block_k, k);
  const std::uint64_t down = blocks_of(n, block_n), across = blocks_of(k, block_k);
  const bool fits = scales.rank() == 2 ? scales.size(0) == down && scales.size(1) == across : down * across == 1 && scales.elements() == 1;
  if (!fits)
    wrong(scales.name() + " has shape " + scales.shape() + ", which is no grid of " + std::to_string(block_n) + " x " +
          std::to_string(block_k) + " blocks over " + std::to_string(n) + " x " + std::to_string(k));
  return {block_n, block_k, across};
}

// What the shape of the scales says: one for all, one a row, or a matrix of blocks, configured (0: not) or of equal size.
inline Grid grid_of(const Part& scales, std::uint64_t n, std::uint64_t k, std::uint64_t block_n = 0, std::uint64_t block_k = 0) {
  if (block_n != 0 && block_k != 0) return block_grid(scales, n, k, block_n, block_k);
  const std::uint64_t all = scales.elements();
  if (all == 0) wrong(scales.name() + " is empty");
  if (all == 1) return {n, k, 1};
  if (all == n && (scales.rank() == 1 || scales.size(scales.rank() - 1) == 1)) return {1, k, 1};
  if (scales.rank() != 2)
    wrong(scales.name() + " has shape " + scales.shape() + ", which is no grid of scales over " + std::to_string(n) + " x " +
          std::to_string(k));
  const std::uint64_t down = scales.size(0), across = scales.size(1);
  if (down == 0 || across == 0 || n % down != 0 || k % across != 0)
    wrong(scales.name() + " has shape " + scales.shape() + ", which is no grid of equal blocks over " + std::to_string(n) + " x " +
          std::to_string(k));
  return {n / down, k / across, across};
}

// How the numbers of scales are to be read: bytes are exponents (E8M0), where the format has such.
inline std::uint32_t grid_num(const Part& scales, bool exponents = true) {
  if (exponents && scales.num() == MEKIK_U8) return MEKIK_E8M0;
  scales.need_num({MEKIK_F32, MEKIK_F16, MEKIK_BF16, MEKIK_E8M0, MEKIK_E4M3}, "float");
  return scales.num();
}

// Rows n0 .. n1 of a grid, spread over the rows.
inline std::vector<std::uint8_t> grid_rows(const Grid& grid, const Part& scales, std::uint64_t n0, std::uint64_t n1) {
  const std::uint64_t a = n0 / grid.block_n, b = blocks_of(n1, grid.block_n);
  const std::vector<std::uint8_t> lines = scales.raw(a * grid.columns, (b - a) * grid.columns);
  const std::size_t line = grid.columns * scales.number_bytes();
  std::vector<std::uint8_t> out((n1 - n0) * line);
  for (std::uint64_t n = n0; n < n1; ++n) std::memcpy(out.data() + (n - n0) * line, lines.data() + (n / grid.block_n - a) * line, line);
  return out;
}
inline void fill_grid(const Grid& grid, const Part& scales, std::uint64_t n0, std::uint64_t n1, Numbers& out) {
  out.scale = grid_rows(grid, scales, n0, n1);
}

// The same, each combined with a number of the whole tensor, in F32.
template <class F>
void fill_grid_with(const Grid& grid, const Part& scales, std::uint32_t num, std::uint64_t n0, std::uint64_t n1, F&& combine,
                    Numbers& out) {
  const std::vector<std::uint8_t> rows = grid_rows(grid, scales, n0, n1);
  for (std::uint64_t i = 0; i < (n1 - n0) * grid.columns; ++i) numbers::store(out.scale.data(), i, combine(load_num(num, rows.data(), i)));
}

// Codes of four bits, two a byte, the first in the low half.
inline void fill_nibbles(const Part& packed, std::uint64_t first, std::vector<std::uint8_t>& codes) {
  const std::vector<std::uint8_t> bytes = packed.raw(first / 2, codes.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    codes[2 * i] = bytes[i] & 15;
    codes[2 * i + 1] = bytes[i] >> 4;
  }
}

}  // namespace checkpoint
#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
