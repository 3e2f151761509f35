// A scenario under way: over a fake clock and the costs of its model, or in real time on the model itself.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/loop.hpp"
#include "engine/model.hpp"
#include "simulate/scenario.hpp"
#include "simulate/traffic.hpp"

namespace mekik::simulate {

struct Outcome {
  std::vector<Tally> loads;
  std::vector<std::pair<std::uint32_t, Tally>> tenants;
  double seconds = 0;  // until the last request had ended
  std::uint64_t steps = 0, step_sequences = 0, step_tokens = 0, places = 0, preemptions = 0;
  std::uint64_t cache_query_tokens = 0, cache_hit_tokens = 0, most_waiting = 0, blocks_leaked = 0;
  std::map<std::string, std::uint64_t> misses;  // by reason
  Tally all() const;
};

// The loop, the scheduler, the cache and the sampler chain are the real ones; the backend is made of the scenario's costs. With a model
// (opened) its limits and groups of blocks, else those of the scenario's machine. `after_step` sees the loop after each turn; an error ends
// the run. The same scenario always has the same outcome.
Result<Outcome> simulate(const Scenario& scenario, plugin::Registry& registry, const engine::Model* model,
                         const std::function<Status(const engine::Loop&)>& after_step = {});

// The same arrivals on the model's engine (loaded), as the clock says.
Result<Outcome> run_real(const Scenario& scenario, plugin::Registry& registry, engine::Model& model);

}  // namespace mekik::simulate
