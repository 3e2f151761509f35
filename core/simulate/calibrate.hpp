// What steps of a model take, measured on its engine loop.
#pragma once
#include <string>
#include <vector>

#include "engine/model.hpp"
#include "simulate/backend.hpp"
#include "simulate/scenario.hpp"

namespace mekik::simulate {

struct Sample {
  Shape shape;
  double step_ns = 0, host_ns = 0;  // of the backend; of the rest of the loop's turn
};

// Turns the loop of a loaded model over prompts and answers of many sizes, alone and together, for at most about `budget_ns`.
Result<std::vector<Sample>> measure(const Scenario& scenario, plugin::Registry& registry, engine::Model& model, std::uint64_t budget_ns);

struct Fit {
  Costs costs;
  double median_error = 0, most_error = 0;  // of steps, relative; the latter of nine in ten of them
  std::size_t samples = 0;
};
// Least squares of relative errors, no cost negative. What other programs disturbed counts little.
Result<Fit> fit(const std::vector<Sample>& samples);

}  // namespace mekik::simulate
