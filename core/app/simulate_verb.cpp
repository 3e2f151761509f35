// simulate: a scenario's requests on the engine's own scheduler and cache, with steps that only take their time.
#include <cstdio>

#include "app/session.hpp"
#include "app/verbs.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "simulate/report.hpp"

namespace mekik::app {
namespace {

constexpr std::uint64_t kCalibrateNs = 6'000'000'000;

std::optional<simulate::Scenario> scenario_of(Session& session, const Arguments& arguments) {
  const std::string& path = arguments.operands[0];
  read_operand_file(path);  // one that is not there is told as everywhere
  std::vector<config::Override> overrides;
  for (const std::string& text : arguments.overrides()) overrides.push_back({text});
  config::Diagnostics diagnostics;
  auto scenario = simulate::load_scenario(path, overrides, session.registry(), diagnostics);
  if (!diagnostics.ok() || !scenario) throw Failure{kMisused, diagnostics.render(), true};
  if (!diagnostics.all().empty()) log::warning("config", diagnostics.render());
  if (arguments.flag("print-config")) {
    std::fputs(config::print_pipeline(scenario->pipeline).c_str(), stdout);
    return std::nullopt;
  }
  if (scenario->pipeline.threads > 0) session.registry().set_threads(scenario->pipeline.threads);
  return scenario;
}

// What the run needs a model for, if it does.
std::unique_ptr<engine::Model> model_of(Session& session, const simulate::Scenario& scenario, bool real) {
  if (!scenario.calibrate && !real) return nullptr;
  if (!scenario.has_model)
    throw misused(std::string{real ? "--real" : "calibrate = true"} +
                  " needs a model: write [model] path = \"...\", or --set model.path=FILE");
  const Status found = find_path(scenario.pipeline.model.path);
  if (!found.ok()) throw Failure{found.code == Code::invalid ? kMisused : kFailed, scenario.pipeline.model.path + ": " + found.text};
  auto model = session.open(scenario.pipeline);
  if (model->task() != program::Task::generate)
    throw failed(unsupported(model->name() + " is not run to generate text, and simulate does nothing else"));
  session.load(*model);
  return model;
}

void print_comparison(const std::vector<simulate::Compared>& rows) {
  std::printf("%-30s %14s %14s %8s\n", "", "simulated", "real", "ratio");
  for (const auto& row : rows) {
    std::printf("%-30s %14.6g %14.6g ", row.name.c_str(), row.simulated, row.real);
    row.real > 0 ? std::printf("%8.3f\n", row.simulated / row.real) : std::printf("%8s\n", "-");
  }
}

int run_simulate(const Arguments& arguments) {
  Session session;
  auto scenario = scenario_of(session, arguments);
  if (!scenario) return kSuccess;
  const bool real = arguments.flag("real"), as_json = arguments.flag("json");
  const auto model = model_of(session, *scenario, real);
  std::vector<simulate::Sample> samples;
  const auto measure = [&] {
    auto more = need(simulate::measure(*scenario, session.registry(), *model, kCalibrateNs));
    samples.insert(samples.end(), more.begin(), more.end());
  };
  std::optional<simulate::Outcome> was;
  if (scenario->calibrate) measure();
  if (real) was = need(simulate::run_real(*scenario, session.registry(), *model));
  if (real && scenario->calibrate) measure();  // before and after, since machines change
  std::optional<simulate::Fit> fit;
  if (scenario->calibrate) {
    fit = need(simulate::fit(samples));
    scenario->costs = fit->costs;
  }
  const auto outcome = need(simulate::simulate(*scenario, session.registry(), model.get()));
  if (!as_json) {
    if (fit) std::fputs(simulate::to_text(*fit).c_str(), stdout);
    if (was) std::puts("simulated:");
    std::fputs(simulate::to_text(*scenario, outcome).c_str(), stdout);
    if (!was) return kSuccess;
    std::puts("real:");
    std::fputs(simulate::to_text(*scenario, *was).c_str(), stdout);
    print_comparison(simulate::compare(outcome, *was));
    return kSuccess;
  }
  json::object out = simulate::to_json(*scenario, outcome);
  if (fit) out["costs"] = simulate::to_json(*fit);
  if (was) {
    out["real"] = simulate::to_json(*scenario, *was);
    json::object ratios;
    for (const auto& row : simulate::compare(outcome, *was))
      if (row.real > 0) ratios[row.name] = row.simulated / row.real;
    out["ratios"] = std::move(ratios);
  }
  std::puts(json::serialize(out).c_str());
  return kSuccess;
}

}  // namespace

const Verb kSimulate{"simulate",
                     "SCENARIO",
                     "A day of requests in seconds: the real scheduler and cache, with steps that only take their time.",
                     "mekik simulate configs/scenarios/day.toml --set scheduler.use=fair",
                     [](po::options_description& o) {
                       o.add_options()                                                                                     //
                           ("real", po::bool_switch(), "run the same requests on the scenario's model, too, and compare")  //
                           ("json", po::bool_switch(), "the report as JSON");
                     },
                     1,
                     1,
                     true,
                     run_simulate};

}  // namespace mekik::app
