// Q5_0: 32 values in 22 bytes: d (F16), bit 4 of code i in bit i of a 32-bit word, then the low 4 bits as in Q4_0. w = d * (q - 16).
#include <mekik/block_scheme.hpp>
#include "../common/legacy.hpp"

namespace {

struct Q5_0 {
  static constexpr const char *kName = "q5_0", *kSummary = "GGUF Q5_0: 5 bits a value, an F16 scale for 32.";
  static constexpr std::uint32_t kElems = 32, kBytes = 22, kGroups = 1;
  static void form(mekik_form& form) { mekik_blocks::legacy_form(form, 5, 16); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    std::memcpy(out.scale, block, 2);
    mekik_blocks::unpack_fives(block + 2, out.codes);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t codes[kElems];
    mekik_blocks::unpack_fives(block + 2, codes);
    mekik_blocks::decode_signed(mekik_blocks::load_f16(block), 16, codes, out);
  }
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    std::uint8_t codes[kElems];
    mekik_blocks::store_f16(block, mekik_blocks::encode_signed(x, importance, 16, codes));
    mekik_blocks::pack_fives(codes, block + 2);
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.q5_0", "1.0", mekik::blocks::block_scheme<Q5_0>());
