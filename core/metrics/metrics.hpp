// Counters, gauges and histograms of the process. Names and meanings: metrics/names.hpp, defined once for server, bench and sinks.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct mekik_metric {  // the ABI's opaque handle
  virtual ~mekik_metric() = default;
  // [any thread] counter: adds (never a negative value), gauge: sets, histogram: observes.
  virtual void record(double value) = 0;
};

namespace mekik::metrics {

class Metrics {
 public:
  Metrics();
  ~Metrics();
  // The handle of (name, labels), made at first use; the same one afterwards. nullptr when the name is already of another type,
  // or not a Prometheus name, or a counter's does not end in _total. `labels` is "k=v,k=v". Handles live as long as the registry.
  mekik_metric* counter(std::string_view name, std::string_view help, std::string_view labels = {});
  mekik_metric* gauge(std::string_view name, std::string_view help, std::string_view labels = {});
  mekik_metric* histogram(std::string_view name, std::string_view help, const std::vector<double>& bounds, std::string_view labels = {});
  // A consistent copy of all values; the samples point into `storage`.
  struct Snapshot {
    std::vector<mekik_sample> samples;
    std::shared_ptr<void> storage;  // keeps what the samples point to
  };
  Snapshot snapshot() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mekik::metrics
