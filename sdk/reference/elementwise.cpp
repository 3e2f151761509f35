#include <algorithm>
#include <cmath>
#include <numbers>

#include "reference/ops.hpp"

namespace mekik::reference {

namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

template <class F>
void map(const Rows& x, const Rows& y, F&& f) {
  for (std::size_t i = 0; i < y.n; ++i)
    for (std::size_t j = 0; j < y.size(); ++j) y.row(i)[j] = f(x.row(i)[j]);
}

// b has a's row shape, or one number for each of its outer rows, or one number a row, or one number for all.
template <class F>
void combine(const Rows& a, const Rows& b, const Rows& y, F&& f) {
  const std::size_t each_b = y.size() / b.size();
  for (std::size_t i = 0; i < y.n; ++i)
    for (std::size_t j = 0; j < y.size(); ++j) y.row(i)[j] = f(a.row(i)[j], b.row(i)[j / each_b]);
}

}  // namespace

float activate(std::int64_t kind, float value) {
  const double x = value;
  switch (kind) {
    case kSilu:
      return static_cast<float>(x * sigmoid(x));
    case kGelu:
      return static_cast<float>(0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2)));
    case kGeluTanh:
      return static_cast<float>(0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x))));
    case kQuickGelu:
      return static_cast<float>(x * sigmoid(1.702 * x));
    case kRelu:
      return value < 0.0f ? 0.0f : value;
    case kRelu2:
      return value < 0.0f ? 0.0f : value * value;
    case kSigmoid:
      return static_cast<float>(sigmoid(x));
    case kTanh:
      return static_cast<float>(std::tanh(x));
    case kSoftplus:
      return static_cast<float>(x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)));
    case kSqrt:
      return static_cast<float>(std::sqrt(x));
    case kExp:
      return static_cast<float>(std::exp(x));
    default:
      return value;
  }
}

void add(const Rows& a, const Rows& b, const Rows& y) {
  combine(a, b, y, [](float u, float v) { return u + v; });
}
void mul(const Rows& a, const Rows& b, const Rows& y) {
  combine(a, b, y, [](float u, float v) { return u * v; });
}
void concat(const Rows& a, const Rows& b, const Rows& y) {
  for (std::size_t i = 0; i < y.n; ++i)
    for (std::size_t o = 0; o < a.outer; ++o) {
      float* to = y.row(i) + o * (a.last + b.last);
      std::copy_n(a.row(i) + o * a.last, a.last, to);
      std::copy_n(b.row(i) + o * b.last, b.last, to + a.last);
    }
}
void act(const Rows& x, std::int64_t kind, const Rows& y) {
  map(x, y, [&](float v) { return activate(kind, v); });
}
void scale(const Rows& x, double a, double b, const Rows& y) {
  const auto factor = static_cast<float>(a), offset = static_cast<float>(b);
  if (b == 0) map(x, y, [&](float v) { return factor * v; });
  else map(x, y, [&](float v) { return factor * v + offset; });
}
void cast(const Rows& x, std::uint32_t num, const Rows& y) {
  map(x, y, [&](float v) { return round_num(num, v); });
}
void clamp(const Rows& x, double low, double high, const Rows& y) {
  const auto lo = static_cast<float>(low), hi = static_cast<float>(high);
  map(x, y, [&](float v) { return v < lo ? lo : v > hi ? hi : v; });
}
void softcap(const Rows& x, double c, const Rows& y) {
  map(x, y, [&](float v) { return static_cast<float>(c * std::tanh(v / c)); });
}

void glu(const Rows& g, const Rows& u, std::int64_t kind, double limit, double alpha, const Rows& y) {
  const auto most = static_cast<float>(limit);
  const auto clamped = [&](float gate, float up) {
    gate = gate > most ? most : gate;
    up = up > most ? most : up < -most ? -most : up;
    return static_cast<float>(gate * sigmoid(alpha * gate) * (up + 1.0));
  };
  if (kind == kSwigluClamped) combine(g, u, y, clamped);
  else combine(g, u, y, [&](float gate, float up) { return activate(kind, gate) * up; });
}

}  // namespace mekik::reference
