// Layout: a panel of kPanel decoded rows of w is held at a time, [kPanel][k] F32; x as it comes. No bound: this is the definition.
#include "reference/ops.hpp"

namespace mekik::reference {

namespace {

constexpr std::size_t kPanel = 8;  // independent sums side by side, so that one does not wait for the other; no sum is ever cut

// sums[j] = sum over k of x[k] * panel[j][k]: the product of two F32 is exact in double.
void dot_panel(const float* x, const float* panel, std::size_t k, double* sums) {
  double s[kPanel] = {};
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < kPanel; ++j) s[j] += static_cast<double>(x[i]) * static_cast<double>(panel[j * k + i]);
  std::copy(s, s + kPanel, sums);
}

}  // namespace

void linear(const Rows& x, const Weight& w, const Flat& bias, const Rows& y, const Threads& threads) {
  if (y.n == 0) return;
  const std::size_t n = w.n_rows(), k = w.k();
  each(threads, (n + kPanel - 1) / kPanel, [&](std::size_t p) {
    const std::size_t first = p * kPanel, count = std::min(kPanel, n - first);
    std::vector<float> panel(kPanel * k);
    w.decode(first, first + count, panel.data());
    double sums[kPanel];
    for (std::size_t t = 0; t < y.n; ++t) {
      dot_panel(x.row(t), panel.data(), k, sums);
      for (std::size_t j = 0; j < count; ++j) {
        const auto sum = static_cast<float>(sums[j]);
        y.row(t)[first + j] = bias.empty() ? sum : sum + bias[first + j];
      }
    }
  });
}

void moe_linear(const Rows& x, const Weight& w, const Ids& ids, const Flat& bias, const Rows& y, const Threads& threads) {
  if (y.n == 0) return;
  const std::size_t n = w.form().n, k = w.k(), top = ids.size();
  const bool shared = x.size() == k;  // every expert sees the same row
  each(threads, (n + kPanel - 1) / kPanel, [&](std::size_t p) {
    const std::size_t first = p * kPanel, count = std::min(kPanel, n - first);
    std::vector<float> panel(kPanel * k);
    double sums[kPanel];
    for (std::size_t t = 0; t < y.n; ++t)
      for (std::size_t i = 0; i < top; ++i) {
        const auto expert = static_cast<std::size_t>(ids.row(t)[i]);
        w.decode(expert * n + first, expert * n + first + count, panel.data());
        dot_panel(x.row(t) + (shared ? 0 : i * k), panel.data(), k, sums);
        for (std::size_t j = 0; j < count; ++j) {
          const auto sum = static_cast<float>(sums[j]);
          y.row(t)[i * n + first + j] = bias.empty() ? sum : sum + bias[expert * n + first + j];
        }
      }
  });
}

}  // namespace mekik::reference
