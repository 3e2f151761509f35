#include "sample/draw.hpp"

#include <mekik/softmax.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

namespace mekik::sample {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// In lanes, so that no addition waits for the one before.
double sum_of(std::span<const double> x) {
  double lanes[8] = {};
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i % 8] += x[i];
  return std::accumulate(std::begin(lanes), std::end(lanes), 0.0);
}

constexpr std::size_t kPart = 256;  // tokens that are looked at together

// Most of the time of a draw is in these weights, whose bits are the same on all machines (nothing is contracted).
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MEKIK_FOR_EACH_MACHINE [[gnu::target_clones("avx512f", "avx2", "default")]]
#else
#define MEKIK_FOR_EACH_MACHINE
#endif

// The weights of a part's tokens against `top`, and their sum.
MEKIK_FOR_EACH_MACHINE double weigh(std::span<const float> logits, float top, std::span<double> weights) {
  for (std::size_t i = 0; i < logits.size(); ++i) weights[i] = exp_of(double{logits[i]} - double{top});
  return sum_of(weights.first(logits.size()));
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
  const std::size_t n = logits.size(), n_parts = (n + kPart - 1) / kPart;
  scratch.resize(n + n_parts);
  const std::span<double> weights{scratch.data(), n}, sums{scratch.data() + n, n_parts};
  const auto part_of = [n](auto all, std::size_t part) { return all.subspan(part * kPart, std::min(kPart, n - part * kPart)); };
  double total = 0;
  for (std::size_t part = 0; part < n_parts; ++part) {
    const std::span<const float> of = part_of(logits, part);
    // A chain that cuts leaves few tokens of many.
    sums[part] = largest(of) > -kInfinity ? weigh(of, top, part_of(weights, part)) : 0;
    total += sums[part];
  }
  const double target = uniform * total;
  double before = 0;
  std::size_t last = 0;
  for (std::size_t part = 0; part < n_parts; ++part) {
    if (sums[part] < kNothing) continue;
    if (before + sums[part] < target * (1 - 1e-12)) {  // surely not in here
      before += sums[part];
      continue;
    }
    const std::span<const double> of = part_of(weights, part);
    double sum = before;
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (of[i] < kNothing) continue;
      sum += of[i];
      last = part * kPart + i;
      if (sum > target) return static_cast<std::int32_t>(last);
    }
    before += sums[part];
  }
  return static_cast<std::int32_t>(last);  // uniform * total was rounded up to the total
}

LogSoftmax::LogSoftmax(std::span<const float> logits) : logits_{logits} {
  const float top = largest(logits);
  double weights[kPart], total = 0;
  for (std::size_t i = 0; i < logits.size(); i += kPart)
    total += weigh(logits.subspan(i, std::min(kPart, logits.size() - i)), top, weights);
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
