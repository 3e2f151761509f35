#include <fstream>
#include <regex>
#include <sstream>

#include "base/json.hpp"
#include "metrics/names.hpp"
#include "support/catch.hpp"
#include "support/engine_bench.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

struct Sink {
  explicit Sink(const std::string& name, const std::string& toml = "") : made{use("sink", name, toml)} {
    component = *shared_plugins().registry.find(made);
    table = &component.table<mekik_sink_api>();
    created = table->create(component.host, plugin::abi_config(*made.options), &self);
  }
  ~Sink() {
    if (self != nullptr) table->destroy(self);
  }
  config::Use made;
  plugin::Component component;
  const mekik_sink_api* table = nullptr;
  mekik_sink* self = nullptr;
  mekik_status created = MEKIK_OK;
};

std::string scrape(const metrics::Metrics& metrics) {
  Sink sink{"prometheus"};
  const auto snapshot = metrics.snapshot();
  std::string body;
  mekik_str type{};
  REQUIRE(sink.table->scrape(
              sink.self, {"", 0}, snapshot.samples.data(), static_cast<std::uint32_t>(snapshot.samples.size()), sizeof(mekik_sample),
              [](void* ctx, mekik_str s) { static_cast<std::string*>(ctx)->append(s.ptr, s.len); }, &body, &type) == MEKIK_OK);
  CHECK(plugin::view(type) == "text/plain; version=0.0.4; charset=utf-8");
  return body;
}

}  // namespace

TEST_CASE("a fresh engine's metrics are all there and valid (B148, B150)") {
  Bench bench;
  const auto body = scrape(bench.metrics);
  CHECK(body.find("NaN") == std::string::npos);
  std::istringstream lines{body};
  std::string line, typed;
  std::set<std::string> families;
  const std::regex series{R"re(([a-zA-Z_][a-zA-Z0-9_]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="[^"]*",?)+\})? (-?[0-9.e+-]+|[+-]Inf))re"};
  while (std::getline(lines, line)) {
    if (line.starts_with("# HELP ")) {
      typed = line.substr(7, line.find(' ', 7) - 7);
      CHECK(families.insert(typed).second);  // once a family
      continue;
    }
    if (line.starts_with("# TYPE ")) {
      CHECK(line.substr(7, typed.size()) == typed);
      CHECK(line.ends_with("counter") == typed.ends_with("_total"));
      continue;
    }
    std::smatch match;
    CAPTURE(line);
    REQUIRE(std::regex_match(line, match, series));
    CHECK(match[1].str().starts_with(typed));
  }
  CHECK(body.find("mekik_generation_tokens_total{model_name=\"fake\"} 0\n") != std::string::npos);
  for (const auto& definition : metrics::definitions()) CHECK(families.count(definition.name) == 1);
}

TEST_CASE("histograms are cumulative and end at their count; labels are escaped") {
  metrics::Metrics metrics;
  auto* h = metrics.histogram("h_seconds", "a \\ help\nin two lines", {1, 2}, "model_name=a\"b\\c");
  for (const double v : {0.5, 1.5, 1.6, 9.0}) h->record(v);
  const auto body = scrape(metrics);
  const std::string label = R"re(model_name="a\"b\\c")re";
  CHECK(body == "# HELP h_seconds a \\\\ help\\nin two lines\n# TYPE h_seconds histogram\nh_seconds_bucket{" + label +
                    ",le=\"1\"} 1\nh_seconds_bucket{" + label + ",le=\"2\"} 3\nh_seconds_bucket{" + label +
                    ",le=\"+Inf\"} 4\nh_seconds_sum{" + label + "} 12.6\nh_seconds_count{" + label + "} 4\n");
}

TEST_CASE("jsonl writes a line of JSON for each event, at once") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "requests.jsonl";
  Sink sink{"jsonl", "path = \"" + path.string() + "\""};
  REQUIRE(sink.created == MEKIK_OK);
  const std::string name = "a \"quoted\"\n\x01 name é";
  const mekik_field fields[] = {{"id", MEKIK_OPT_TEXT, 0, 0, {name.data(), name.size()}},
                                {"completion_tokens", MEKIK_OPT_INT, 0, 12, {nullptr, 0}},
                                {"ttft_seconds", MEKIK_OPT_REAL, 0, 0.25, {nullptr, 0}},
                                {"odd", MEKIK_OPT_REAL, 0, std::numeric_limits<double>::quiet_NaN(), {nullptr, 0}},
                                {"cut", MEKIK_OPT_BOOL, 0, 1, {nullptr, 0}}};
  for (int i = 0; i < 2; ++i) sink.table->event(sink.self, "request_finished", 5, fields, 5, sizeof(mekik_field));
  std::ifstream file{path};  // while the sink still has it open
  std::string line;
  int lines = 0;
  for (; std::getline(file, line); ++lines) {
    const auto value = json::parse(line);
    REQUIRE(value);
    CHECK(value->at("event").as_string() == "request_finished");
    CHECK(value->at("id").as_string() == name);
    CHECK(value->at("completion_tokens").as_int64() == 12);
    CHECK(value->at("ttft_seconds").as_double() == 0.25);
    CHECK(value->at("odd").is_null());
    CHECK(value->at("cut").as_bool());
  }
  CHECK(lines == 2);
}

TEST_CASE("jsonl says which file it cannot open, and outlives a full disk") {
  Sink sink{"jsonl", "path = \"/nonexistent/folder/x.jsonl\""};
  CHECK(sink.created == MEKIK_E_INVALID);
  CHECK(plugin::take_failure().find("/nonexistent/folder/x.jsonl") != std::string::npos);
  if (std::filesystem::exists("/dev/full")) {
    Sink full{"jsonl", "path = \"/dev/full\""};
    REQUIRE(full.created == MEKIK_OK);
    for (int i = 0; i < 3; ++i) full.table->event(full.self, "x", 1, nullptr, 0, sizeof(mekik_field));
  }
}
