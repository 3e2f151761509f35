#include "engine/step_costs.hpp"

#include <algorithm>

namespace mekik::engine {
namespace {

// What one more token is expected to cost where nothing is known: of a step of one token, and of the share that each token of a longer
// step has. Three tries tell.
constexpr double kSteep = 0.35, kShare = 0.5;

}  // namespace

void StepCosts::measured(std::uint32_t tokens, std::uint64_t ns) {
  if (tokens == 0 || tokens > kMost) return;
  if (points_.size() <= tokens) points_.resize(tokens + 1);
  ++steps_;
  Point& p = points_[tokens];
  if (p.n > 0 && steps_ - p.at > kOld) p = {};
  p.last[p.next] = std::max<std::uint64_t>(ns, 1);
  p.next = (p.next + 1) % static_cast<std::uint32_t>(p.last.size());
  p.n = std::min<std::uint32_t>(p.n + 1, static_cast<std::uint32_t>(p.last.size()));
  p.at = steps_;
  auto sorted = p.last;
  std::sort(sorted.begin(), sorted.begin() + p.n);
  p.median = static_cast<double>(sorted[(p.n - 1) / 2]);
}

bool StepCosts::fresh(std::uint32_t tokens, std::uint32_t times) const {
  return tokens < points_.size() && points_[tokens].n >= times && steps_ - points_[tokens].at <= kOld;
}

std::uint64_t StepCosts::age(std::uint32_t tokens) const {
  return tokens < points_.size() && points_[tokens].n > 0 ? steps_ - points_[tokens].at : UINT64_MAX;
}

std::optional<double> StepCosts::of(std::uint32_t tokens) const {
  if (fresh(tokens, kKnown)) return points_[tokens].median;
  std::uint32_t below = std::min<std::uint32_t>(tokens, static_cast<std::uint32_t>(points_.size()));
  while (below > 0 && !fresh(below, kKnown)) --below;
  if (below == 0)  // nothing is known yet: what there is
    for (below = std::min<std::uint32_t>(tokens, static_cast<std::uint32_t>(points_.size())); below > 0 && !fresh(below, 1);) --below;
  if (below == 0) return {};
  const double low = points_[below].median;
  if (below == tokens) return low;
  for (std::uint32_t above = tokens + 1; above < points_.size(); ++above)
    if (fresh(above, kKnown)) return low + (points_[above].median - low) * (tokens - below) / (above - below);
  return low * (1 + (tokens - below) * std::min(kSteep, kShare / below));
}

}  // namespace mekik::engine
