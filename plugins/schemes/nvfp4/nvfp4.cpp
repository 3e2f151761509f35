// NVFP4 of GGUF: 64 values in 36 bytes: four scales (E4M3 without sign) for groups of 16, then 4-bit codes, of each group eight bytes with
// value i in the low and i + 8 in the high half of byte i. w = (scale / 2) * table[code] over the table of doubled E2M1.
// In ggml 0x7f, NaN in the standard, is zero; in the form the scales are therefore the F16 numbers that they stand for.
#include "../common/block.hpp"
#include "../common/codebook.hpp"

namespace {

using namespace mekik_blocks;

// The top bit is not looked at, but 0xff is a number.
float half_scale(std::uint8_t bits) {
  if (bits == 0x7F) return 0;
  return bits == 0xFF ? 240.0f : 0.5f * mekik::from_ue4m3(bits);
}

struct NVFP4 {
  static constexpr const char *kName = "nvfp4", *kSummary = "GGUF NVFP4: 4-bit floats, an 8-bit float scale for 16.";
  static constexpr std::uint32_t kElems = 64, kBytes = 36, kGroups = 4, kGroup = 16;
  static void form(mekik_form& form) { codebook_form(form, kFp4, kGroup, MEKIK_F16); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    for (std::size_t g = 0; g < kGroups; ++g) store_f16(out.scale + 2 * g, half_scale(block[g]));
    unpack_codes(block + kGroups, out.codes);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t codes[kElems];
    unpack_codes(block + kGroups, codes);
    for (std::size_t g = 0; g < kGroups; ++g) decode_codebook(half_scale(block[g]), kFp4, codes + g * kGroup, kGroup, out + g * kGroup);
  }
  // The largest value of a group meets 6, as in ggml.
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    for (std::size_t g = 0; g < kGroups; ++g) {
      const float* from = x + g * kGroup;
      std::uint8_t codes[kGroup];
      block[g] = encode_scaled(
          from, importance != nullptr ? importance + g * kGroup : nullptr, kGroup, to_e4m3(largest_magnitude(from, kGroup) / 6.0f), 2, 0x7E,
          [](int code) { return half_scale(static_cast<std::uint8_t>(code)); }, codes);
      for (std::size_t i = 0; i < 8; ++i) block[kGroups + g * 8 + i] = static_cast<std::uint8_t>(codes[i] | (codes[i + 8] << 4));
    }
  }

 private:
  static void unpack_codes(const std::uint8_t* packed, std::uint8_t* codes) {
    for (std::size_t g = 0; g < kGroups; ++g)
      for (std::size_t i = 0; i < 8; ++i) {
        codes[g * kGroup + i] = packed[g * 8 + i] & 15u;
        codes[g * kGroup + i + 8] = packed[g * 8 + i] >> 4;
      }
  }
  // As ggml rounds: halves go up, and whatever reaches 256 becomes 448.
  static int to_e4m3(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const int exponent = static_cast<int>(bits >> 23) - 127 + 7;
    if (exponent <= 0) return std::min(static_cast<int>(x * 512.0f + 0.5f), 7);
    const int code = (exponent << 3) + static_cast<int>((bits >> 20) & 7u) + static_cast<int>((bits >> 19) & 1u);
    return exponent >= 15 || code >= 0x78 ? 0x7E : code;
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.nvfp4", "1.0", mekik::blocks::block_scheme<NVFP4>());
