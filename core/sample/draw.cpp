#include "sample/draw.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

namespace mekik::sample {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// exp(x) for x <= 0, to 2 units in the last place; below -700 it stays about 1e-304 (kNothing says what counts as 0). Own code without
// branches, so that the compiler vectorises it and the answer does not depend on the C library: x = n ln 2 + r with |r| <= ln 2 / 2, a
// Taylor polynomial of degree 13 in r, and n added to the exponent.
constexpr double kNothing = 1e-300;
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
float largest(std::span<const float> logits) {
  float lanes[8];
  std::fill(lanes, lanes + 8, -kInfinity);
  std::size_t i = 0;
  for (; i + 8 <= logits.size(); i += 8)
    for (std::size_t j = 0; j < 8; ++j) lanes[j] = logits[i + j] > lanes[j] ? logits[i + j] : lanes[j];
  for (; i < logits.size(); ++i) lanes[0] = std::max(lanes[0], logits[i]);
  return *std::max_element(lanes, lanes + 8);
}

}  // namespace

Status check_logits(std::span<const float> logits) {
  bool bad = false;
  for (const float l : logits) bad |= !(l < kInfinity);  // NaN compares false, too
  if (!bad) return {};
  const auto first = std::find_if(logits.begin(), logits.end(), [](float l) { return !(l < kInfinity); });
  const bool nan = std::isnan(*first);
  return internal_error(std::string{"the model produced "} + (nan ? "NaN" : "infinite") + " logits (first at token " +
                        std::to_string(first - logits.begin()) + "); its weights or this backend's numbers are damaged");
}

Result<std::int32_t> draw(std::span<const float> logits, double uniform, std::vector<double>& scratch) {
  const float top = largest(logits);
  if (!(top > -kInfinity)) return internal_error("every token is banned: no token can follow under the request's constraints");
  scratch.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) scratch[i] = exp_of(double{logits[i]} - double{top});
  double total = 0;
  for (const double w : scratch) total += w;
  const double target = uniform * total;
  double sum = 0;
  std::int32_t last = 0;
  for (std::size_t i = 0; i < scratch.size(); ++i) {
    if (scratch[i] < kNothing) continue;
    sum += scratch[i];
    last = static_cast<std::int32_t>(i);
    if (sum > target) return last;
  }
  return last;  // uniform * total was rounded up to the total
}

LogSoftmax::LogSoftmax(std::span<const float> logits) : logits_{logits} {
  const float top = largest(logits);
  double total = 0;
  for (const float l : logits) total += std::exp(double{l} - double{top});
  log_total_ = double{top} + std::log(total);
}

float LogSoftmax::logprob(std::int32_t id) const { return static_cast<float>(double{logits_[static_cast<std::size_t>(id)]} - log_total_); }

std::vector<std::pair<std::int32_t, float>> LogSoftmax::top(std::uint32_t count) const {
  const auto before = [this](std::int32_t a, std::int32_t b) {
    const float x = logits_[static_cast<std::size_t>(a)], y = logits_[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  std::vector<std::int32_t> best;  // sorted; count is small
  const std::size_t n = std::min<std::size_t>(count, logits_.size());
  for (std::size_t i = 0; i < logits_.size() && n > 0; ++i) {
    const auto id = static_cast<std::int32_t>(i);
    if (best.size() == n && !before(id, best.back())) continue;
    if (best.size() == n) best.pop_back();
    best.insert(std::upper_bound(best.begin(), best.end(), id, before), id);
  }
  std::vector<std::pair<std::int32_t, float>> out;
  out.reserve(best.size());
  for (const auto id : best) out.emplace_back(id, logprob(id));
  return out;
}

}  // namespace mekik::sample
