// A scenario file: a pipeline, and beside it the loads that come, and what steps cost.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/pipeline.hpp"

namespace mekik::simulate {

// How many tokens a prompt or an answer has.
struct Lengths {
  enum class Kind { none, fixed, uniform, lognormal, list } kind = Kind::none;
  double a = 0, b = 0;                // the length; from, to; median, sigma
  std::uint32_t least = 1, most = 0;  // 0: no limit
  std::vector<std::uint32_t> list;
  std::uint32_t draw(double uniform, double normal) const;  // `uniform` in [0, 1)
};

// A line of a trace.
struct Arrival {
  std::uint64_t at_ns = 0;
  std::uint32_t prompt = 0, answer = 0, tenant = 0, prefix = 0;  // prefix: group + 1; 0: of none
  std::int32_t priority = 0;
  bool has_priority = false;
};

enum class Arrivals { poisson, constant, closed };

struct Load {
  std::string name;
  Arrivals arrivals = Arrivals::poisson;
  double rate = 0;             // a second
  std::vector<double> shape;   // factors of it over the load's time
  std::uint32_t burst = 1;     // requests that come at once
  std::uint32_t users = 0;     // of a closed load
  std::uint64_t think_ns = 0;  // mean, from an answer to the user's next request
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::uint64_t requests = 0;    // most; 0: no limit
  Lengths prompt, answer, said;  // said: what a further turn adds
  std::uint32_t turns = 1;
  std::uint64_t turn_think_ns = 0;  // mean
  std::uint32_t prefix_groups = 0, prefix_tokens = 0;
  double prefix_share = 1;      // of the requests
  std::vector<double> tenants;  // their parts of the load
  std::uint32_t first_tenant = 1;
  std::int32_t priority = 0;
  std::uint64_t ttft_ns = 0, tpot_ns = 0, deadline_ns = 0;  // targets; 0: none
  double cancel = 0;                                        // this part of the requests
  std::uint64_t cancel_after_ns = 0;                        // mean
  std::uint32_t retries = 0;                                // of a refused one
  std::vector<Arrival> trace;                               // by time; in place of arrivals and lengths
};

// What a step takes, in nanoseconds: `step` + `token` for each token + `row` for each sequence whose logits are made + `context` for each
// token and token of its context; and beside the backend, from one step to the next, `host_step` + `host_row` for each of those rows.
struct Costs {
  double step = 0, token = 0, row = 0, context = 0, host_step = 0, host_row = 0;
};

struct Machine {  // in place of a model
  std::uint32_t context = 0, vocabulary = 0;
  std::uint64_t token_bytes = 0;
};

struct Scenario {
  config::Pipeline pipeline;
  bool has_model = false;
  std::uint64_t seed = 0, duration_ns = 0;
  bool share_prefixes = false;  // between tenants
  std::vector<Load> loads;
  Costs costs;
  bool calibrate = false;
  Machine machine;
};

// Reads and checks a scenario file; all mistakes are in `diagnostics`.
std::optional<Scenario> load_scenario(const std::string& path, const std::vector<config::Override>& overrides,
                                      config::Components& components, config::Diagnostics& diagnostics);

// The lines of a trace. Each is a JSON object with `at` (seconds), `prompt` and `answer` (tokens), and maybe `tenant`, `priority`,
// `prefix`. Errors name the line.
Result<std::vector<Arrival>> read_trace(const std::string& path);

}  // namespace mekik::simulate
