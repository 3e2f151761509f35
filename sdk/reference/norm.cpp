#include <cmath>

#include "reference/ops.hpp"

namespace mekik::reference {

namespace {

// f(row of `last` numbers, its result, index of its first number within the whole row)
template <class F>
void over_last(const Rows& x, const Rows& y, F&& f) {
  for (std::size_t i = 0; i < y.n; ++i)
    for (std::size_t o = 0; o < x.outer; ++o) f(x.row(i) + o * x.last, y.row(i) + o * x.last, o * x.last);
}

double sum_of_squares(const float* row, std::size_t n, double mean) {
  double sum = 0;
  for (std::size_t j = 0; j < n; ++j) sum += (row[j] - mean) * (row[j] - mean);
  return sum;
}

}  // namespace

void rms_norm(const Rows& x, const Flat& w, double eps, const Rows& y) {
  over_last(x, y, [&](const float* row, float* out, std::size_t first) {
    const double root = std::sqrt(sum_of_squares(row, x.last, 0) / static_cast<double>(x.last) + eps);
    const float* weight = w.size() > x.last ? w.data() + first : w.data();
    for (std::size_t j = 0; j < x.last; ++j) {
      const auto normal = static_cast<float>(row[j] / root);
      out[j] = w.empty() ? normal : normal * weight[j];
    }
  });
}

void layer_norm(const Rows& x, const Flat& w, const Flat& b, double eps, const Rows& y) {
  over_last(x, y, [&](const float* row, float* out, std::size_t first) {
    double mean = 0;
    for (std::size_t j = 0; j < x.last; ++j) mean += row[j];
    mean /= static_cast<double>(x.last);
    const double root = std::sqrt(sum_of_squares(row, x.last, mean) / static_cast<double>(x.last) + eps);
    for (std::size_t j = 0; j < x.last; ++j) {
      auto value = static_cast<float>((row[j] - mean) / root);
      if (!w.empty()) value *= w[w.size() > x.last ? first + j : j];
      if (!b.empty()) value += b[b.size() > x.last ? first + j : j];
      out[j] = value;
    }
  });
}

void l2_norm(const Rows& x, double eps, const Rows& y) {
  over_last(x, y, [&](const float* row, float* out, std::size_t) {
    const double root = std::sqrt(sum_of_squares(row, x.last, 0) + eps);
    for (std::size_t j = 0; j < x.last; ++j) out[j] = static_cast<float>(row[j] / root);
  });
}

void softmax(const Rows& x, const Rows& y) {
  over_last(x, y, [&](const float* row, float* out, std::size_t) {
    double most = row[0], sum = 0;
    for (std::size_t j = 1; j < x.last; ++j) most = std::fmax(most, row[j]);
    for (std::size_t j = 0; j < x.last; ++j) sum += std::exp(row[j] - most);
    for (std::size_t j = 0; j < x.last; ++j) out[j] = static_cast<float>(std::exp(row[j] - most) / sum);
  });
}

void mean(const Rows& x, const Rows& y) {
  for (std::size_t i = 0; i < y.n; ++i)
    for (std::size_t o = 0; o < x.outer; ++o) {
      double sum = 0;
      for (std::size_t j = 0; j < x.last; ++j) sum += x.row(i)[o * x.last + j];
      y.row(i)[o] = static_cast<float>(sum / static_cast<double>(x.last));
    }
}

}  // namespace mekik::reference
