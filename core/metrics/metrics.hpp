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
  // [any thread] counter: adds (never a negative value), gauge: sets, histogram: observes. Lock-free. A value that would make the
  // metric wrong (not finite, or negative for a counter) is left out, with one warning a handle in the log.
  virtual void record(double value) = 0;
};

namespace mekik::metrics {

// Thread: everything from any thread.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  // The handle of (name, labels), made at first use; the same one afterwards. nullptr when the name is already of another type
  // (or has other bounds), or not a Prometheus name (colons are reserved for recording rules), or a counter's does not end in _total,
  // or another type's does. `labels` is "k=v,k=v" in any order; no key twice. Handles live as long as the registry.
  mekik_metric* counter(std::string_view name, std::string_view help, std::string_view labels = {});
  mekik_metric* gauge(std::string_view name, std::string_view help, std::string_view labels = {});
  // `bounds`: finite and ascending upper limits; the bucket above the last one is implied.
  mekik_metric* histogram(std::string_view name, std::string_view help, const std::vector<double>& bounds, std::string_view labels = {});
  // A consistent copy of all values; the samples point into `storage`. Sorted by name, then labels (which are sorted by key).
  // A histogram's count is the sum over its buckets, so counts never contradict each other.
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
