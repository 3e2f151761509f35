// IQ3_XXS: 256 values in 98 bytes: d (F16), 64 bytes that name points of four, then for each group of 32 values 32 bits: four times seven
// signs, and a 4-bit scale at the top. w = d * (2 * scale + 1) / 4 * level, levels 4 to 62 with their signs.
#include <mekik/block_scheme.hpp>
#include "grid.hpp"

namespace {

using namespace mekik_blocks;

struct IQ3_XXSParts {
  static constexpr const char *kName = "iq3_xxs", *kSummary = "GGUF IQ3_XXS: 3.06 bits a value, 256 points of four values.";
  static constexpr std::uint32_t kBytes = 98, kGroup = 32;
  static constexpr auto kTable = kIq3XxsTable;
  static constexpr float kUnit = 0.25f;
  static std::uint16_t super(const std::uint8_t* block) { return load_u16(block); }
  static void unpack_block(const std::uint8_t* block, std::uint8_t* scales, std::uint8_t* codes) {
    for (std::size_t g = 0; g < 8; ++g) {
      const std::uint32_t rest = load_u32(block + 66 + 4 * g);
      scales[g] = odd(rest >> 28);
      for (std::size_t i = 0; i < 8; ++i)
        signed_codes(kGrid.points[block[2 + 8 * g + i]], even_signs(rest >> (7 * (i / 2))) >> (4 * (i % 2)), 4, 8, codes + 32 * g + 4 * i);
    }
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.iq3_xxs", "1.0", mekik::blocks::block_scheme<LatticeBlock<IQ3_XXSParts>>());
