#include "bench/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

#include "config/table.hpp"
#include "metrics/percentile.hpp"

namespace mekik::bench {
namespace {

using metrics::percentile;

template <class... More>
void line(std::string& out, const char* format, More... more) {
  char text[512];
  std::snprintf(text, sizeof text, format, more...);
  out += text;
}

bool integers(const engine::Model& model) {
  const config::Table& options = *model.pipeline().backend.options;
  return options.find("math") == nullptr || options.text("math") != "exact";
}

// Of one timed run of the test: by operation.
std::vector<Work> work_of_run(const Report& r, const Test& test) {
  const engine::MemoryPlan& plan = r.model->plan();
  const double sequences = test.sequences, tokens = test.tokens;
  const bool prefill = test.kind == Test::Kind::prefill;
  const double steps = prefill ? std::ceil(tokens * sequences / plan.max_batch_tokens) : tokens;
  Step step;
  step.tokens = prefill ? tokens * sequences / steps : sequences;
  step.rows = prefill ? sequences / steps : sequences;
  step.sequences = prefill ? std::max(1.0, sequences / steps) : sequences;
  step.context = test.depth + tokens / 2;
  auto work = work_of(r.model->program(), step, r.bytes_of, integers(*r.model));
  for (Work& w : work) {
    const Work once = w;
    w.add(once, steps - 1);
  }
  return work;
}

struct Share {
  double of_roof = 0;
  bool memory = false;
};
std::optional<Share> share_of(const Report& r, const Outcome& o) {
  if (!r.roof) return {};
  Work all;
  for (const Work& w : work_of_run(r, o.test)) all.add(w);
  const Bound bound = bound_of(all, *r.roof);
  const double seconds = o.test.tokens * o.test.sequences / *percentile(o.tokens_per_second, 0.5);
  return Share{bound.seconds / seconds, bound.memory};
}

// Operations of one kind together, those that took longest first.
struct Kind {
  std::string name;
  std::uint64_t ns = 0;
  Work work;
};
std::vector<Kind> kinds_of(const Report& r, const Outcome& o) {
  if (o.spent_ns.empty()) return {};
  const auto work = work_of_run(r, o.test);
  std::map<std::uint32_t, Kind> by_code;
  for (std::size_t i = 0; i < o.spent_ns.size(); ++i) {
    const std::uint32_t code = r.model->program().ops[i].code;
    const auto* info = program::op_info(code);
    Kind& kind = by_code[code];
    kind.name = info != nullptr ? info->name : std::to_string(code);
    kind.ns += o.spent_ns[i];
    kind.work.add(work[i]);
  }
  std::vector<Kind> out;
  for (const auto& [code, kind] : by_code)
    if (kind.ns > 0) out.push_back(kind);
  std::sort(out.begin(), out.end(), [](const Kind& a, const Kind& b) { return a.ns > b.ns; });
  return out;
}

json::object spread(const std::vector<double>& values) {
  json::array all;
  for (const double v : values) all.push_back(v);
  return {{"median", *percentile(values, 0.5)}, {"min", *percentile(values, 0)}, {"max", *percentile(values, 1)}, {"runs", std::move(all)}};
}

json::array ops_json(const Report& r, const Outcome& o) {
  json::array out;
  for (const Kind& kind : kinds_of(r, o)) {
    const double seconds = 1e-9 * static_cast<double>(kind.ns);
    json::object row{{"operation", kind.name},
                     {"seconds", seconds},
                     {"int8_products", kind.work.int8_products},
                     {"f32_products", kind.work.f32_products},
                     {"bytes", kind.work.bytes}};
    if (r.roof)
      if (const Bound bound = bound_of(kind.work, *r.roof); bound.seconds > 0) {
        row["of_roof"] = bound.seconds / seconds;
        row["bound"] = bound.memory ? "memory" : "products";
      }
    out.push_back(std::move(row));
  }
  return out;
}

void ops_text(std::string& out, const Report& r, const Outcome& o) {
  const auto kinds = kinds_of(r, o);
  const double all = 1e-9 * static_cast<double>(std::accumulate(o.spent_ns.begin(), o.spent_ns.end(), std::uint64_t{0}));
  line(out, "\n%s: %.1f ms of the backend\n", o.test.name().c_str(), 1e3 * all);
  line(out, "  %-18s %9s %6s %14s %9s %8s\n", "operation", "ms", "share", "products/s", "GB/s", "of roof");
  for (const Kind& kind : kinds) {
    const double seconds = 1e-9 * static_cast<double>(kind.ns), products = kind.work.int8_products + kind.work.f32_products;
    line(out, "  %-18s %9.2f %5.1f%%", kind.name.c_str(), 1e3 * seconds, 100 * seconds / all);
    products > 0 ? line(out, " %12.1f G", 1e-9 * products / seconds) : line(out, " %14s", "-");
    kind.work.bytes > 0 ? line(out, " %9.1f", 1e-9 * kind.work.bytes / seconds) : line(out, " %9s", "-");
    const Bound bound = r.roof ? bound_of(kind.work, *r.roof) : Bound{};
    bound.seconds > 0 ? line(out, " %7.0f%% %s\n", 100 * bound.seconds / seconds, bound.memory ? "memory" : "products") : line(out, "\n");
  }
}

double gib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }
double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void heading(std::string& out, const Report& r) {
  const engine::Model& m = *r.model;
  line(out, "machine  %s, %u cores, %.1f GiB, %s; id %s; load %.2f before, %.2f after\n", r.machine.processor.c_str(), r.machine.cores,
       gib(r.machine.memory), r.machine.system.c_str(), r.machine.id().c_str(), r.load_before, r.load_after);
  line(out, "model    %s: %s, file %.1f MiB, packed %.1f MiB; backend %s (%s), KV %s; mekik %s, %s\n", m.name().c_str(),
       m.program().page.c_str(), mib(m.plan().file_bytes), mib(m.plan().weight_bytes), m.pipeline().backend.name.c_str(), m.device().name,
       m.plan().kv.c_str(), r.version.c_str(), r.started.c_str());
  if (r.roof)
    line(out, "roof     %.1f GB/s read, %.0f G 8-bit and %.0f G F32 products/s; measured now\n", 1e-9 * r.roof->bytes,
         1e-9 * r.roof->int8_products, 1e-9 * r.roof->f32_products);
  else line(out, "roof     the backend %s does not measure one\n", m.pipeline().backend.name.c_str());
}

}  // namespace

Bound bound_of(const Work& work, const mekik_roof& roof) {
  const auto at = [](double amount, double rate) { return amount > 0 && rate > 0 ? amount / rate : 0; };
  const double memory = at(work.bytes, roof.bytes),
               products = at(work.int8_products, roof.int8_products) + at(work.f32_products, roof.f32_products);
  return {std::max(memory, products), memory > products};
}

json::object to_json(const Report& r) {
  const engine::Model& m = *r.model;
  json::array tests;
  for (const Outcome& o : r.outcomes) {
    const bool prefill = o.test.kind == Test::Kind::prefill;
    json::object row{{"name", o.test.name()}, {"kind", prefill ? "prefill" : "decode"}, {"tokens", o.test.tokens},
                     {"depth", o.test.depth}, {"sequences", o.test.sequences},          {"tokens_per_second", spread(o.tokens_per_second)}};
    const auto& times = prefill ? o.ttft : o.tpot;
    row[prefill ? "ttft_seconds" : "tpot_seconds"] = json::object{{"p50", *percentile(times, 0.5)}, {"p99", *percentile(times, 0.99)}};
    if (const auto share = share_of(r, o)) {
      row["of_roof"] = share->of_roof;
      row["bound"] = share->memory ? "memory" : "products";
    }
    if (!o.spent_ns.empty()) row["operations"] = ops_json(r, o);
    tests.push_back(std::move(row));
  }
  json::object out{{"started", r.started},
                   {"version", r.version},
                   {"machine", json::object{{"id", r.machine.id()},
                                            {"processor", r.machine.processor},
                                            {"cores", r.machine.cores},
                                            {"memory_bytes", r.machine.memory},
                                            {"system", r.machine.system},
                                            {"load_before", r.load_before},
                                            {"load_after", r.load_after}}},
                   {"model", json::object{{"name", m.name()},
                                          {"page", m.program().page},
                                          {"file_bytes", m.plan().file_bytes},
                                          {"packed_bytes", m.plan().weight_bytes},
                                          {"kv", m.plan().kv}}},
                   {"backend", json::object{{"name", m.pipeline().backend.name}, {"device", m.device().name}}},
                   {"tests", std::move(tests)}};
  if (r.roof)
    out["roof"] = json::object{{"bytes_per_second", r.roof->bytes},
                               {"int8_products_per_second", r.roof->int8_products},
                               {"f32_products_per_second", r.roof->f32_products}};
  return out;
}

std::string to_text(const Report& r) {
  std::string out;
  heading(out, r);
  std::size_t width = 4;
  for (const Outcome& o : r.outcomes) width = std::max(width, o.test.name().size());
  line(out, "\n%-*s %10s %21s %10s %10s %8s\n", static_cast<int>(width), "test", "tokens/s", "min .. max", "p50", "p99", "of roof");
  for (const Outcome& o : r.outcomes) {
    const bool prefill = o.test.kind == Test::Kind::prefill;
    const auto& times = prefill ? o.ttft : o.tpot;
    const auto rate = [&](double share) { return *percentile(o.tokens_per_second, share); };
    line(out, "%-*s %10.1f %9.1f .. %8.1f %7.2f ms %7.2f ms", static_cast<int>(width), o.test.name().c_str(), rate(0.5), rate(0), rate(1),
         1e3 * *percentile(times, 0.5), 1e3 * *percentile(times, 0.99));
    const auto share = share_of(r, o);
    share ? line(out, " %7.0f%% %s\n", 100 * share->of_roof, share->memory ? "memory" : "products") : line(out, " %8s\n", "-");
  }
  out += "p50, p99: time to the first token of a prefill, from token to token of a decode\n";
  for (const Outcome& o : r.outcomes)
    if (!o.spent_ns.empty()) ops_text(out, r, o);
  return out;
}

}  // namespace mekik::bench
