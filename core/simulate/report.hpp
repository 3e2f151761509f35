// What a run of a scenario comes to, for people and for programs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "metrics/percentile.hpp"
#include "simulate/calibrate.hpp"
#include "simulate/run.hpp"

namespace mekik::simulate {

using metrics::percentile;  // of values in seconds

json::object to_json(const Scenario& scenario, const Outcome& outcome);
json::object to_json(const Fit& fit);
std::string to_text(const Scenario& scenario, const Outcome& outcome);
std::string to_text(const Fit& fit);

// A number of both runs: "ttft_seconds p50".
struct Compared {
  std::string name;
  double simulated = 0, real = 0;
};
std::vector<Compared> compare(const Outcome& simulated, const Outcome& real);

}  // namespace mekik::simulate
