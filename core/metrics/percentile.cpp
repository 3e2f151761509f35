#include "metrics/percentile.hpp"

#include <algorithm>
#include <cmath>

namespace mekik::metrics {

std::optional<double> percentile(std::vector<double> values, double share) {
  if (values.empty()) return {};
  const auto at = static_cast<std::size_t>(std::max(1.0, std::ceil(share * static_cast<double>(values.size())))) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

}  // namespace mekik::metrics
