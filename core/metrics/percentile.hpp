// The one definition of a percentile: of reports, benchmarks and tests.
#pragma once
#include <optional>
#include <vector>

namespace mekik::metrics {

// The smallest of the values that at least `share` (0 to 1) of them do not exceed. Nothing without values.
std::optional<double> percentile(std::vector<double> values, double share);

}  // namespace mekik::metrics
