// Components that exist only as option rows, for tests of pipelines: every type and flag occurs once.
#pragma once
#include <mekik/plugin.hpp>

#include <array>
#include <string>
#include <vector>

#include "config/core_rows.hpp"
#include "config/pipeline.hpp"

namespace mekik::test {

inline const std::vector<mekik_component>& fake_components() {
  using namespace mekik::opt;
  static constexpr std::array cpu{choice("math", "fast", "fast|exact", "How activations are kept."),
                                  with(text("kernel", nullptr, "Use math."), MEKIK_OPT_DEPRECATED)};
  static constexpr std::array gpu{boolean("graphs", "true", "Whether steps are captured."),
                                  size("pool", "64MiB", 1048576, 1099511627776.0, "Memory pool.")};
  static constexpr std::array prefix{duration("ttl", "10m", 1e9, 86400e9, "How long an unused block is kept.")};
  static constexpr std::array continuous{real("share", "0.5", 0, 1, "Part of a step that prompts may take."),
                                         integer("lookahead", "8", 1, 64, "Sequences that are looked at.")};
  static constexpr std::array standard{real("temperature", "0", 0, 5, "How flat the distribution is made."),
                                       integer("top_k", "0", 0, 1000000, "Likeliest tokens kept; 0: all.")};
  static constexpr std::array ngram{with(integer("n", nullptr, 1, 16, "Length of the pattern."), MEKIK_OPT_REQUIRED)};
  static constexpr std::array limits{with(integer("lines", nullptr, 1, 100, "Most lines."), MEKIK_OPT_REQUIRED),
                                     text("unit", "\"lines\"", "What is counted.")};
  static constexpr std::array jsonl = [] {
    std::array rows{with(path("path", nullptr, "File to append to."), MEKIK_OPT_REQUIRED),
                    with(text("token", nullptr, "Sent with each line."), MEKIK_OPT_SECRET),
                    with(text("fields", "[]", "Fields to write."), MEKIK_OPT_LIST),
                    option(MEKIK_OPT_TABLE, "limit", nullptr, "When a new file is begun."),
                    option(MEKIK_OPT_COMPONENT, "cache", nullptr, "A cache to watch.")};
    rows[3].fields = limits.data();
    rows[3].n_fields = limits.size();
    rows[3].field_size = sizeof(mekik_option);
    rows[4].choices = "mekik.cache/1";
    return rows;
  }();
  static constexpr std::span<const mekik_option> none{};
  static const std::vector<mekik_component> all{
      component("mekik.backend/1", "cpu", "1", "The CPU.", cpu, nullptr),
      component("mekik.backend/1", "gpu", "1", "A GPU.", gpu, nullptr),
      component("mekik.cache/1", "none", "1", "Keeps nothing.", none, nullptr),
      component("mekik.cache/1", "prefix", "1", "Keeps prefixes.", prefix, nullptr),
      component("mekik.scheduler/1", "continuous", "1", "Continuous batching.", continuous, nullptr),
      component("mekik.sampler/1", "standard", "1", "Temperature and friends.", standard, nullptr),
      component("mekik.drafter/0", "ngram", "1", "Repeats what was said.", ngram, nullptr),
      component("mekik.sink/1", "jsonl", "1", "A line of JSON for each event.", jsonl, nullptr),
  };
  return all;
}

class FakeComponents final : public config::Components {
 public:
  Result<const mekik_component*> component(const std::string& kind, const config::Use& use) override {
    for (const mekik_component& one : fake_components())
      if (config::kind_of(one.kind) == kind && use.name == one.name) return &one;
    return invalid("there is no " + kind + " \"" + use.name + "\"");
  }
  Status add(const std::vector<std::string>& load, const std::vector<std::string>& dirs) override {
    loaded.insert(loaded.end(), load.begin(), load.end());
    directories.insert(directories.end(), dirs.begin(), dirs.end());
    return load == std::vector<std::string>{"broken"} ? invalid("broken.so: is broken") : Status{};
  }
  std::vector<std::string> loaded, directories;
};

}  // namespace mekik::test
