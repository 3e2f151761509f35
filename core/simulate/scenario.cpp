#include "simulate/scenario.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/files.hpp"
#include "config/beside.hpp"
#include "config/options.hpp"
#include "simulate/scenario_rows.hpp"

namespace mekik::simulate {

std::uint32_t Lengths::draw(double uniform, double normal) const {
  double n = a;
  if (kind == Kind::uniform) n = a + std::floor(uniform * (b - a + 1));
  if (kind == Kind::lognormal) n = std::round(a * std::exp(b * normal));
  if (kind == Kind::list) n = list[static_cast<std::size_t>(uniform * static_cast<double>(list.size()))];
  n = std::max<double>(n, least);
  return static_cast<std::uint32_t>(std::min<double>(n, most > 0 ? most : 1 << 24));
}

namespace {

using config::Table;

std::uint64_t unsigned_of(const Table& table, const char* key) { return static_cast<std::uint64_t>(table.i64(key)); }
std::uint32_t u32_of(const Table& table, const char* key) { return static_cast<std::uint32_t>(table.i64(key)); }
std::vector<double> reals_of(const Table& table, const char* key) {
  std::vector<double> out;
  for (const Table::Item& item : table.find(key)->items) out.push_back(item.real);
  return out;
}

class Reader {
 public:
  explicit Reader(config::Diagnostics& diagnostics) : diagnostics_{diagnostics} {}

  Load load(const Table& table, std::uint64_t duration_ns) {
    Load out;
    out.name = table.text("name");
    if (!names_.insert(out.name).second) complain(table, "name", "two loads are called " + std::string{table.text("name")});
    out.arrivals = static_cast<Arrivals>(table.i64("arrivals"));
    out.rate = table.f64("rate");
    out.shape = reals_of(table, "shape");
    out.burst = u32_of(table, "burst");
    out.users = u32_of(table, "users");
    out.think_ns = unsigned_of(table, "think");
    out.begin_ns = unsigned_of(table, "begin");
    out.end_ns = unsigned_of(table, "end");
    if (out.end_ns == 0) out.end_ns = duration_ns;
    out.requests = unsigned_of(table, "requests");
    out.prompt = lengths(table, "prompt");
    out.answer = lengths(table, "answer");
    out.said = lengths(table, "said");
    if (out.said.kind == Lengths::Kind::none) out.said = out.prompt;
    out.turns = u32_of(table, "turns");
    out.turn_think_ns = unsigned_of(table, "turn_think");
    out.prefix_groups = u32_of(table, "prefix_groups");
    out.prefix_tokens = u32_of(table, "prefix_tokens");
    out.prefix_share = table.f64("prefix_share");
    out.tenants = reals_of(table, "tenants");
    out.first_tenant = u32_of(table, "first_tenant");
    out.priority = static_cast<std::int32_t>(table.i64("priority"));
    out.ttft_ns = unsigned_of(table, "ttft");
    out.tpot_ns = unsigned_of(table, "tpot");
    out.deadline_ns = unsigned_of(table, "deadline");
    out.cancel = table.f64("cancel");
    out.cancel_after_ns = unsigned_of(table, "cancel_after");
    out.retries = u32_of(table, "retries");
    if (out.end_ns > duration_ns) complain(table, "end", "it is after the scenario's end; see its 'duration'");
    trace(table, out);
    check(table, out);
    return out;
  }

 private:
  void complain(const Table& table, const char* key, const std::string& what, const std::string& hint = {}) {
    const Table::Option* option = table.find(key);
    diagnostics_.error(option->given ? option->origin : table.origin, "'" + std::string{key} + "' in " + table.label + ": " + what, hint);
  }
  static bool given(const Table& table, const char* key) { return table.find(key)->given; }

  Lengths lengths(const Table& table, const char* key) {
    Lengths out;
    const Table* of = table.table(key, 0);
    if (of == nullptr || !given(table, key)) return out;
    static constexpr const char* kKinds[] = {"fixed", "uniform", "lognormal", "list"};
    for (int i = 0; i < 4; ++i) {
      if (!given(*of, kKinds[i]) || of->find(kKinds[i])->items.empty()) continue;
      if (out.kind != Lengths::Kind::none) complain(*of, kKinds[i], "a length is given in one way only");
      out.kind = static_cast<Lengths::Kind>(i + 1);
    }
    if (out.kind == Lengths::Kind::none)
      return complain(table, key, "it says no length",
                      "write { fixed = 100 }, { uniform = [10, 200] }, { lognormal = [100, 0.8] } or { list = [10, 500] }"),
             out;
    out.least = u32_of(*of, "min");
    out.most = u32_of(*of, "max");
    if (out.most > 0 && out.most < out.least) complain(*of, "max", "it is less than 'min'");
    const std::vector<double> numbers = reals_of(*of, kKinds[static_cast<int>(out.kind) - 1]);
    const bool positive = std::all_of(numbers.begin(), numbers.end(), [&](double n) { return n >= 1 && n <= 1 << 24; });
    if (out.kind == Lengths::Kind::lognormal) {
      if (numbers[0] < 1 || numbers[0] > 1 << 24 || numbers[1] < 0 || numbers[1] > 10)
        complain(*of, "lognormal", "[median, sigma]: a median of at least 1 token, and a sigma from 0 to 10");
    } else if (!positive) {
      complain(*of, kKinds[static_cast<int>(out.kind) - 1], "lengths are from 1 to 16777216 tokens");
    } else if (out.kind == Lengths::Kind::uniform && numbers[1] < numbers[0]) {
      complain(*of, "uniform", "[from, to]: the second is less than the first");
    }
    out.a = numbers[0];
    if (numbers.size() > 1) out.b = numbers[1];
    if (out.kind == Lengths::Kind::list)
      for (const double n : numbers) out.list.push_back(static_cast<std::uint32_t>(n));
    return out;
  }

  void trace(const Table& table, Load& out) {
    if (table.text("trace").empty()) return;
    for (const char* key : {"arrivals", "rate", "shape", "burst", "users", "think", "prompt", "answer", "turns", "said", "turn_think"})
      if (given(table, key)) complain(table, key, "it has no effect with 'trace', which says when and how long", "leave one of them out");
    auto read = read_trace(std::string{table.text("trace")});
    if (!read) return complain(table, "trace", read.status().text);
    out.trace = std::move(*read);
    if (!given(table, "end")) out.end_ns = out.begin_ns + out.trace.back().at_ns + 1;  // all of it
  }

  void check(const Table& table, const Load& l) {
    if (l.end_ns <= l.begin_ns) complain(table, "end", "it is not after 'begin'");
    double sum = 0;
    for (const double part : l.tenants) sum += std::max(part, 0.0);
    if (std::any_of(l.tenants.begin(), l.tenants.end(), [](double part) { return part < 0; }) || sum <= 0)
      complain(table, "tenants", "parts are positive numbers");
    if (l.prefix_groups > 0 && l.prefix_tokens == 0) complain(table, "prefix_groups", "it needs 'prefix_tokens'");
    if (l.prefix_groups == 0 && l.prefix_tokens > 0) complain(table, "prefix_tokens", "it needs 'prefix_groups'");
    if (!l.trace.empty() || !table.text("trace").empty()) return;
    if (l.prompt.kind == Lengths::Kind::none && !given(table, "prompt"))
      complain(table, "prompt", "it is needed, unless there is a 'trace'");
    if (l.answer.kind == Lengths::Kind::none && !given(table, "answer"))
      complain(table, "answer", "it is needed, unless there is a 'trace'");
    if (l.arrivals == Arrivals::closed) {
      if (l.users == 0) complain(table, "users", "a closed load needs some");
      for (const char* key : {"rate", "shape", "burst"})
        if (given(table, key)) complain(table, key, "a closed load has users, who come back by themselves");
      return;
    }
    for (const char* key : {"users", "think"})
      if (given(table, key)) complain(table, key, "it is of a closed load", "write arrivals = \"closed\", or leave it out");
    if (l.rate <= 0) complain(table, "rate", "it must be more than 0");
    double factors = l.shape.empty() ? 1 : 0;
    for (const double factor : l.shape) factors += std::max(factor, 0.0);
    if (std::any_of(l.shape.begin(), l.shape.end(), [](double f) { return !(f >= 0 && f <= 1e6); }) || factors <= 0)
      complain(table, "shape", "factors are from 0 to 1000000, and not all 0");
  }

  config::Diagnostics& diagnostics_;
  std::set<std::string> names_;
};

std::unique_ptr<Table> one_table(config::Beside& beside, const char* name, const config::Rows& rows, config::Diagnostics& diagnostics) {
  config::Value absent;
  const auto found = beside.tables.find(name);
  const std::string label = "[" + std::string{name} + "]";
  const bool wrong = found != beside.tables.end() && found->second.kind != config::Kind::table;
  if (wrong)
    diagnostics.error(found->second.key_origin,
                      "'" + std::string{name} + "': expected a table, found " + config::kind_name(found->second.kind),
                      "write " + label + " once");
  return config::check_table({rows}, found == beside.tables.end() || wrong ? absent : found->second, label, "",
                             {diagnostics, nullptr, true, {}, false});
}

}  // namespace

std::optional<Scenario> load_scenario(const std::string& path, const std::vector<config::Override>& overrides,
                                      config::Components& components, config::Diagnostics& diagnostics) {
  config::Beside beside;
  beside.names = {"scenario", "load", "costs"};
  auto pipeline = config::load_beside(path, overrides, components, diagnostics, beside);
  if (!beside.read) return std::nullopt;  // the rest has been told; more may be wrong
  Scenario out;
  const auto scenario = one_table(beside, "scenario", scenario_rows(), diagnostics);
  const auto costs = one_table(beside, "costs", cost_rows(), diagnostics);
  out.seed = unsigned_of(*scenario, "seed");
  out.duration_ns = unsigned_of(*scenario, "duration");
  out.share_prefixes = scenario->i64("share_prefixes") != 0;
  out.calibrate = costs->i64("calibrate") != 0;
  out.costs = {1e3 * costs->f64("step_us"), 1e3 * costs->f64("token_us"),     1e3 * costs->f64("row_us"),
               costs->f64("context_ns"),    1e3 * costs->f64("host_step_us"), 1e3 * costs->f64("host_row_us")};
  out.machine = {u32_of(*costs, "context"), u32_of(*costs, "vocabulary"), unsigned_of(*costs, "token_bytes")};
  const auto loads = beside.tables.find("load");
  const bool list = loads != beside.tables.end() && loads->second.kind == config::Kind::list;
  if (!list || loads->second.list.empty())
    diagnostics.error(loads == beside.tables.end() ? config::Origin{} : loads->second.key_origin,
                      path + ": a scenario has at least one [[load]]",
                      "write [[load]] name = \"chat\", rate = 2, prompt = { fixed = 100 }, answer = { fixed = 50 }, a key a line");
  Reader reader{diagnostics};
  for (std::size_t i = 0; list && i < loads->second.list.size(); ++i) {
    config::Value& value = loads->second.list[i];
    if (value.kind != config::Kind::table) {
      diagnostics.error(value.origin, std::string{"'load': expected a table, found "} + config::kind_name(value.kind), "write [[load]]");
      continue;
    }
    if (!value.key_origin.source) value.key_origin = value.origin;
    config::Diagnostics mine;
    const auto table = config::check_table({load_rows()}, value, "[[load]]", "", {mine, nullptr, true, {}, false});
    const bool fine = mine.ok();
    for (const config::Diagnostic& one : mine.all())
      one.warning ? diagnostics.warning(one.at, one.message, one.hint) : diagnostics.error(one.at, one.message, one.hint);
    if (fine) out.loads.push_back(reader.load(*table, out.duration_ns));
  }
  if (pipeline && pipeline->draft)
    diagnostics.error(pipeline->draft->origin, "[draft] cannot be simulated: what is proposed depends on what is said",
                      "leave [draft] out");
  if (!diagnostics.ok() || !pipeline) return std::nullopt;
  out.pipeline = std::move(*pipeline);
  out.has_model = beside.model;
  return out;
}

}  // namespace mekik::simulate
