// Steps of a whole model of SmolLM2-135M's shape with random weights: bench_cpu_model FORM [HEAD FORM] [THREADS] [SETTING=VALUE ...].
// Prints tokens per second of a prefill of 512, of decoding one sequence behind it, and of decoding 16 at once; the median of runs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "ops/session.hpp"

namespace mekik::test {

namespace {

using Id = ProgramBuilder::Id;

struct Shape {
  std::int64_t layers = 30, width = 576, heads = 9, kv_heads = 3, dim = 64, ff = 1536, vocab = 49152;
};

std::uint64_t u(std::int64_t n) { return static_cast<std::uint64_t>(n); }

Id norm(ProgramBuilder& b, Id x, const Shape& s, std::int64_t rows) {
  const Id y = b.temp({rows, s.width});
  b.op(op::rms_norm, {x, b.noise(1, u(s.width), 1, 0.1f)}, {y}, {}, {1e-5});
  return y;
}

Id layer(ProgramBuilder& b, Id x, const Shape& s, const std::string& form, Id table) {
  const Id n = norm(b, x, s, kT), q = b.temp({kT, s.heads, s.dim}), k = b.temp({kT, s.kv_heads, s.dim}),
           v = b.temp({kT, s.kv_heads, s.dim});
  const auto weight = [&](std::int64_t rows, std::int64_t columns) { return b.weight(form, u(rows), u(columns)); };
  b.op(op::linear,
       {n, weight(s.heads * s.dim, s.width), kNone, weight(s.kv_heads * s.dim, s.width), kNone, weight(s.kv_heads * s.dim, s.width), kNone},
       {q, k, v});
  const Id q2 = b.temp({kT, s.heads, s.dim}), k2 = b.temp({kT, s.kv_heads, s.dim}), y = b.temp({kT, s.heads, s.dim});
  b.op(op::rope, {q, table, b.input("positions")}, {q2}, {s.dim, 0}, {1.0});
  b.op(op::rope, {k, table, b.input("positions")}, {k2}, {s.dim, 0}, {1.0});
  const Id state = b.state(s.kv_heads, 2 * s.dim, "f16");
  b.op(op::kv_append, {k2, v, state}, {});
  b.op(op::attention, {q2, state, kNone, kNone}, {y}, {s.dim, 1, 0}, {1.0 / std::sqrt(static_cast<double>(s.dim)), 0.0});
  const Id o = b.temp({kT, s.width}), sum = b.temp({kT, s.width});
  b.op(op::linear, {y, weight(s.width, s.heads * s.dim), kNone}, {o});
  b.op(op::add, {x, o}, {sum});
  const Id n2 = norm(b, sum, s, kT), gate = b.temp({kT, s.ff}), up = b.temp({kT, s.ff}), act = b.temp({kT, s.ff}),
           down = b.temp({kT, s.width}), out = b.temp({kT, s.width});
  b.op(op::linear, {n2, weight(s.ff, s.width), kNone, weight(s.ff, s.width), kNone}, {gate, up});
  b.op(op::glu, {gate, up}, {act}, {1}, {0, 0});
  b.op(op::linear, {act, weight(s.width, s.ff), kNone}, {down});
  b.op(op::add, {sum, down}, {out});
  return out;
}

void build(ProgramBuilder& b, const Shape& s, const std::string& form, const std::string& head) {
  const Id embed = b.weight(head, u(s.vocab), u(s.width));
  Id x = b.temp({kT, s.width});
  b.op(op::embed, {b.input("tokens"), embed}, {x});
  const Id table = b.rope_table(u(s.dim));
  for (std::int64_t l = 0; l < s.layers; ++l) x = layer(b, x, s, form, table);
  const Id taken = b.temp({kR, s.width});
  b.op(op::take_rows, {x, b.input("rows")}, {taken});
  b.op(op::linear, {norm(b, taken, s, kR), embed, kNone}, {b.output("logits", {kR, s.vocab})});
}

Part part(std::int32_t tokens, std::int32_t context, std::int32_t first_block) {
  Part p;
  for (std::int32_t i = 0; i < tokens; ++i) p.tokens.push_back(1 + (i * 7919) % 40000);
  p.context = context;
  for (std::int32_t i = 0; i < 20; ++i) p.blocks.push_back(first_block + i);
  return p;
}

// Seconds of one step; only the last token of each sequence reaches the head, or all, as when drafts are verified.
double step(Session& session, const std::vector<Part>& parts, bool all_rows = false) {
  const auto batch = session.batch(parts);
  batch->rows.clear();
  for (std::size_t s = 0; s < parts.size(); ++s)
    for (std::int32_t i = all_rows ? batch->seq_start[s] : batch->seq_start[s + 1] - 1; i < batch->seq_start[s + 1]; ++i)
      batch->rows.push_back(i);
  batch->raw.rows = batch->rows.data();
  batch->raw.n_rows = static_cast<std::uint32_t>(batch->rows.size());
  const auto start = std::chrono::steady_clock::now();
  if (session.submit(batch->raw) != MEKIK_OK) std::puts(testing::FakeHost::take_failure().c_str());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

void report(Session& session) {
  std::vector<double> prefill, decode, many;
  for (int run = 0; run < 5; ++run) prefill.push_back(512 / step(session, {part(512, 0, 0)}));
  for (std::int32_t i = 0; i < 64; ++i) decode.push_back(1 / step(session, {part(1, 512 + i, 0)}));
  std::vector<Part> all;
  for (std::int32_t s = 0; s < 16; ++s) all.push_back(part(1, 0, 20 * s));
  for (std::int32_t i = 0; i < 32; ++i) {
    for (Part& p : all) p.context = i;
    many.push_back(16 / step(session, all));
  }
  std::printf("tokens per second: prefill 512: %.0f, decode at 512: %.1f, 16 at once: %.1f\n", median(prefill), median(decode),
              median(many));
  std::printf("a step of one sequence at 512 with all rows under the head, ms:");
  std::map<std::int32_t, std::vector<double>> few;
  for (int run = 0; run < 32; ++run)
    for (const std::int32_t rows : {1, 2, 3, 4, 5, 6, 8}) few[rows].push_back(1e3 * step(session, {part(rows, 512, 0)}, true));
  for (const auto& [rows, times] : few) std::printf("  %d: %.2f", rows, median(times));
  std::puts("");
}

}  // namespace

}  // namespace mekik::test

int main(int argc, char** argv) {
  using namespace mekik::test;
  const std::string form = argc > 1 ? argv[1] : "q4_1", head = argc > 2 ? argv[2] : "q8_0";
  std::vector<std::string> settings;
  for (int i = 4; i < argc; ++i) settings.emplace_back(argv[i]);
  Shape shape;
  if (form_multiple(form) > 64) shape.width = 768, shape.heads = 12, shape.kv_heads = 4, shape.ff = 2048, shape.layers = 16;
  Backend backend{"cpu", settings};
  backend.host().set_threads(argc > 3 ? static_cast<std::uint32_t>(std::atoi(argv[3])) : 2);
  ProgramBuilder builder{1};
  build(builder, shape, form, head);
  Session session{backend, builder, {512, 16, 32, 320, 0}};
  std::printf("%s, head %s: weights %.1f MB, work %.1f MB; ", form.c_str(), head.c_str(),
              1e-6 * static_cast<double>(session.plan().weight_bytes), 1e-6 * static_cast<double>(session.plan().work_bytes));
  report(session);
  return 0;
}
