// Scales for the table of IQ4_NL and IQ4_XS.
#pragma once
#include "codebook.hpp"

namespace mekik_blocks {

// What an error weighs: x^2; with importance, importance * sqrt(2 * mean square of the block + x^2), as in ggml.
inline void iq4_weights(const float* x, const float* importance, std::size_t n, float* w) {
  float square = 0;
  for (std::size_t i = 0; i < n; ++i) square += x[i] * x[i];
  const float sigma = 2 * square / static_cast<float>(n);
  for (std::size_t i = 0; i < n; ++i) w[i] = importance != nullptr ? importance[i] * std::sqrt(sigma + x[i] * x[i]) : x[i] * x[i];
}

// The scale that errs least, either sign: the largest value is laid at either end of the table and a little beside it, and the scale
// refitted by least squares each time.
inline float search_iq4(const float* x, const float* w, std::size_t n) {
  const float largest = signed_largest(x, n);
  if (inverse_or_zero(largest) == 0) return 0;
  double best_gain = -1;
  float best = 0;
  for (const float end : {kIq4[0], kIq4[kEntries - 1]})
    for (int step = -7; step <= 7; ++step) {
      const float d = largest / (end + static_cast<float>(step));
      double xl = 0, ll = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double l = kIq4[nearest_entry(kIq4, d, x[i])];
        xl += w[i] * x[i] * l;
        ll += w[i] * l * l;
      }
      if (ll > 0 && xl * xl / ll > best_gain) {
        best_gain = xl * xl / ll;
        best = static_cast<float>(xl / ll);
      }
    }
  return best;
}

}  // namespace mekik_blocks
