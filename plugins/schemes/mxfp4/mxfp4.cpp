// MXFP4 of GGUF: 32 values in 17 bytes: an exponent (E8M0), then 4-bit codes, value i in the low and i + 16 in the high half of byte i.
// w = 2^(e - 128) * table[code] over the table of doubled E2M1. 255, NaN in the standard, is 2^127 here, as in ggml.
#include "../common/block.hpp"
#include "../common/codebook.hpp"
#include "../common/legacy.hpp"

namespace {

using namespace mekik_blocks;

struct MXFP4 {
  static constexpr const char *kName = "mxfp4", *kSummary = "GGUF MXFP4: 4-bit floats, a power of two for 32.";
  static constexpr std::uint32_t kElems = 32, kBytes = 17, kGroups = 1;
  static void form(mekik_form& form) { codebook_form(form, kFp4, kElems, MEKIK_E8M0_HALF); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    out.scale[0] = block[0];
    unpack_nibbles(block + 1, out.codes);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t codes[kElems];
    unpack_nibbles(block + 1, codes);
    decode_codebook(mekik::from_e8m0_half(block[0]), kFp4, codes, kElems, out);
  }
  // The largest value lies between 4 and 8 of the undoubled table, as in ggml.
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    const float largest = largest_magnitude(x, kElems);
    const int exponent = largest > 0 ? std::clamp(std::ilogb(largest) - 2 + 127, 0, 254) : 0;
    std::uint8_t codes[kElems];
    block[0] = encode_scaled(
        x, importance, kElems, exponent, 1, 254, [](int code) { return mekik::from_e8m0_half(static_cast<std::uint8_t>(code)); }, codes);
    pack_nibbles(codes, block + 1);
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.mxfp4", "1.0", mekik::blocks::block_scheme<MXFP4>());
