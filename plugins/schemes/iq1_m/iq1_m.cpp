// IQ1_M: 256 values in 56 bytes: 32 bytes of points of eight, 16 bytes with four bits for each point (the upper three of its number, the
// sign of its offset), four words of 16 bits: each four 3-bit scales for groups of 16, and at its top four bits of d (F16), the lowest
// first. w = d * (2 * scale + 1) * (level + offset), levels -1, 0, 1, offset 1/8 or -1/8.
#include <mekik/block_scheme.hpp>
#include "../common/iq1_grid.hpp"

namespace {

using namespace mekik_blocks;

struct IQ1_MParts {
  static constexpr const char *kName = "iq1_m", *kSummary = "GGUF IQ1_M: 1.75 bits a value, 2048 points of eight values.";
  static constexpr std::uint32_t kBytes = 56, kGroup = 16;
  static constexpr auto kTable = kIq1Table;
  static constexpr float kUnit = 0.125f;
  static std::uint16_t super(const std::uint8_t* block) {
    unsigned d = 0;
    for (std::size_t i = 0; i < 4; ++i) d |= static_cast<unsigned>(block[49 + 2 * i] >> 4) << (4 * i);
    return static_cast<std::uint16_t>(d);
  }
  static void unpack_block(const std::uint8_t* block, std::uint8_t* scales, std::uint8_t* codes) {
    for (std::size_t g = 0; g < 16; ++g) scales[g] = odd((static_cast<unsigned>(load_u16(block + 48 + 2 * (g / 4))) >> (3 * (g % 4))) & 7u);
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned upper = nibble(block + 32, i);
      offset_codes(kGrid.points[block[i] | ((upper & 7u) << 8)], upper >> 3 != 0, codes + 8 * i);
    }
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.iq1_m", "1.0", mekik::blocks::block_scheme<LatticeBlock<IQ1_MParts>>());
