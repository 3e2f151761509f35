#include <cmath>

#include "reference/ops.hpp"

namespace mekik::reference {

void rope(const Rows& x, const Flat& table, const RopeAxes& axes, std::int64_t dim, std::int64_t pairs, double magnitude, const Rows& y) {
  const auto half = static_cast<std::size_t>(dim) / 2;
  std::vector<float> cosine(half), sine(half);
  for (std::size_t t = 0; t < y.n; ++t) {
    for (std::size_t i = 0; i < half; ++i) {
      // One axis in the batch: text, where all axes are the same.
      const std::size_t axis = axes.n_axes > 1 ? static_cast<std::size_t>(table[half + i]) : 0;
      const double angle = static_cast<double>(axes.positions[axis * axes.n_tokens + t]) * static_cast<double>(table[i]);
      cosine[i] = static_cast<float>(std::cos(angle) * magnitude);
      sine[i] = static_cast<float>(std::sin(angle) * magnitude);
    }
    for (std::size_t o = 0; o < x.outer; ++o) {
      const float* in = x.row(t) + o * x.last;
      float* out = y.row(t) + o * x.last;
      for (std::size_t i = 0; i < half; ++i) {
        const std::size_t first = pairs == 0 ? i : 2 * i, second = pairs == 0 ? i + half : 2 * i + 1;
        const float a = in[first], b = in[second];
        out[first] = a * cosine[i] - b * sine[i];
        out[second] = b * cosine[i] + a * sine[i];
      }
      for (std::size_t j = 2 * half; j < x.last; ++j) out[j] = in[j];
    }
  }
}

void position_scale(const Rows& x, const std::int32_t* positions, std::int64_t shift, double every, double factor, const Rows& y) {
  for (std::size_t i = 0; i < y.n; ++i) {
    const double steps = std::floor(static_cast<double>(positions[i] + shift) / every);
    const auto by = static_cast<float>(1 + factor * std::log1p(steps));
    for (std::size_t j = 0; j < y.size(); ++j) y.row(i)[j] = x.row(i)[j] * by;
  }
}

}  // namespace mekik::reference
