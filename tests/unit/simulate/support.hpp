// Scenarios of configs/scenarios/, or written down in a test, run over the fake clock.
#pragma once
#include <fstream>

#include "simulate/report.hpp"
#include "support/catch.hpp"
#include "support/registry.hpp"

namespace mekik::test {

inline Plugins& plugins() {
  static Plugins all;
  return all;
}

inline simulate::Scenario read_scenario(const std::string& path, const std::vector<std::string>& set = {}) {
  std::vector<config::Override> overrides;
  for (const auto& text : set) overrides.push_back({text});
  config::Diagnostics diagnostics;
  auto scenario = simulate::load_scenario(path, overrides, plugins().registry, diagnostics);
  if (!scenario) throw std::runtime_error{diagnostics.render()};
  return std::move(*scenario);
}
inline simulate::Scenario ready(const std::string& name, const std::vector<std::string>& set = {}) {
  return read_scenario((source_directory() / "configs" / "scenarios" / (name + ".toml")).string(), set);
}
inline simulate::Scenario written(const std::string& toml, const std::vector<std::string>& set = {}) {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "scenario.toml";
  std::ofstream{path} << toml;
  return read_scenario(path.string(), set);
}

// With every promise of the engine looked at after every `often` turns.
inline simulate::Outcome run(const simulate::Scenario& scenario, int often = 16) {
  int turn = 0;
  auto outcome = simulate::simulate(scenario, plugins().registry, nullptr,
                                    [&](const engine::Loop& loop) { return turn++ % often == 0 ? loop.check_invariants() : Status{}; });
  if (!outcome) throw std::runtime_error{outcome.status().text};
  CHECK(outcome->blocks_leaked == 0);
  return std::move(*outcome);
}

inline double percentile(const std::vector<double>& values, double share) {
  REQUIRE(!values.empty());
  return *simulate::percentile(values, share);
}

}  // namespace mekik::test
