// Q3_K: 256 values in 110 bytes: 32 bytes with the third bit of each code, 64 bytes with the lower two, 12 bytes of sixteen 6-bit scales
// (stored + 32) for groups of 16, d (F16). w = (d * scale) * (q - 4).
// Scales: the low four bits of scale i are the low half of byte i (i < 8) or the high half of byte i - 8; its upper two are bits
// 2 * (i / 4) of byte 8 + i % 4.
#include <mekik/block_scheme.hpp>
#include "../common/super.hpp"

namespace {

using namespace mekik_blocks;

struct Q3_K {
  static constexpr const char *kName = "q3_k", *kSummary = "GGUF Q3_K: 3 bits a value, 6-bit scales for 16, F16 over 256.";
  static constexpr std::uint32_t kElems = 256, kBytes = 110, kGroups = 16;
  static void form(mekik_form& form) { super_form(form, 3, 16, MEKIK_I8, 4); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    unpack_codes(block, out.codes);
    std::int8_t scales[kGroups];
    unpack_scales(block + 96, scales);
    std::memcpy(out.scale, scales, kGroups);
    std::memcpy(out.super, block + 108, 2);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::int8_t scales[kGroups];
    std::uint8_t codes[kElems];
    unpack_scales(block + 96, scales);
    unpack_codes(block, codes);
    decode_super_signed(load_f16(block + 108), scales, 16, 4, codes, out);
  }
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    SignedBlock<16> found;
    encode_super_signed<16>(x, importance, 4, 32, found);
    pack_super_bits(found.codes, 2, block);
    pack_super_pairs(found.codes, block + 32);
    std::memset(block + 96, 0, 12);
    for (std::size_t i = 0; i < kGroups; ++i) {
      const unsigned stored = static_cast<unsigned>(found.scales[i] + 32);
      block[96 + i % 8] |= static_cast<std::uint8_t>((stored & 15u) << (4 * (i / 8)));
      block[104 + i % 4] |= static_cast<std::uint8_t>((stored >> 4) << (2 * (i / 4)));
    }
    store_u16(block + 108, found.d);
  }

 private:
  static void unpack_codes(const std::uint8_t* block, std::uint8_t* codes) {
    unpack_super_pairs(block + 32, codes);
    unpack_super_bits(block, 2, codes);
  }
  static void unpack_scales(const std::uint8_t* packed, std::int8_t* scales) {
    for (std::size_t i = 0; i < kGroups; ++i) {
      const int low = (packed[i % 8] >> (4 * (i / 8))) & 15, high = (packed[8 + i % 4] >> (2 * (i / 4))) & 3;
      scales[i] = static_cast<std::int8_t>((low | (high << 4)) - 32);
    }
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.q3_k", "1.0", mekik::blocks::block_scheme<Q3_K>());
