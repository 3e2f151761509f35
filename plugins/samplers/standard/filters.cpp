#include "filters.hpp"

#include <mekik/softmax.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace standard {
namespace {

using mekik::exp_of;
using mekik::kNothing;
using mekik::largest;

constexpr float kBanned = -std::numeric_limits<float>::infinity();

}  // namespace

void greedy(std::span<float> logits) {
  const auto best = std::find(logits.begin(), logits.end(), largest(logits));  // the first of equals
  const float keep = *best;
  std::fill(logits.begin(), logits.end(), kBanned);
  *best = keep;
}

void temper(std::span<float> logits, double temperature) {
  const double top = largest(logits);
  if (std::isinf(top)) return;  // all are banned
  for (float& l : logits) l = static_cast<float>((l - top) / temperature);
}

void keep_min_p(std::span<float> logits, double min_p) {
  if (min_p <= 0) return;
  min_p = std::min(min_p, 1.0);
  const double least = largest(logits) + std::log(min_p);
  for (float& l : logits)
    if (l < least) l = kBanned;
}

void keep_top_k(std::span<float> logits, std::uint32_t k, std::vector<Candidate>& scratch) {
  if (k == 0 || k >= logits.size()) return;
  const auto before = [](const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; };
  // Twice k of the best seen so far; when full, the better half stays and its last sets the bar for what comes next.
  scratch.clear();
  const std::size_t room = std::max<std::size_t>(2 * std::size_t{k}, 1024);
  float bar = kBanned;
  const auto halve = [&] {
    std::nth_element(scratch.begin(), scratch.begin() + (k - 1), scratch.end(), before);
    scratch.resize(k);
    bar = scratch.back().logit;
  };
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (scratch.size() >= k && !(logits[i] > bar)) continue;  // an equal one has a higher id
    scratch.push_back({logits[i], static_cast<std::int32_t>(i)});
    if (scratch.size() == room) halve();
  }
  if (scratch.size() > k) halve();
  std::fill(logits.begin(), logits.end(), kBanned);
  for (const auto& c : scratch) logits[static_cast<std::size_t>(c.id)] = c.logit;
}

namespace {

// Bans what lies behind the tokens of `of` that weigh `missing` together. Quickselect by mass: [0, kept) is in the set, the border lies in
// [kept, end).
void cut(std::span<float> logits, std::vector<Weighted>& of, double missing) {
  const auto before = [](const Weighted& a, const Weighted& b) { return a.weight != b.weight ? a.weight > b.weight : a.id < b.id; };
  std::size_t kept = 0, end = of.size();
  while (end - kept > 1) {
    const auto first = of.begin() + static_cast<std::ptrdiff_t>(kept), last = of.begin() + static_cast<std::ptrdiff_t>(end);
    const auto middle = first + (last - first) / 2;
    std::nth_element(first, middle, last, before);
    double upper = 0;
    for (auto at = first; at != middle; ++at) upper += at->weight;
    if (upper >= missing) {
      end = static_cast<std::size_t>(middle - of.begin());
    } else {
      missing -= upper;
      kept = static_cast<std::size_t>(middle - of.begin());
    }
  }
  for (std::size_t i = kept + 1; i < of.size(); ++i) logits[static_cast<std::size_t>(of[i].id)] = kBanned;
}

// The tokens that are not banned, with their weights against `top`, if they are few: after another filter they are.
bool few_left(std::span<const float> logits, double top, std::vector<Weighted>& out) {
  constexpr std::size_t kFew = 2048, kPart = 256;
  out.clear();
  for (std::size_t begin = 0; begin < logits.size(); begin += kPart) {
    const std::size_t end = std::min(begin + kPart, logits.size());
    if (largest(logits.subspan(begin, end - begin)) == kBanned) continue;
    for (std::size_t i = begin; i < end; ++i)
      if (logits[i] != kBanned) out.push_back({exp_of(logits[i] - top), static_cast<std::int32_t>(i)});
    if (out.size() > kFew) return false;
  }
  return true;
}

}  // namespace

void keep_top_p(std::span<float> logits, double p, TopP& memory) {
  auto& [weights, bins, scratch] = memory;
  if (p >= 1) return;
  const double top = largest(logits);
  if (std::isinf(top)) return;
  double total = 0;
  if (few_left(logits, top, scratch)) {
    for (const Weighted& w : scratch) total += w.weight;
    return cut(logits, scratch, p * total);
  }
  weights.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) weights[i] = exp_of(logits[i] - top);
  for (const double w : weights) total += w;
  // All tokens below this together weigh less than (1 - p) of the total, so that the set lies above it.
  const double least = std::max((1 - p) * total / static_cast<double>(logits.size()) * (1 - 1e-9), kNothing);
  // Which of kBins steps of the logit the border lies in; only that one is looked at token by token.
  constexpr std::int32_t kBins = 1024;
  const double per_logit = kBins / -std::log(least);
  bins.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double bin = (top - logits[i]) * per_logit;
    bins[i] = static_cast<std::int32_t>(bin < kBins ? bin : kBins);
  }
  double mass[kBins + 1] = {};  // the last one: below `least`
  for (std::size_t i = 0; i < logits.size(); ++i) mass[bins[i]] += weights[i];
  double missing = p * total;
  std::int32_t border = 0;
  while (border < kBins && mass[border] < missing) missing -= mass[border++];
  scratch.clear();
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (bins[i] == border && weights[i] > kNothing) scratch.push_back({weights[i], static_cast<std::int32_t>(i)});
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = bins[i] > border ? kBanned : logits[i];
  cut(logits, scratch, missing);
}

}  // namespace standard
