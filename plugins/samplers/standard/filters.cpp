#include "filters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace standard {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();

float largest(std::span<const float> logits) {
  float top = kBanned;
  for (const float l : logits) top = std::max(top, l);
  return top;
}

}  // namespace

void greedy(std::span<float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());  // the first of equals
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

void keep_top_p(std::span<float> logits, double p, std::vector<Weighted>& scratch) {
  if (p >= 1) return;
  const double top = largest(logits);
  if (std::isinf(top)) return;
  scratch.clear();
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double weight = std::exp(logits[i] - top);
    if (weight == 0) continue;
    total += weight;
    scratch.push_back({weight, static_cast<std::int32_t>(i)});
  }
  const auto before = [](const Weighted& a, const Weighted& b) { return a.weight != b.weight ? a.weight > b.weight : a.id < b.id; };
  // Quickselect by mass: [0, kept) is in the set, the border lies in [kept, end).
  double missing = p * total;
  std::size_t kept = 0, end = scratch.size();
  while (end - kept > 1) {
    const auto first = scratch.begin() + static_cast<std::ptrdiff_t>(kept), last = scratch.begin() + static_cast<std::ptrdiff_t>(end);
    const auto middle = first + (last - first) / 2;
    std::nth_element(first, middle, last, before);
    double upper = 0;
    for (auto at = first; at != middle; ++at) upper += at->weight;
    if (upper >= missing) {
      end = static_cast<std::size_t>(middle - scratch.begin());
    } else {
      missing -= upper;
      kept = static_cast<std::size_t>(middle - scratch.begin());
    }
  }
  for (std::size_t i = kept + 1; i < scratch.size(); ++i) logits[static_cast<std::size_t>(scratch[i].id)] = kBanned;
}

}  // namespace standard
