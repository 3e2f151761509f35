// Q5_K: 256 values in 176 bytes: d and dmin (F16), 12 bytes of scales and minima as in Q4_K, 32 bytes with the fifth bit of each code, 128
// bytes with the lower four. w = (d * scale) * q - (dmin * min).
#include <mekik/block_scheme.hpp>
#include "../common/super.hpp"

namespace {

using namespace mekik_blocks;

struct Q5_K {
  static constexpr const char *kName = "q5_k", *kSummary = "GGUF Q5_K: 5 bits a value, 6-bit scales and minima for 32, F16 over 256.";
  static constexpr std::uint32_t kElems = 256, kBytes = 176, kGroups = 8;
  static void form(mekik_form& form) { super_form_min(form, 5, 32); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    std::memcpy(out.super, block, 2);
    std::memcpy(out.super_min, block + 2, 2);
    unpack_sixes(block + 4, out.scale, out.min);
    unpack_codes(block, out.codes);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t scales[kGroups], mins[kGroups], codes[kElems];
    unpack_sixes(block + 4, scales, mins);
    unpack_codes(block, codes);
    decode_super_min(load_f16(block), load_f16(block + 2), scales, mins, 32, codes, out);
  }
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    MinBlock<32> found;
    encode_super_min<32>(x, importance, 31, 63, found);
    store_u16(block, found.d);
    store_u16(block + 2, found.dmin);
    pack_sixes(found.scales, found.mins, block + 4);
    pack_super_bits(found.codes, 4, block + 16);
    pack_super_nibbles(found.codes, block + 48);
  }

 private:
  static void unpack_codes(const std::uint8_t* block, std::uint8_t* codes) {
    unpack_super_nibbles(block + 48, codes);
    unpack_super_bits(block + 16, 4, codes);
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.q5_k", "1.0", mekik::blocks::block_scheme<Q5_K>());
