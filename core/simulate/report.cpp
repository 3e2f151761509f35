#include "simulate/report.hpp"

#include <algorithm>
#include <cstdio>

namespace mekik::simulate {
namespace {

struct Times {
  const char* name;
  std::vector<double> Tally::*values;
};
constexpr Times kTimes[] = {
    {"queue", &Tally::queue}, {"ttft", &Tally::ttft}, {"tpot", &Tally::tpot}, {"total", &Tally::total}, {"gap", &Tally::gap}};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

json::value times_json(const std::vector<double>& values) {
  if (values.empty()) return nullptr;
  return json::object{{"p50", *percentile(values, 0.5)},
                      {"p90", *percentile(values, 0.9)},
                      {"p99", *percentile(values, 0.99)},
                      {"max", *percentile(values, 1)},
                      {"mean", mean(values)}};
}

json::object tally_json(const Tally& t) {
  json::object out{{"name", t.name},
                   {"sent", t.sent},
                   {"finished", t.finished},
                   {"cancelled", t.cancelled},
                   {"failed", t.failed},
                   {"invalid", t.invalid},
                   {"refused", json::object{{"queue", t.refused_queue}, {"scheduler", t.refused_scheduler}, {"given_up", t.given_up}}},
                   {"prompt_tokens", t.prompt_tokens},
                   {"cached_tokens", t.cached_tokens},
                   {"generated_tokens", t.generated_tokens}};
  for (const Times& times : kTimes) out[std::string{times.name} + "_seconds"] = times_json(t.*times.values);
  if (t.with_targets > 0) out["in_time"] = json::object{{"requests", t.in_time}, {"of", t.with_targets}};
  if (!t.first_error.empty()) out["first_error"] = t.first_error;
  return out;
}

double per_second(std::uint64_t n, double seconds) { return seconds > 0 ? static_cast<double>(n) / seconds : 0; }
double busy(const Outcome& o) {
  return o.steps == 0 ? 0 : static_cast<double>(o.step_sequences) / static_cast<double>(o.steps) / static_cast<double>(o.places);
}

// Three digits that matter, with a unit: "1.23 s", "45.6 ms".
std::string spell(double seconds) {
  char text[32];
  const char* unit = seconds >= 1 ? "s" : seconds >= 1e-3 ? "ms" : "us";
  const double shown = seconds >= 1 ? seconds : seconds >= 1e-3 ? seconds * 1e3 : seconds * 1e6;
  std::snprintf(text, sizeof text, "%.*f %s", shown >= 100 ? 0 : shown >= 10 ? 1 : 2, shown, unit);
  return text;
}

template <class... More>
void line(std::string& out, const char* format, More... more) {
  char text[512];
  std::snprintf(text, sizeof text, format, more...);
  out += text;
}
unsigned long long ull(std::uint64_t n) { return n; }

void tally_text(std::string& out, const Tally& t) {
  line(out, "%s: %llu requests, %llu answered", t.name.c_str(), ull(t.sent), ull(t.finished));
  if (t.cancelled > 0) line(out, ", %llu cancelled", ull(t.cancelled));
  if (t.failed > 0) line(out, ", %llu failed", ull(t.failed));
  if (t.refused_queue + t.refused_scheduler > 0)
    line(out, ", %llu refused (queue full %llu, too late %llu; %llu gave up)", ull(t.refused_queue + t.refused_scheduler),
         ull(t.refused_queue), ull(t.refused_scheduler), ull(t.given_up));
  if (t.invalid > 0) line(out, ", %llu impossible", ull(t.invalid));
  out += "\n";
  if (!t.first_error.empty()) out += "  first error: " + t.first_error + "\n";
  if (t.total.empty()) return;
  line(out, "  %-8s %10s %10s %10s %10s %10s\n", "", "p50", "p90", "p99", "max", "mean");
  for (const Times& times : kTimes) {
    const auto& values = t.*times.values;
    if (values.empty()) continue;
    line(out, "  %-8s %10s %10s %10s %10s %10s\n", times.name, spell(*percentile(values, 0.5)).c_str(),
         spell(*percentile(values, 0.9)).c_str(), spell(*percentile(values, 0.99)).c_str(), spell(*percentile(values, 1)).c_str(),
         spell(mean(values)).c_str());
  }
  if (t.with_targets > 0)
    line(out, "  in time  %llu of %llu (%.1f%%)\n", ull(t.in_time), ull(t.with_targets),
         100.0 * static_cast<double>(t.in_time) / static_cast<double>(t.with_targets));
}

}  // namespace

json::object to_json(const Scenario& scenario, const Outcome& o) {
  const Tally all = o.all();
  json::array loads, tenants;
  for (const Tally& load : o.loads) loads.push_back(tally_json(load));
  for (const auto& [number, tenant] : o.tenants) tenants.push_back(tally_json(tenant));
  json::object misses;
  for (const auto& [reason, n] : o.misses) misses[reason] = n;
  return {{"scheduler", scenario.pipeline.scheduler.name},
          {"cache", scenario.pipeline.cache.name},
          {"seconds", o.seconds},
          {"steps", o.steps},
          {"step_tokens", o.step_tokens},
          {"generated_tokens_per_second", per_second(all.generated_tokens, o.seconds)},
          {"prompt_tokens_per_second", per_second(all.prompt_tokens, o.seconds)},
          {"places_busy", busy(o)},
          {"most_waiting", o.most_waiting},
          {"preemptions", o.preemptions},
          {"cache_lookups",
           json::object{{"tokens", o.cache_query_tokens}, {"known_tokens", o.cache_hit_tokens}, {"misses", std::move(misses)}}},
          {"blocks_leaked", o.blocks_leaked},
          {"all", tally_json(all)},
          {"loads", std::move(loads)},
          {"tenants", std::move(tenants)}};
}

std::string to_text(const Scenario& scenario, const Outcome& o) {
  const Tally all = o.all();
  std::string out;
  line(out, "%s scheduler, %s cache: %s, %llu steps, %.1f tokens/s answered, %.1f tokens/s of prompts\n",
       scenario.pipeline.scheduler.name.c_str(), scenario.pipeline.cache.name.c_str(), spell(o.seconds).c_str(), ull(o.steps),
       per_second(all.generated_tokens, o.seconds), per_second(all.prompt_tokens, o.seconds));
  line(out, "%.1f%% of %llu places busy, at most %llu waiting, %llu preemptions\n", 100 * busy(o), ull(o.places), ull(o.most_waiting),
       ull(o.preemptions));
  if (o.cache_query_tokens > 0) {
    line(out, "cache: %.1f%% of %llu tokens known; prompts not wholly known:",
         100.0 * static_cast<double>(o.cache_hit_tokens) / static_cast<double>(o.cache_query_tokens), ull(o.cache_query_tokens));
    for (const auto& [reason, n] : o.misses) line(out, " %s %llu", reason.c_str(), ull(n));
    out += "\n";
  }
  if (o.blocks_leaked > 0) line(out, "%llu blocks LEAKED: a fault of the engine\n", ull(o.blocks_leaked));
  if (o.loads.size() > 1) tally_text(out, all);
  for (const Tally& load : o.loads) tally_text(out, load);
  if (o.tenants.size() > 1)
    for (const auto& [number, tenant] : o.tenants) tally_text(out, tenant);
  return out;
}

json::object to_json(const Fit& fit) {
  const Costs& c = fit.costs;
  return {{"step_us", c.step / 1e3},       {"token_us", c.token / 1e3},         {"row_us", c.row / 1e3},
          {"context_ns", c.context},       {"host_step_us", c.host_step / 1e3}, {"host_row_us", c.host_row / 1e3},
          {"steps_measured", fit.samples}, {"median_error", fit.median_error},  {"p90_error", fit.most_error}};
}

std::string to_text(const Fit& fit) {
  const Costs& c = fit.costs;
  std::string out;
  line(out,
       "costs, of %zu steps that were measured: step_us = %.1f, token_us = %.1f, row_us = %.1f, context_ns = %.2f, host_step_us = %.1f, "
       "host_row_us = %.1f; they miss a step's time by %.1f%% in the middle, by less than %.1f%% nine times in ten\n",
       fit.samples, c.step / 1e3, c.token / 1e3, c.row / 1e3, c.context, c.host_step / 1e3, c.host_row / 1e3, 100 * fit.median_error,
       100 * fit.most_error);
  return out;
}

std::vector<Compared> compare(const Outcome& simulated, const Outcome& real) {
  const Tally a = simulated.all(), b = real.all();
  std::vector<Compared> out;
  for (const Times& times : kTimes) {
    const auto &x = a.*times.values, &y = b.*times.values;
    if (x.empty() || y.empty()) continue;
    for (const auto& [name, share] : {std::pair{" p50", 0.5}, {" p90", 0.9}, {" p99", 0.99}})
      out.push_back({std::string{times.name} + "_seconds" + name, *percentile(x, share), *percentile(y, share)});
  }
  const auto row = [&](const char* name, double x, double y) { out.push_back({name, x, y}); };
  row("generated_tokens_per_second", per_second(a.generated_tokens, simulated.seconds), per_second(b.generated_tokens, real.seconds));
  row("prompt_tokens_per_second", per_second(a.prompt_tokens, simulated.seconds), per_second(b.prompt_tokens, real.seconds));
  row("places_busy", busy(simulated), busy(real));
  row("cached_tokens", static_cast<double>(a.cached_tokens), static_cast<double>(b.cached_tokens));
  row("answered", static_cast<double>(a.finished), static_cast<double>(b.finished));
  row("refused", static_cast<double>(a.refused_queue + a.refused_scheduler), static_cast<double>(b.refused_queue + b.refused_scheduler));
  row("preemptions", static_cast<double>(simulated.preemptions), static_cast<double>(real.preemptions));
  row("seconds", simulated.seconds, real.seconds);
  return out;
}

}  // namespace mekik::simulate
