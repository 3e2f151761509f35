// IQ4_XS: 256 values in 136 bytes: d (F16), the upper two bits of eight 6-bit scales (U16), their lower four bits (4 bytes), then for each
// group of 32 sixteen bytes of 4-bit codes, value i in the low and i + 16 in the high half of byte i. w = (d * (scale - 32)) * table[code].
#include <mekik/block_scheme.hpp>
#include "../common/iq4.hpp"
#include "../common/legacy.hpp"
#include "../common/super.hpp"

namespace {

using namespace mekik_blocks;

struct IQ4_XS {
  static constexpr const char *kName = "iq4_xs",
                              *kSummary = "GGUF IQ4_XS: 4-bit codes into a fixed table, 6-bit scales for 32, F16 over 256.";
  static constexpr std::uint32_t kElems = 256, kBytes = 136, kGroups = 8, kGroup = 32;
  static void form(mekik_form& form) {
    codebook_form(form, kIq4, kGroup, MEKIK_I8);
    form.super_k = kElems;
    form.super_num = MEKIK_F16;
  }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    std::memcpy(out.super, block, 2);
    std::int8_t scales[kGroups];
    unpack_scales(block, scales);
    std::memcpy(out.scale, scales, kGroups);
    for (std::size_t g = 0; g < kGroups; ++g) unpack_nibbles(block + 8 + 16 * g, out.codes + g * kGroup);
  }
  static void decode(const std::uint8_t* block, float* out) {
    const float d = load_f16(block);
    std::int8_t scales[kGroups];
    unpack_scales(block, scales);
    for (std::size_t g = 0; g < kGroups; ++g) {
      std::uint8_t codes[kGroup];
      unpack_nibbles(block + 8 + 16 * g, codes);
      decode_codebook(d * static_cast<float>(scales[g]), kIq4, codes, kGroup, out + g * kGroup);
    }
  }
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    float w[kElems], fits[kGroups];
    for (std::size_t g = 0; g < kGroups; ++g)
      iq4_weights(x + g * kGroup, importance != nullptr ? importance + g * kGroup : nullptr, kGroup, w + g * kGroup);
    for (std::size_t g = 0; g < kGroups; ++g) fits[g] = search_iq4(x + g * kGroup, w + g * kGroup, kGroup);
    // The largest scale meets -32, the one value with the greater magnitude.
    store_f16(block, signed_largest(fits, kGroups) / -32.0f);
    const float d = load_f16(block);
    std::int8_t scales[kGroups];
    for (std::size_t g = 0; g < kGroups; ++g) {
      std::uint8_t codes[kGroup];
      scales[g] = best_scale(x + g * kGroup, w + g * kGroup, d, nearest(fits[g] * inverse_or_zero(d), -32, 31));
      encode_entries(kIq4, d * static_cast<float>(scales[g]), x + g * kGroup, nullptr, kGroup, codes);
      pack_nibbles(codes, block + 8 + 16 * g);
    }
    pack_scales(scales, block);
  }

 private:
  static std::int8_t best_scale(const float* x, const float* w, float d, int near) {
    std::uint8_t codes[kGroup];
    int best = near;
    double least = INFINITY;
    for (int scale = std::max(near - 1, -32); scale <= std::min(near + 1, 31); ++scale) {
      const double error = encode_entries(kIq4, d * static_cast<float>(scale), x, w, kGroup, codes);
      if (!(error < least)) continue;
      least = error;
      best = scale;
    }
    return static_cast<std::int8_t>(best);
  }
  static void unpack_scales(const std::uint8_t* block, std::int8_t* scales) {
    const unsigned high = load_u16(block + 2);
    for (std::size_t g = 0; g < kGroups; ++g) {
      const unsigned low = (block[4 + g / 2] >> (4 * (g % 2))) & 15u;
      scales[g] = static_cast<std::int8_t>(static_cast<int>(low | (((high >> (2 * g)) & 3u) << 4)) - 32);
    }
  }
  static void pack_scales(const std::int8_t* scales, std::uint8_t* block) {
    unsigned high = 0;
    std::memset(block + 4, 0, 4);
    for (std::size_t g = 0; g < kGroups; ++g) {
      const auto scale = static_cast<unsigned>(scales[g] + 32);
      block[4 + g / 2] |= static_cast<std::uint8_t>((scale & 15u) << (4 * (g % 2)));
      high |= (scale >> 4) << (2 * g);
    }
    store_u16(block + 2, static_cast<std::uint16_t>(high));
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.iq4_xs", "1.0", mekik::blocks::block_scheme<IQ4_XS>());
