// Q6_K: 256 values in 210 bytes: 128 bytes with the lower four bits of each code, 64 bytes with the upper two, 16 signed scales for groups
// of 16, d (F16). w = (d * scale) * (q - 32).
// The lower bits come in two runs of 64 bytes: low halves are codes 0-63 of the run's 128, high halves 64-127. The upper bits are layers
// of two bits over 32 codes, as in Q2_K.
#include <mekik/block_scheme.hpp>
#include "../common/super.hpp"

namespace {

using namespace mekik_blocks;

struct Q6_K {
  static constexpr const char *kName = "q6_k", *kSummary = "GGUF Q6_K: 6 bits a value, 8-bit scales for 16, F16 over 256.";
  static constexpr std::uint32_t kElems = 256, kBytes = 210, kGroups = 16;
  static void form(mekik_form& form) { super_form(form, 6, 16, MEKIK_I8, 32); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    unpack_codes(block, out.codes);
    std::memcpy(out.scale, block + 192, kGroups);
    std::memcpy(out.super, block + 208, 2);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::int8_t scales[kGroups];
    std::uint8_t codes[kElems];
    std::memcpy(scales, block + 192, kGroups);
    unpack_codes(block, codes);
    decode_super_signed(load_f16(block + 208), scales, 16, 32, codes, out);
  }
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    SignedBlock<16> found;
    encode_super_signed<16>(x, importance, 32, 128, found);
    std::uint8_t upper[kElems];
    for (std::size_t i = 0; i < kElems; ++i) upper[i] = found.codes[i] >> 4;
    for (std::size_t run = 0; run < 2; ++run)
      for (std::size_t i = 0; i < 64; ++i)
        block[run * 64 + i] =
            static_cast<std::uint8_t>((found.codes[run * 128 + i] & 15u) | ((found.codes[run * 128 + 64 + i] & 15u) << 4));
    pack_super_pairs(upper, block + 128);
    std::memcpy(block + 192, found.scales, kGroups);
    store_u16(block + 208, found.d);
  }

 private:
  static void unpack_codes(const std::uint8_t* block, std::uint8_t* codes) {
    std::uint8_t upper[kElems];
    unpack_super_pairs(block + 128, upper);
    for (std::size_t run = 0; run < 2; ++run)
      for (std::size_t i = 0; i < 64; ++i) {
        const std::size_t low = run * 128 + i, high = low + 64;
        codes[low] = static_cast<std::uint8_t>((block[run * 64 + i] & 15u) | (upper[low] << 4));
        codes[high] = static_cast<std::uint8_t>((block[run * 64 + i] >> 4) | (upper[high] << 4));
      }
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.q6_k", "1.0", mekik::blocks::block_scheme<Q6_K>());
