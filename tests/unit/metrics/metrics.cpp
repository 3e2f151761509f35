#include "metrics/metrics.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <thread>

#include "base/log.hpp"
#include "metrics/names.hpp"
#include "support/catch.hpp"

using namespace mekik::metrics;

namespace {

const mekik_sample* find(const Metrics::Snapshot& snapshot, const std::string& name, const std::string& labels = {}) {
  for (const mekik_sample& sample : snapshot.samples)
    if (sample.name == name && sample.labels == labels) return &sample;
  return nullptr;
}

}  // namespace

TEST_CASE("A counter adds what it is given and starts at zero (B148, B154)") {
  Metrics metrics;
  mekik_metric* tokens = metrics.counter("mekik_generated_tokens_total", "Tokens made.");
  REQUIRE(tokens != nullptr);
  CHECK(find(metrics.snapshot(), "mekik_generated_tokens_total")->value == 0);
  for (int request = 1; request <= 3; ++request) {
    tokens->record(10);
    CHECK(find(metrics.snapshot(), "mekik_generated_tokens_total")->value == 10 * request);
  }
}

TEST_CASE("Nothing makes a counter go down or any value NaN") {
  mekik::log::set_level(mekik::log::Level::fatal);
  Metrics metrics;
  mekik_metric* counter = metrics.counter("c_total", "");
  mekik_metric* gauge = metrics.gauge("g", "");
  mekik_metric* histogram = metrics.histogram("h", "", {1});
  counter->record(5);
  gauge->record(7);
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    counter->record(bad);
    gauge->record(bad);
    histogram->record(bad);
  }
  counter->record(-1);
  const auto snapshot = metrics.snapshot();
  CHECK(find(snapshot, "c_total")->value == 5);
  CHECK(find(snapshot, "g")->value == 7);
  CHECK(find(snapshot, "h")->value == 0);
  CHECK(find(snapshot, "h")->count == 0);
}

TEST_CASE("Names follow Prometheus (B150)") {
  Metrics metrics;
  CHECK(metrics.counter("requests", "") == nullptr);
  CHECK(metrics.gauge("requests_total", "") == nullptr);
  CHECK(metrics.gauge("a:b", "") == nullptr);
  CHECK(metrics.gauge("1a", "") == nullptr);
  CHECK(metrics.gauge("", "") == nullptr);
  CHECK(metrics.gauge("a-b", "") == nullptr);
  CHECK(metrics.gauge("g", "", "le=1") == nullptr);
  CHECK(metrics.gauge("g", "", "__x=1") == nullptr);
  CHECK(metrics.gauge("g", "", "k") == nullptr);
  CHECK(metrics.gauge("g", "", "k=1,k=2") == nullptr);
  CHECK(metrics.gauge("g", "", "k=\xFF") == nullptr);
  CHECK(metrics.snapshot().samples.empty());
}

TEST_CASE("A name has one type, one set of bounds, and no family hides in another") {
  Metrics metrics;
  REQUIRE(metrics.gauge("x", "") != nullptr);
  CHECK(metrics.histogram("x", "", {1}) == nullptr);
  REQUIRE(metrics.histogram("h", "", {1, 2}) != nullptr);
  CHECK(metrics.histogram("h", "", {1, 3}, "k=v") == nullptr);
  CHECK(metrics.gauge("h_count", "") == nullptr);
  REQUIRE(metrics.gauge("y_sum", "") != nullptr);
  CHECK(metrics.histogram("y", "", {1}) == nullptr);
  CHECK(metrics.histogram("z", "", {2, 1}) == nullptr);
  CHECK(metrics.histogram("z", "", {1, 1}) == nullptr);
  CHECK(metrics.histogram("z", "", {1, std::numeric_limits<double>::infinity()}) == nullptr);
}

TEST_CASE("The same labels in another order are the same series") {
  Metrics metrics;
  mekik_metric* first = metrics.counter("r_total", "", "b=2,a=1");
  CHECK(metrics.counter("r_total", "", "a=1,b=2") == first);
  CHECK(metrics.counter("r_total", "", "a=1,b=3") != first);
  CHECK(find(metrics.snapshot(), "r_total", "a=1,b=2") != nullptr);
}

TEST_CASE("Histogram counts are cumulative, a value on a bound belongs to it") {
  Metrics metrics;
  mekik_metric* h = metrics.histogram("h", "help", {1, 2, 4});
  for (const double v : {0.5, 1.0, 1.5, 4.0, 9.0}) h->record(v);
  const auto snapshot = metrics.snapshot();
  const mekik_sample* s = find(snapshot, "h");
  REQUIRE(s->n_bounds == 3);
  CHECK(s->counts[0] == 2);
  CHECK(s->counts[1] == 3);
  CHECK(s->counts[2] == 4);
  CHECK(s->count == 5);
  CHECK(s->value == 16.0);
  CHECK(std::string{s->help} == "help");
}

TEST_CASE("A snapshot outlives the registry") {
  auto metrics = std::make_unique<Metrics>();
  metrics->histogram("h", "help", {1}, "k=v")->record(0.5);
  const auto snapshot = metrics->snapshot();
  metrics.reset();
  const mekik_sample* s = find(snapshot, "h", "k=v");
  REQUIRE(s != nullptr);
  CHECK(s->counts[0] == 1);
  CHECK(s->bounds[0] == 1.0);
}

TEST_CASE("Many threads: nothing is lost, and no snapshot contradicts itself") {
  Metrics metrics;
  mekik_metric* counter = metrics.counter("c_total", "");
  mekik_metric* histogram = metrics.histogram("h", "", {1, 2, 3});
  constexpr int kThreads = 4, kEach = 20000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        metrics.counter("c_total", "")->record(1);
        histogram->record((i + t) % 5);
      }
    });
  double last = 0;
  bool consistent = true;
  for (int i = 0; i < 200; ++i) {
    const auto snapshot = metrics.snapshot();
    const mekik_sample* h = find(snapshot, "h");
    consistent = consistent && h->counts[0] <= h->counts[1] && h->counts[1] <= h->counts[2] && h->counts[2] <= h->count;
    consistent = consistent && find(snapshot, "c_total")->value >= last;
    last = find(snapshot, "c_total")->value;
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(consistent);
  CHECK(find(metrics.snapshot(), "c_total")->value == kThreads * kEach);
  CHECK(find(metrics.snapshot(), "h")->count == kThreads * kEach);
  CHECK(counter == metrics.counter("c_total", ""));
}

TEST_CASE("Every metric of the engine is one that the registry takes") {
  Metrics metrics;
  for (const Definition& definition : definitions()) {
    INFO(definition.name);
    CHECK(make(metrics, definition) != nullptr);
    CHECK(std::string{definition.help}.size() > 10);
  }
  CHECK(metrics.snapshot().samples.size() == definitions().size());
}

TEST_CASE("TPOT has no meaning for one token") {
  CHECK_FALSE(tpot_seconds(1'000'000'000, 1));
  CHECK_FALSE(tpot_seconds(0, 0));
  CHECK(*tpot_seconds(1'000'000'000, 11) == Approx(0.1));
}
