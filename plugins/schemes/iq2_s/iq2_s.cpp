// IQ2_S: 256 values in 82 bytes: d (F16), 32 bytes of points of eight, 32 bytes of signs, the upper two bits of each point (8 bytes), eight
// bytes of 4-bit scales for groups of 16. w = d * (2 * scale + 1) / 8 * level, levels 8, 25 and 43 with their signs.
#include <mekik/block_scheme.hpp>
#include "grid.hpp"

namespace {

using namespace mekik_blocks;

struct IQ2_SParts {
  static constexpr const char *kName = "iq2_s", *kSummary = "GGUF IQ2_S: 2.56 bits a value, 1024 points of eight values.";
  static constexpr std::uint32_t kBytes = 82, kGroup = 16;
  static constexpr auto kTable = kIq2Table;
  static constexpr float kUnit = 0.125f;
  static std::uint16_t super(const std::uint8_t* block) { return load_u16(block); }
  static void unpack_block(const std::uint8_t* block, std::uint8_t* scales, std::uint8_t* codes) {
    const std::uint8_t *points = block + 2, *signs = block + 34, *upper = block + 66;
    for (std::size_t g = 0; g < 16; ++g) scales[g] = odd(nibble(block + 74, g));
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned point = points[i] | (((upper[i / 4] >> (2 * (i % 4))) & 3u) << 8);
      signed_codes(kGrid.points[point], signs[i], 8, 3, codes + 8 * i);
    }
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.iq2_s", "1.0", mekik::blocks::block_scheme<LatticeBlock<IQ2_SParts>>());
