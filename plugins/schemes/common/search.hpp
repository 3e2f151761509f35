// Choosing scales: what encoders share. Errors are weighted sums of squares.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace mekik_blocks {

// The nearest integer, halves away from zero, kept inside low .. high. Defined for every float.
inline int nearest(float value, int low, int high) {
  if (!(value > static_cast<float>(low))) return low;
  if (value >= static_cast<float>(high)) return high;
  return static_cast<int>(std::round(value));
}

inline float inverse_or_zero(float value) {
  const float inverse = value != 0 ? 1.0f / value : 0.0f;
  return std::isfinite(inverse) ? inverse : 0.0f;
}

// The value of largest magnitude, the first of equals.
inline float signed_largest(const float* x, std::size_t n) {
  float largest = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
  return largest;
}

// Best scale of x ~ scale * (code - half), codes 0 .. 2 * half - 1. For fixed codes the best scale is (sum w x l) / (sum w l l), so only
// the rounding is searched: the largest value is laid at -half, and a little beside it on both sides.
inline float search_signed(const float* x, const float* w, std::size_t n, int half, std::uint8_t* codes) {
  const float largest = signed_largest(x, n);
  if (inverse_or_zero(largest) == 0) {
    std::fill(codes, codes + n, static_cast<std::uint8_t>(half));
    return 0;
  }
  double best_gain = -1;
  float best_scale = 0, best_inverse = 0;
  for (int step = -18; step <= 18; ++step) {
    const float inverse = -(static_cast<float>(half) + 0.05f * static_cast<float>(step)) / largest;
    double xl = 0, ll = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const int l = nearest(inverse * x[i], -half, half - 1);
      xl += static_cast<double>(w[i]) * x[i] * l;
      ll += static_cast<double>(w[i]) * l * l;
    }
    // The error is (sum w x x) - xl * xl / ll.
    if (ll > 0 && xl * xl / ll > best_gain) {
      best_gain = xl * xl / ll;
      best_scale = static_cast<float>(xl / ll);
      best_inverse = inverse;
    }
  }
  for (std::size_t i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>(nearest(best_inverse * x[i], -half, half - 1) + half);
  return best_scale;
}

struct ScaleMin {
  float scale = 0, min = 0;  // x ~ scale * code + min
};

// Weighted least squares of x ~ scale * code + min for codes 0 .. levels under a rounding rule; `negative`: min is at most 0.
// Returns the squared error.
inline double fit_scale_min(const float* x, const float* w, std::size_t n, int levels, ScaleMin rule, bool negative, ScaleMin& out) {
  const float inverse = inverse_or_zero(rule.scale);
  double sw = 0, sl = 0, sll = 0, sx = 0, sxl = 0, sxx = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double weight = w[i], value = x[i], l = nearest((x[i] - rule.min) * inverse, 0, levels);
    sw += weight;
    sl += weight * l;
    sll += weight * l * l;
    sx += weight * value;
    sxl += weight * value * l;
    sxx += weight * value * value;
  }
  const double determinant = sw * sll - sl * sl;
  double scale = rule.scale, min = rule.min;
  if (determinant > 0) {
    scale = (sw * sxl - sl * sx) / determinant;
    min = (sll * sx - sl * sxl) / determinant;
  }
  if (negative && min > 0) {
    min = 0;
    scale = sll > 0 ? sxl / sll : 0;
  }
  out = {static_cast<float>(scale), static_cast<float>(min)};
  return sxx - 2 * scale * sxl - 2 * min * sx + scale * scale * sll + 2 * scale * min * sl + min * min * sw;
}

// Best scale and min by trying how much of the range the codes span, and refitting what each try gives.
inline ScaleMin search_min(const float* x, const float* w, std::size_t n, int levels, bool negative) {
  float low = *std::min_element(x, x + n);
  const float high = *std::max_element(x, x + n);
  if (negative) low = std::min(low, 0.0f);
  if (!(high > low)) return {0, low};
  ScaleMin best{(high - low) / static_cast<float>(levels), low};
  double best_error = INFINITY;
  for (int step = -10; step <= 16; ++step) {
    ScaleMin rule{(high - low) / (static_cast<float>(levels) + 0.1f * static_cast<float>(step)), low};
    for (int round = 0; round < 3; ++round) {
      ScaleMin fitted;
      const double error = fit_scale_min(x, w, n, levels, rule, negative, fitted);
      if (!(error < best_error)) {
        if (round > 0) break;
      } else {
        best_error = error;
        best = fitted;
      }
      rule = fitted;
    }
  }
  return best.scale > 0 ? best : ScaleMin{0, best.min};
}

}  // namespace mekik_blocks
