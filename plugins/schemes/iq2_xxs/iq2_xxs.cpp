// IQ2_XXS: 256 values in 66 bytes: d (F16), then for each group of 32 four bytes that name points of eight, and 32 bits: four times seven
// signs, and a 4-bit scale at the top. w = d * (2 * scale + 1) / 8 * level, levels 8, 25 and 43 with their signs.
#include <mekik/block_scheme.hpp>
#include "grid.hpp"

namespace {

using namespace mekik_blocks;

struct IQ2_XXSParts {
  static constexpr const char *kName = "iq2_xxs", *kSummary = "GGUF IQ2_XXS: 2.06 bits a value, 256 points of eight values.";
  static constexpr std::uint32_t kBytes = 66, kGroup = 32;
  static constexpr auto kTable = kIq2Table;
  static constexpr float kUnit = 0.125f;
  static std::uint16_t super(const std::uint8_t* block) { return load_u16(block); }
  static void unpack_block(const std::uint8_t* block, std::uint8_t* scales, std::uint8_t* codes) {
    for (std::size_t g = 0; g < 8; ++g) {
      const std::uint8_t* group = block + 2 + 8 * g;
      const std::uint32_t rest = load_u32(group + 4);
      scales[g] = odd(rest >> 28);
      for (std::size_t i = 0; i < 4; ++i) signed_codes(kGrid.points[group[i]], even_signs(rest >> (7 * i)), 8, 3, codes + 32 * g + 8 * i);
    }
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.iq2_xxs", "1.0", mekik::blocks::block_scheme<LatticeBlock<IQ2_XXSParts>>());
