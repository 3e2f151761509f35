// Q2_K: 256 values in 84 bytes: 16 bytes of scale (low half) and minimum (high half) for groups of 16, 64 bytes of 2-bit codes, then
// d and dmin (F16). w = (d * scale) * q - (dmin * min).
#include <mekik/block_scheme.hpp>
#include "../common/super.hpp"

namespace {

using namespace mekik_blocks;

struct Q2_K {
  static constexpr const char *kName = "q2_k", *kSummary = "GGUF Q2_K: 2 bits a value, 4-bit scales and minima for 16, F16 over 256.";
  static constexpr std::uint32_t kElems = 256, kBytes = 84, kGroups = 16;
  static void form(mekik_form& form) { super_form_min(form, 2, 16); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    unpack_scales(block, out.scale, out.min);
    unpack_super_pairs(block + 16, out.codes);
    std::memcpy(out.super, block + 80, 2);
    std::memcpy(out.super_min, block + 82, 2);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t scales[kGroups], mins[kGroups], codes[kElems];
    unpack_scales(block, scales, mins);
    unpack_super_pairs(block + 16, codes);
    decode_super_min(load_f16(block + 80), load_f16(block + 82), scales, mins, 16, codes, out);
  }
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    MinBlock<16> found;
    encode_super_min<16>(x, importance, 3, 15, found);
    for (std::size_t g = 0; g < kGroups; ++g) block[g] = static_cast<std::uint8_t>(found.scales[g] | (found.mins[g] << 4));
    pack_super_pairs(found.codes, block + 16);
    store_u16(block + 80, found.d);
    store_u16(block + 82, found.dmin);
  }

 private:
  static void unpack_scales(const std::uint8_t* packed, std::uint8_t* scales, std::uint8_t* mins) {
    for (std::size_t g = 0; g < kGroups; ++g) {
      scales[g] = packed[g] & 15u;
      mins[g] = packed[g] >> 4;
    }
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.q2_k", "1.0", mekik::blocks::block_scheme<Q2_K>());
