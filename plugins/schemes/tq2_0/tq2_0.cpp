// TQ2_0: 256 values in 66 bytes: 64 bytes of 2-bit codes in two runs, then d (F16). w = d * (q - 1); q is 0 to 2 in files that ggml made,
// and 3 is 2 * d. Byte i of a run holds the codes i, i + 32, i + 64 and i + 96 of its 128, the lowest bits first.
#include <mekik/block_scheme.hpp>
#include "../common/super.hpp"
#include "../common/ternary.hpp"

namespace {

using namespace mekik_blocks;

struct TQ2_0 {
  static constexpr const char *kName = "tq2_0", *kSummary = "GGUF TQ2_0: ternary values of 2 bits, an F16 scale for 256.";
  static constexpr std::uint32_t kElems = 256, kBytes = 66, kGroups = 1;
  static void form(mekik_form& form) { ternary_form(form, kElems); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    std::memcpy(out.scale, block + 64, 2);
    unpack_super_pairs(block, out.codes);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t codes[kElems];
    unpack_super_pairs(block, codes);
    decode_ternary(load_f16(block + 64), codes, kElems, out);
  }
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    std::uint8_t codes[kElems];
    store_f16(block + 64, encode_ternary(x, importance, kElems, codes));
    pack_super_pairs(codes, block);
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.tq2_0", "1.0", mekik::blocks::block_scheme<TQ2_0>());
