// Q8_0: 32 values in 34 bytes: d (F16), then signed bytes. w = d * q. As a form the codes are q + 128 with the zero point 128.
#include <mekik/block_scheme.hpp>
#include "../common/legacy.hpp"

namespace {

struct Q8_0 {
  static constexpr const char *kName = "q8_0", *kSummary = "GGUF Q8_0: 8 bits a value, an F16 scale for 32.";
  static constexpr std::uint32_t kElems = 32, kBytes = 34, kGroups = 1;
  static void form(mekik_form& form) { mekik_blocks::legacy_form(form, 8, 128); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    std::memcpy(out.scale, block, 2);
    for (std::size_t i = 0; i < kElems; ++i) out.codes[i] = block[2 + i] ^ 0x80u;
  }
  static void decode(const std::uint8_t* block, float* out) {
    const float d = mekik_blocks::load_f16(block);
    for (std::size_t i = 0; i < kElems; ++i) out[i] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
  }
  // 8 bits leave a search nothing to win: the largest value meets 127, importance or not.
  static void encode(const float* x, const float*, std::uint8_t* block) {
    float largest = 0;
    for (std::size_t i = 0; i < kElems; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float d = largest / 127.0f, inverse = mekik_blocks::inverse_or_zero(d);
    mekik_blocks::store_f16(block, d);
    for (std::size_t i = 0; i < kElems; ++i) block[2 + i] = static_cast<std::uint8_t>(mekik_blocks::nearest(x[i] * inverse, -127, 127));
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.q8_0", "1.0", mekik::blocks::block_scheme<Q8_0>());
