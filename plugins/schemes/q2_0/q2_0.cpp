// Q2_0: 64 values in 18 bytes: d (F16), then 2-bit codes, four a byte in their order, the lowest bits first. w = d * (q - 1): -1, 0, 1, 2.
#include <mekik/block_scheme.hpp>
#include "../common/ternary.hpp"

namespace {

using namespace mekik_blocks;

struct Q2_0 {
  static constexpr const char *kName = "q2_0", *kSummary = "GGUF Q2_0: ternary values of 2 bits, an F16 scale for 64.";
  static constexpr std::uint32_t kElems = 64, kBytes = 18, kGroups = 1;
  static void form(mekik_form& form) { ternary_form(form, kElems); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    std::memcpy(out.scale, block, 2);
    unpack_pairs(block + 2, out.codes);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t codes[kElems];
    unpack_pairs(block + 2, codes);
    decode_ternary(load_f16(block), codes, kElems, out);
  }
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    std::uint8_t codes[kElems];
    store_f16(block, encode_ternary(x, importance, kElems, codes));
    for (std::size_t i = 0; i < kElems; i += 4)
      block[2 + i / 4] = static_cast<std::uint8_t>(codes[i] | (codes[i + 1] << 2) | (codes[i + 2] << 4) | (codes[i + 3] << 6));
  }

 private:
  static void unpack_pairs(const std::uint8_t* packed, std::uint8_t* codes) {
    for (std::size_t i = 0; i < kElems; ++i) codes[i] = (packed[i / 4] >> (2 * (i % 4))) & 3u;
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.q2_0", "1.0", mekik::blocks::block_scheme<Q2_0>());
