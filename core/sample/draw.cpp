#include "sample/draw.hpp"

#include <mekik/softmax.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace mekik::sample {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

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
