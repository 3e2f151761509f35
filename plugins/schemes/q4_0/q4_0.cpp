// Q4_0: 32 values in 18 bytes: d (F16), then 4-bit codes, value i in the low and i + 16 in the high half of byte i. w = d * (q - 8).
#include <mekik/block_scheme.hpp>
#include "../common/legacy.hpp"

namespace {

struct Q4_0 {
  static constexpr const char *kName = "q4_0", *kSummary = "GGUF Q4_0: 4 bits a value, an F16 scale for 32.";
  static constexpr std::uint32_t kElems = 32, kBytes = 18, kGroups = 1;
  static void form(mekik_form& form) { mekik_blocks::legacy_form(form, 4, 8); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    std::memcpy(out.scale, block, 2);
    mekik_blocks::unpack_nibbles(block + 2, out.codes);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t codes[kElems];
    mekik_blocks::unpack_nibbles(block + 2, codes);
    mekik_blocks::decode_signed(mekik_blocks::load_f16(block), 8, codes, out);
  }
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    std::uint8_t codes[kElems];
    mekik_blocks::store_f16(block, mekik_blocks::encode_signed(x, importance, 8, codes));
    mekik_blocks::pack_nibbles(codes, block + 2);
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.q4_0", "1.0", mekik::blocks::block_scheme<Q4_0>());
