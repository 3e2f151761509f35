// IQ4_NL: 32 values in 18 bytes: d (F16), then 4-bit codes, value i in the low and i + 16 in the high half of byte i. w = d * table[code].
#include <mekik/block_scheme.hpp>
#include "../common/iq4.hpp"
#include "../common/legacy.hpp"

namespace {

using namespace mekik_blocks;

struct IQ4_NL {
  static constexpr const char *kName = "iq4_nl", *kSummary = "GGUF IQ4_NL: 4-bit codes into a fixed table, an F16 scale for 32.";
  static constexpr std::uint32_t kElems = 32, kBytes = 18, kGroups = 1;
  static void form(mekik_form& form) { codebook_form(form, kIq4, kElems, MEKIK_F16); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    std::memcpy(out.scale, block, 2);
    unpack_nibbles(block + 2, out.codes);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t codes[kElems];
    unpack_nibbles(block + 2, codes);
    decode_codebook(load_f16(block), kIq4, codes, kElems, out);
  }
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    float w[kElems];
    iq4_weights(x, importance, kElems, w);
    std::uint8_t codes[kElems];
    store_f16(block, search_iq4(x, w, kElems));
    encode_entries(kIq4, load_f16(block), x, nullptr, kElems, codes);
    pack_nibbles(codes, block + 2);
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.iq4_nl", "1.0", mekik::blocks::block_scheme<IQ4_NL>());
