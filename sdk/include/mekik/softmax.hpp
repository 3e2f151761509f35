// mekik/softmax.hpp - weights of logits, as the host's draw and a sampler's filters must agree on them. Thread: any.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace mekik {

// exp(x) for x <= 0, to 2 units in the last place; below -700 it stays about 1e-304 (kNothing says what counts as 0). Own code without
// branches, so that the compiler vectorises it and the answer does not depend on the C library: x = n ln 2 + r with |r| <= ln 2 / 2, a
// Taylor polynomial of degree 13 in r, and n added to the exponent.
inline constexpr double kNothing = 1e-300;
inline double exp_of(double x) {
  const double bounded = x > -700.0 ? x : -700.0;
  const double shifted = bounded * 1.4426950408889634 + 0x1.8p52;  // the low bits hold n
  const double n = shifted - 0x1.8p52;
  const double r = (bounded - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(p) + (std::bit_cast<std::uint64_t>(shifted) << 52));
}

// Eight running maxima, so that each step need not wait for the one before. NaN is never larger.
inline float largest(std::span<const float> logits) {
  float lanes[8];
  std::fill(lanes, lanes + 8, -std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + 8 <= logits.size(); i += 8)
    for (std::size_t j = 0; j < 8; ++j) lanes[j] = logits[i + j] > lanes[j] ? logits[i + j] : lanes[j];
  for (; i < logits.size(); ++i) lanes[0] = std::max(lanes[0], logits[i]);
  return *std::max_element(lanes, lanes + 8);
}

}  // namespace mekik
