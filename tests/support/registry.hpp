// A registry over the plugins of this build.
#pragma once
#include "metrics/metrics.hpp"
#include "plugin/registry.hpp"
#include "support/paths.hpp"

namespace mekik::test {

struct Plugins {
  metrics::Metrics metrics;
  plugin::Registry registry{{build_directory() / "lib" / "mekik", {}, 1}, metrics};
};

}  // namespace mekik::test
