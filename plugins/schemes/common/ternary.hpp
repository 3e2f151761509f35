// Codes 0, 1, 2 for -1, 0, 1 under one F16 scale: TQ1_0, TQ2_0 and Q2_0.
#pragma once
#include <mekik/plugin.h>

#include "codebook.hpp"

namespace mekik_blocks {

inline void ternary_form(mekik_form& form, std::uint32_t group) {
  form.kind = MEKIK_FORM_AFFINE;
  form.bits = 2;
  form.group_k = group;
  form.scale_num = MEKIK_F16;
  form.zero = 1;
}

inline void decode_ternary(float d, const std::uint8_t* codes, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = d * static_cast<float>(codes[i] - 1);
}

// ggml's: the largest magnitude is the scale. With importance the scale that errs least is searched, values beyond it are cut.
inline float encode_ternary(const float* x, const float* importance, std::size_t n, std::uint8_t* codes) {
  const float largest = largest_magnitude(x, n);
  const auto round = [&](float d) {
    const float inverse = inverse_or_zero(d);
    for (std::size_t i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>(nearest(x[i] * inverse, -1, 1) + 1);
  };
  float d = largest;
  if (importance != nullptr) {
    double best_gain = -1;
    for (int step = 1; step <= 40; ++step) {
      round(largest * static_cast<float>(step) / 40.0f);
      double xl = 0, ll = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const int l = codes[i] - 1;
        xl += static_cast<double>(importance[i]) * x[i] * l;
        ll += static_cast<double>(importance[i]) * l * l;
      }
      if (ll > 0 && xl * xl / ll > best_gain) {
        best_gain = xl * xl / ll;
        d = static_cast<float>(xl / ll);
      }
    }
  }
  round(d);
  return d;
}

}  // namespace mekik_blocks
