// IQ2_XS: 256 values in 74 bytes: d (F16), 32 words of 16 bits (a point of eight in nine bits, seven signs), eight bytes of 4-bit scales
// for groups of 16. w = d * (2 * scale + 1) / 8 * level, levels 8, 25 and 43 with their signs.
#include <mekik/block_scheme.hpp>
#include "grid.hpp"

namespace {

using namespace mekik_blocks;

struct IQ2_XSParts {
  static constexpr const char *kName = "iq2_xs", *kSummary = "GGUF IQ2_XS: 2.31 bits a value, 512 points of eight values.";
  static constexpr std::uint32_t kBytes = 74, kGroup = 16;
  static constexpr auto kTable = kIq2Table;
  static constexpr float kUnit = 0.125f;
  static std::uint16_t super(const std::uint8_t* block) { return load_u16(block); }
  static void unpack_block(const std::uint8_t* block, std::uint8_t* scales, std::uint8_t* codes) {
    for (std::size_t g = 0; g < 16; ++g) scales[g] = odd(nibble(block + 66, g));
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned word = load_u16(block + 2 + 2 * i);
      signed_codes(kGrid.points[word & 511u], even_signs(word >> 9), 8, 3, codes + 8 * i);
    }
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.iq2_xs", "1.0", mekik::blocks::block_scheme<LatticeBlock<IQ2_XSParts>>());
