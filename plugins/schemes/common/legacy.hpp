// Blocks of 32 values with one F16 scale: what Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 share.
#pragma once
#include <mekik/plugin.h>

#include "numbers.hpp"
#include "search.hpp"

namespace mekik_blocks {

inline constexpr std::size_t kLegacy = 32;

inline void legacy_form(mekik_form& form, std::uint32_t bits, std::int32_t zero) {
  form.kind = MEKIK_FORM_AFFINE;
  form.bits = bits;
  form.group_k = kLegacy;
  form.scale_num = MEKIK_F16;
  form.zero = zero;
}
inline void legacy_form_min(mekik_form& form, std::uint32_t bits) {
  legacy_form(form, bits, 0);
  form.min_num = MEKIK_F16;
}

// Scale and minimum as the form has them: w = scale * q - min, so the minimum changes its sign bit.
inline void unpack_scale_min(const std::uint8_t* block, std::uint8_t* scale, std::uint8_t* min) {
  std::memcpy(scale, block, 2);
  min[0] = block[2];
  min[1] = block[3] ^ 0x80u;
}

inline void unpack_nibbles(const std::uint8_t* packed, std::uint8_t* codes) {
  for (std::size_t i = 0; i < 16; ++i) {
    codes[i] = packed[i] & 15u;
    codes[i + 16] = packed[i] >> 4;
  }
}
inline void pack_nibbles(const std::uint8_t* codes, std::uint8_t* packed) {
  for (std::size_t i = 0; i < 16; ++i) packed[i] = static_cast<std::uint8_t>((codes[i] & 15u) | ((codes[i + 16] & 15u) << 4));
}

// Four bytes of fifth bits, then nibbles.
inline void unpack_fives(const std::uint8_t* packed, std::uint8_t* codes) {
  unpack_nibbles(packed + 4, codes);
  for (std::size_t i = 0; i < kLegacy; ++i) codes[i] |= static_cast<std::uint8_t>(((packed[i / 8] >> (i % 8)) & 1u) << 4);
}
inline void pack_fives(const std::uint8_t* codes, std::uint8_t* packed) {
  std::memset(packed, 0, 4);
  for (std::size_t i = 0; i < kLegacy; ++i) packed[i / 8] |= static_cast<std::uint8_t>((codes[i] >> 4) << (i % 8));
  pack_nibbles(codes, packed + 4);
}

inline void decode_signed(float d, int zero, const std::uint8_t* codes, float* out) {
  for (std::size_t i = 0; i < kLegacy; ++i) out[i] = d * static_cast<float>(codes[i] - zero);
}
inline void decode_min(float d, float m, const std::uint8_t* codes, float* out) {
  for (std::size_t i = 0; i < kLegacy; ++i) out[i] = d * static_cast<float>(codes[i]) + m;
}

// With importance, what ggml weights an error by: importance * sqrt(mean square + x^2).
inline void legacy_weights(const float* x, const float* importance, float* w) {
  float square = 0;
  for (std::size_t i = 0; i < kLegacy; ++i) square += x[i] * x[i];
  for (std::size_t i = 0; i < kLegacy; ++i) w[i] = importance[i] * std::sqrt(square / kLegacy + x[i] * x[i]);
}

// Codes around the zero point `half`; returns the scale. Without importance the value of largest magnitude meets -half, as in ggml's
// reference quantizer, bit for bit.
inline float encode_signed(const float* x, const float* importance, int half, std::uint8_t* codes) {
  if (importance != nullptr) {
    float w[kLegacy];
    legacy_weights(x, importance, w);
    return search_signed(x, w, kLegacy, half, codes);
  }
  const float d = signed_largest(x, kLegacy) / static_cast<float>(-half);
  const float inverse = inverse_or_zero(d);
  for (std::size_t i = 0; i < kLegacy; ++i) {
    const float shifted = x[i] * inverse + (static_cast<float>(half) + 0.5f);
    codes[i] = static_cast<std::uint8_t>(std::clamp(static_cast<int>(shifted), 0, 2 * half - 1));
  }
  return d;
}

// Writes d and m to block[0 .. 3] and the codes 0 .. levels.
inline void encode_min(const float* x, const float* importance, int levels, std::uint8_t* block, std::uint8_t* codes) {
  const float low = *std::min_element(x, x + kLegacy), high = *std::max_element(x, x + kLegacy);
  ScaleMin found{(high - low) / static_cast<float>(levels), low};
  if (importance != nullptr) {
    float w[kLegacy];
    legacy_weights(x, importance, w);
    found = search_min(x, w, kLegacy, levels, false);
  }
  const float inverse = inverse_or_zero(found.scale);
  store_f16(block, found.scale);
  store_f16(block + 2, found.min);
  for (std::size_t i = 0; i < kLegacy; ++i) {
    const float shifted = (x[i] - found.min) * inverse + 0.5f;
    codes[i] = static_cast<std::uint8_t>(shifted > 0 ? std::min(shifted, static_cast<float>(levels)) : 0.0f);
  }
}

}  // namespace mekik_blocks
