// IQ3_S: 256 values in 110 bytes: d (F16), 64 bytes that name points of four, their ninth bits (8 bytes), 32 bytes of signs, four bytes of
// 4-bit scales for groups of 32. w = d * (2 * scale + 1) * level, levels 1, 3, .. 15 with their signs.
#include <mekik/block_scheme.hpp>
#include "grid.hpp"

namespace {

using namespace mekik_blocks;

struct IQ3_SParts {
  static constexpr const char *kName = "iq3_s", *kSummary = "GGUF IQ3_S: 3.44 bits a value, 512 points of four values.";
  static constexpr std::uint32_t kBytes = 110, kGroup = 32;
  static constexpr auto kTable = kIq3STable;
  static constexpr float kUnit = 1;
  static std::uint16_t super(const std::uint8_t* block) { return load_u16(block); }
  static void unpack_block(const std::uint8_t* block, std::uint8_t* scales, std::uint8_t* codes) {
    const std::uint8_t *points = block + 2, *upper = block + 66, *signs = block + 74;
    for (std::size_t g = 0; g < 8; ++g) scales[g] = odd(nibble(block + 106, g));
    for (std::size_t i = 0; i < 64; ++i) {
      const unsigned point = points[i] | (((upper[i / 8] >> (i % 8)) & 1u) << 8);
      signed_codes(kGrid.points[point], nibble(signs, i), 4, 8, codes + 4 * i);
    }
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.iq3_s", "1.0", mekik::blocks::block_scheme<LatticeBlock<IQ3_SParts>>());
