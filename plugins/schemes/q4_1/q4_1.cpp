// Q4_1: 32 values in 20 bytes: d and m (F16), then 4-bit codes as in Q4_0. w = d * q + m.
#include <mekik/block_scheme.hpp>
#include "../common/legacy.hpp"

namespace {

struct Q4_1 {
  static constexpr const char *kName = "q4_1", *kSummary = "GGUF Q4_1: 4 bits a value, an F16 scale and minimum for 32.";
  static constexpr std::uint32_t kElems = 32, kBytes = 20, kGroups = 1;
  static void form(mekik_form& form) { mekik_blocks::legacy_form_min(form, 4); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    mekik_blocks::unpack_scale_min(block, out.scale, out.min);
    mekik_blocks::unpack_nibbles(block + 4, out.codes);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t codes[kElems];
    mekik_blocks::unpack_nibbles(block + 4, codes);
    mekik_blocks::decode_min(mekik_blocks::load_f16(block), mekik_blocks::load_f16(block + 2), codes, out);
  }
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    std::uint8_t codes[kElems];
    mekik_blocks::encode_min(x, importance, 15, block, codes);
    mekik_blocks::pack_nibbles(codes, block + 4);
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.q4_1", "1.0", mekik::blocks::block_scheme<Q4_1>());
