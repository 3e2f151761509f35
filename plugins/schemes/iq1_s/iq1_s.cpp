// IQ1_S: 256 values in 50 bytes: d (F16), 32 bytes of points of eight, then for each group of 32 a word of 16 bits: the upper three bits of
// its four points, a 3-bit scale, and the sign of the offset. w = d * (2 * scale + 1) * (level + offset), levels -1, 0, 1, offset 1/8 or
// -1/8.
#include <mekik/block_scheme.hpp>
#include "../common/iq1_grid.hpp"

namespace {

using namespace mekik_blocks;

struct IQ1_SParts {
  static constexpr const char *kName = "iq1_s", *kSummary = "GGUF IQ1_S: 1.56 bits a value, 2048 points of eight values.";
  static constexpr std::uint32_t kBytes = 50, kGroup = 32;
  static constexpr auto kTable = kIq1Table;
  static constexpr float kUnit = 0.125f;
  static std::uint16_t super(const std::uint8_t* block) { return load_u16(block); }
  static void unpack_block(const std::uint8_t* block, std::uint8_t* scales, std::uint8_t* codes) {
    for (std::size_t g = 0; g < 8; ++g) {
      const unsigned word = load_u16(block + 34 + 2 * g);
      scales[g] = odd((word >> 12) & 7u);
      for (std::size_t i = 0; i < 4; ++i)
        offset_codes(kGrid.points[block[2 + 4 * g + i] | (((word >> (3 * i)) & 7u) << 8)], word >> 15 != 0, codes + 32 * g + 8 * i);
    }
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.iq1_s", "1.0", mekik::blocks::block_scheme<LatticeBlock<IQ1_SParts>>());
