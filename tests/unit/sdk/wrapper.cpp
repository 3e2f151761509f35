// The C++ wrapper and the fake host, on a plugin in this program.
#include <mekik/request.hpp>
#include <mekik/scheduling.hpp>
#include <mekik/testing_kinds.hpp>

#include "support/catch.hpp"

using namespace mekik;

namespace {

constexpr std::array kFields{opt::integer("size", "3", 1, 9, "A size."), opt::text("word", "\"w\"", "A word.")};

// A sink that keeps what it was told, and fails where a test asks it to.
struct Probe {
  static constexpr const char *name = "probe", *version = "1.0", *summary = "For tests.";
  static constexpr std::array options{opt::choice("mode", "\"good\"", "good|error|strange|memory|reject", "How it ends."),
                                      opt::list(opt::duration("times", nullptr, 1, 0, "Times.")),
                                      opt::list(opt::table("parts", kFields, "Parts.")),
                                      opt::size("bytes", "\"2KiB\"", 0, 1e9, "Bytes."),
                                      opt::boolean("on", "true", "Or off."),
                                      opt::path("nothing", nullptr, "Not given.")};

  explicit Probe(Config config) : memory_{static_cast<std::uint64_t>(config.i64("bytes")), 64, "probe"} {
    if (config.text("mode") == "error") throw Error{MEKIK_E_BUSY, "later"};
    if (config.text("mode") == "strange") throw 7;
    if (config.text("mode") == "memory") throw std::bad_alloc{};
    if (config.text("mode") == "reject") config.reject("mode", "not this one");
    for (std::uint32_t i = 0; i < config.length("times"); ++i)
      seen += std::to_string(config.i64(("times." + std::to_string(i)).c_str())) + ",";
    for (std::uint32_t i = 0; i < config.length("parts"); ++i) {
      const Config part = config.table("parts", i);
      seen += std::string{part.text("word")} + std::to_string(part.i64("size"));
    }
    seen += config.boolean("on") ? "on" : "off";
    seen += std::to_string(config.length("nothing"));
    level_.set(4);
    write_logf(kInfo, "probe", "%s %d", "made", 1);
  }
  void publish(std::uint64_t, Strided<const mekik_sample> samples) {
    for (const mekik_sample& s : samples) count_.add(s.value), spread_.observe(s.value);
  }
  static inline std::string seen;

 private:
  HostMemory memory_;
  Counter count_{"mekik_probe_total", "Things.", "kind=a"};
  Gauge level_{"mekik_probe_level", "Level."};
  static constexpr double kBounds[] = {1, 10};
  Histogram spread_{"mekik_probe_spread", "Spread.", kBounds};
};

}  // namespace

MEKIK_PLUGIN("test.probe", "1.0", sink<Probe>());

namespace {

struct Bench {
  testing::FakeHost host;
  testing::Library library{&mekik_plugin_v0, "probe", host};
  const mekik_component& component = library.component(MEKIK_KIND_SINK, "probe");
  Bench() {
    Probe::seen.clear();
    host.configure(component);
  }
  std::pair<mekik_status, std::string> fault() {
    try {
      testing::Sink{host, component};
      return {MEKIK_OK, ""};
    } catch (const testing::Failed& e) {
      return {e.code, e.what()};
    }
  }
};

Request request(const mekik_config* config, std::string_view json) { return Request{Config{config}, json}; }

}  // namespace

TEST_CASE("Options reach the class as the pipeline has them: defaults, lists, tables, what is absent") {
  Bench b;
  b.host.options().set_list("times", {"1ms", "\"2s\""}).add_table("parts").set("word", "x");
  b.host.options().add_table("parts").set("size", "5");
  b.host.options().set("on", "false");
  testing::Sink s{b.host, b.component};
  CHECK(Probe::seen == "1000000,2000000000,x3w5off0");
  CHECK_THROWS(b.host.options().set("no_such", "1"));
  CHECK_THROWS(b.host.options().set("mode", "no_such"));
}

TEST_CASE("Whatever a constructor throws becomes a status and a text") {
  Bench b;
  CHECK(b.fault().first == MEKIK_OK);
  b.host.options().set("mode", "error");
  CHECK(b.fault() == std::pair{mekik_status{MEKIK_E_BUSY}, std::string{"later"}});
  b.host.options().set("mode", "strange");
  CHECK(b.fault().first == MEKIK_E_INTERNAL);
  b.host.options().set("mode", "memory");
  CHECK(b.fault().first == MEKIK_E_NO_MEMORY);
  b.host.options().set("mode", "reject");
  CHECK(b.fault() == std::pair{mekik_status{MEKIK_E_INVALID}, std::string{"mode: not this one"}});
  CHECK(b.host.bytes_in_use() == 0);
}

TEST_CASE("The fake host refuses the allocation that a test names, and what is over its limit") {
  Bench b;
  b.host.fail_allocation(1);
  CHECK(b.fault().first == MEKIK_E_NO_MEMORY);
  CHECK(b.fault().first == MEKIK_OK);
  b.host.set_memory_limit(1000);
  CHECK(b.fault().first == MEKIK_E_NO_MEMORY);
}

TEST_CASE("Metrics and logs are seen, and a host without services is one that does without") {
  std::vector<mekik_sample> samples(2);
  samples[0].value = 2;
  samples[1].value = 5;
  {
    Bench b;
    testing::Sink s{b.host, b.component};
    s.publish(samples);
    CHECK(b.host.metric("mekik_probe_total{kind=a}") == 7);
    CHECK(b.host.metric("mekik_probe_level") == 4);
    CHECK(b.host.metric("mekik_probe_spread") == 2);
    CHECK(b.host.log() == std::vector<std::string>{"2 probe: made 1"});
  }
  Bench b;
  for (const char* service : {MEKIK_METRICS, MEKIK_LOG, MEKIK_MEMORY, MEKIK_TASKS}) b.host.without(service);
  testing::Sink s{b.host, b.component};
  s.publish(samples);
  std::uint32_t sum = 0;
  parallel(4, [&](std::uint32_t i) { sum += i; });
  CHECK((sum == 6 && width() == 1));
  b.host.without(MEKIK_CONFIG);
  CHECK(b.fault().first == MEKIK_E_UNSUPPORTED);
}

TEST_CASE("A request's field goes before the pipeline's option, whatever stands beside it") {
  Bench b;
  const auto all = request(
      b.host.config(), R"( {"bytes":1.5E1, "x":{"a":[1,"}"]},"on":false,"mode":"a\"\\\n\u00e9\ud83d\ude00,}","list":[1,2], "last":-2} )");
  CHECK(all.i64("bytes") == 15);
  CHECK_FALSE(all.boolean("on"));
  CHECK(all.text("mode") == "a\"\\\n\u00e9\U0001F600,}");
  CHECK(all.text("x") == R"({"a":[1,"}"]})");
  CHECK(all.text("list") == "[1,2]");
  CHECK(all.f64("last") == -2);
  const auto none = request(b.host.config(), "{}");
  CHECK((none.i64("bytes") == 2048 && none.boolean("on") && none.text("mode") == "good" && !none.has("mode")));
  for (const char* bad : {"", "[]", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":\"b", "{\"a\":\"\\q\"}", "{\"a\":\"\\u12\"}"})
    CHECK_THROWS_AS(request(b.host.config(), bad), Error);
}

TEST_CASE("A strided array is stepped through by its stride") {
  const auto rows = testing::longer(std::vector<std::uint32_t>{1, 2, 3});
  std::uint32_t sum = 0;
  for (const std::uint32_t x : Strided<const std::uint32_t>{&rows[0].value, rows.size(), sizeof rows[0]}) sum = 10 * sum + x;
  CHECK(sum == 123);
}
