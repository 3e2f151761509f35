// Super-blocks of 256 values: what the K types share. A group has a small integer scale, the block one F16 scale over them.
#pragma once
#include <mekik/plugin.h>

#include <cmath>

#include "numbers.hpp"
#include "search.hpp"

namespace mekik_blocks {

inline constexpr std::size_t kSuper = 256;

inline void super_form(mekik_form& form, std::uint32_t bits, std::uint32_t group, std::uint32_t scale_num, std::int32_t zero) {
  form.kind = MEKIK_FORM_AFFINE;
  form.bits = bits;
  form.group_k = group;
  form.super_k = kSuper;
  form.scale_num = scale_num;
  form.super_num = MEKIK_F16;
  form.zero = zero;
}
// Scales and minima are unsigned, each under an F16 of its own.
inline void super_form_min(mekik_form& form, std::uint32_t bits, std::uint32_t group) {
  super_form(form, bits, group, MEKIK_U8, 0);
  form.min_num = MEKIK_U8;
  form.super_min_num = MEKIK_F16;
}

// w = (d * scale) * (q - zero), each bracket rounded.
inline void decode_super_signed(float d, const std::int8_t* scales, std::size_t group, int zero, const std::uint8_t* codes, float* out) {
  for (std::size_t i = 0; i < kSuper; ++i) {
    const float scale = d * static_cast<float>(scales[i / group]);
    out[i] = scale * static_cast<float>(codes[i] - zero);
  }
}
// w = (d * scale) * q - (dmin * min).
inline void decode_super_min(float d, float dmin, const std::uint8_t* scales, const std::uint8_t* mins, std::size_t group,
                             const std::uint8_t* codes, float* out) {
  for (std::size_t g = 0; g < kSuper / group; ++g) {
    const float scale = d * static_cast<float>(scales[g]), min = dmin * static_cast<float>(mins[g]);
    for (std::size_t i = g * group; i < (g + 1) * group; ++i) out[i] = scale * static_cast<float>(codes[i]) - min;
  }
}

// Weights of errors inside one block: importance * sqrt(mean square + x^2); without importance root mean square of the group + |x|.
inline void super_weights(const float* x, const float* importance, std::size_t group, float* w) {
  float block_square = 0;
  for (std::size_t i = 0; i < kSuper; ++i) block_square += x[i] * x[i];
  for (std::size_t g = 0; g < kSuper; g += group) {
    float square = 0;
    for (std::size_t i = g; i < g + group; ++i) square += x[i] * x[i];
    const float root = std::sqrt(square / static_cast<float>(group));
    for (std::size_t i = g; i < g + group; ++i)
      w[i] = importance != nullptr ? importance[i] * std::sqrt(block_square / kSuper + x[i] * x[i]) : root + std::fabs(x[i]);
  }
}

// Codes of a group under scale and min (x ~ scale * code - min, or scale * (code - half) with min 0); returns the squared error.
inline double round_group(const float* x, const float* w, std::size_t n, float scale, float min, int low, int high, std::uint8_t* codes) {
  const float inverse = inverse_or_zero(scale);
  double error = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const int code = nearest((x[i] + min) * inverse, low, high);
    const double miss = static_cast<double>(scale) * code - min - x[i];
    error += w[i] * miss * miss;
    codes[i] = static_cast<std::uint8_t>(code - low);
  }
  return error;
}

template <std::size_t Group>
struct MinBlock {
  static constexpr std::size_t kGroups = kSuper / Group;
  std::uint16_t d = 0, dmin = 0;  // F16
  std::uint8_t scales[kGroups], mins[kGroups], codes[kSuper];
};

// x ~ (d * scale) * code - (dmin * min); codes 0 .. levels, scales and mins 0 .. steps.
template <std::size_t Group>
void encode_super_min(const float* x, const float* importance, int levels, int steps, MinBlock<Group>& out) {
  constexpr std::size_t kGroups = kSuper / Group;
  float w[kSuper];
  super_weights(x, importance, Group, w);
  ScaleMin fits[kGroups];
  float most_scale = 0, most_min = 0;
  for (std::size_t g = 0; g < kGroups; ++g) {
    fits[g] = search_min(x + g * Group, w + g * Group, Group, levels, true);
    most_scale = std::max(most_scale, fits[g].scale);
    most_min = std::max(most_min, -fits[g].min);
  }
  out.d = mekik::to_f16(most_scale / static_cast<float>(steps));
  out.dmin = mekik::to_f16(most_min / static_cast<float>(steps));
  const float d = mekik::from_f16(out.d), dmin = mekik::from_f16(out.dmin);
  for (std::size_t g = 0; g < kGroups; ++g) {
    // Rounding scale and min moves the optimum: look at the neighbours, too.
    const int scale0 = nearest(fits[g].scale * inverse_or_zero(d), 0, steps),
              min0 = nearest(-fits[g].min * inverse_or_zero(dmin), 0, steps);
    double best = INFINITY;
    std::uint8_t codes[Group];
    for (int scale = std::max(scale0 - 1, 0); scale <= std::min(scale0 + 1, steps); ++scale)
      for (int min = std::max(min0 - 1, 0); min <= std::min(min0 + 1, steps); ++min) {
        const double error = round_group(x + g * Group, w + g * Group, Group, d * static_cast<float>(scale), dmin * static_cast<float>(min),
                                         0, levels, codes);
        if (!(error < best)) continue;
        best = error;
        out.scales[g] = static_cast<std::uint8_t>(scale);
        out.mins[g] = static_cast<std::uint8_t>(min);
        std::copy(codes, codes + Group, out.codes + g * Group);
      }
  }
}

template <std::size_t Group>
struct SignedBlock {
  static constexpr std::size_t kGroups = kSuper / Group;
  std::uint16_t d = 0;  // F16
  std::int8_t scales[kGroups];
  std::uint8_t codes[kSuper];
};

// x ~ (d * scale) * (code - half); codes 0 .. 2 * half - 1, scales -steps .. steps - 1.
template <std::size_t Group>
void encode_super_signed(const float* x, const float* importance, int half, int steps, SignedBlock<Group>& out) {
  constexpr std::size_t kGroups = kSuper / Group;
  float w[kSuper], scales[kGroups];
  super_weights(x, importance, Group, w);
  std::uint8_t codes[Group];
  for (std::size_t g = 0; g < kGroups; ++g) scales[g] = search_signed(x + g * Group, w + g * Group, Group, half, codes);
  // The largest scale meets -steps, the one value with the greater magnitude.
  out.d = mekik::to_f16(signed_largest(scales, kGroups) / static_cast<float>(-steps));
  const float d = mekik::from_f16(out.d);
  for (std::size_t g = 0; g < kGroups; ++g) {
    const int scale0 = nearest(scales[g] * inverse_or_zero(d), -steps, steps - 1);
    double best = INFINITY;
    for (int scale = std::max(scale0 - 1, -steps); scale <= std::min(scale0 + 1, steps - 1); ++scale) {
      const double error = round_group(x + g * Group, w + g * Group, Group, d * static_cast<float>(scale), 0, -half, half - 1, codes);
      if (!(error < best)) continue;
      best = error;
      out.scales[g] = static_cast<std::int8_t>(scale);
      std::copy(codes, codes + Group, out.codes + g * Group);
    }
  }
}

// The 6-bit scales and minima of Q4_K and Q5_K, eight of each in 12 bytes: the low six bits of bytes 0-3 and 4-7 are scales and minima of
// groups 0-3; of groups 4-7 the low four bits are halves of bytes 8-11, the upper two the upper two of bytes 0-3 and 4-7.
inline void unpack_sixes(const std::uint8_t* packed, std::uint8_t* scales, std::uint8_t* mins) {
  for (std::size_t i = 0; i < 4; ++i) {
    scales[i] = packed[i] & 63u;
    mins[i] = packed[i + 4] & 63u;
    scales[i + 4] = static_cast<std::uint8_t>((packed[i + 8] & 15u) | ((packed[i] >> 6) << 4));
    mins[i + 4] = static_cast<std::uint8_t>((packed[i + 8] >> 4) | ((packed[i + 4] >> 6) << 4));
  }
}
inline void pack_sixes(const std::uint8_t* scales, const std::uint8_t* mins, std::uint8_t* packed) {
  for (std::size_t i = 0; i < 4; ++i) {
    packed[i] = static_cast<std::uint8_t>(scales[i] | ((scales[i + 4] >> 4) << 6));
    packed[i + 4] = static_cast<std::uint8_t>(mins[i] | ((mins[i + 4] >> 4) << 6));
    packed[i + 8] = static_cast<std::uint8_t>((scales[i + 4] & 15u) | ((mins[i + 4] & 15u) << 4));
  }
}

// Four runs of 32 bytes; the low halves are one group of 32 codes, the high halves the next.
inline void unpack_super_nibbles(const std::uint8_t* packed, std::uint8_t* codes) {
  for (std::size_t run = 0; run < 4; ++run)
    for (std::size_t i = 0; i < 32; ++i) {
      codes[run * 64 + i] = packed[run * 32 + i] & 15u;
      codes[run * 64 + 32 + i] = packed[run * 32 + i] >> 4;
    }
}
inline void pack_super_nibbles(const std::uint8_t* codes, std::uint8_t* packed) {
  for (std::size_t run = 0; run < 4; ++run)
    for (std::size_t i = 0; i < 32; ++i)
      packed[run * 32 + i] = static_cast<std::uint8_t>((codes[run * 64 + i] & 15u) | ((codes[run * 64 + 32 + i] & 15u) << 4));
}

// Two runs of 32 bytes, each four layers of 32 two-bit codes, the lowest bits first.
inline void unpack_super_pairs(const std::uint8_t* packed, std::uint8_t* codes) {
  for (std::size_t run = 0; run < 2; ++run)
    for (std::size_t layer = 0; layer < 4; ++layer)
      for (std::size_t i = 0; i < 32; ++i) codes[run * 128 + layer * 32 + i] = (packed[run * 32 + i] >> (2 * layer)) & 3u;
}
inline void pack_super_pairs(const std::uint8_t* codes, std::uint8_t* packed) {
  for (std::size_t run = 0; run < 2; ++run)
    for (std::size_t i = 0; i < 32; ++i) {
      unsigned byte = 0;
      for (std::size_t layer = 0; layer < 4; ++layer) byte |= (codes[run * 128 + layer * 32 + i] & 3u) << (2 * layer);
      packed[run * 32 + i] = static_cast<std::uint8_t>(byte);
    }
}

// 32 bytes of eight layers of 32 bits, each layer one more bit of 32 codes at `bit`.
inline void unpack_super_bits(const std::uint8_t* packed, int bit, std::uint8_t* codes) {
  for (std::size_t layer = 0; layer < 8; ++layer)
    for (std::size_t i = 0; i < 32; ++i) codes[layer * 32 + i] |= static_cast<std::uint8_t>(((packed[i] >> layer) & 1u) << bit);
}
inline void pack_super_bits(const std::uint8_t* codes, int bit, std::uint8_t* packed) {
  std::memset(packed, 0, 32);
  for (std::size_t layer = 0; layer < 8; ++layer)
    for (std::size_t i = 0; i < 32; ++i) packed[i] |= static_cast<std::uint8_t>(((codes[layer * 32 + i] >> bit) & 1u) << layer);
}

}  // namespace mekik_blocks
