// One layer of a family at a time: bench_cpu_layers [THREADS] [SETTING=VALUE ...]. A mixture of experts beside a dense layer with as many
// active weights, in billions of products a second; recurrences in gigabytes a second of state (read and written) when decoding, and
// tokens a second of a prompt. One thread is measured in its own CPU time, more by the clock; the best of several runs.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "ops/session.hpp"

namespace mekik::test {

namespace {

using Id = ProgramBuilder::Id;

std::uint64_t u(std::int64_t n) { return static_cast<std::uint64_t>(n); }

constexpr std::int32_t kFew = 62, kMany = 512;  // tokens that differ: each has a row of its own

Id rows(ProgramBuilder& b, std::vector<std::int64_t> shape, float mean = 0, float spread = 1, std::int32_t different = kFew) {
  std::uint64_t size = 1;
  for (const std::int64_t s : shape) size *= u(s);
  shape.insert(shape.begin(), kT);
  const Id y = b.temp(std::move(shape));
  b.op(op::embed, {b.input("tokens"), b.noise(u(different), size, mean, spread)}, {y});
  return y;
}

Id dense(ProgramBuilder& b, const std::string& form, std::int64_t width, std::int64_t ff) {
  const Id y = b.temp({kT, ff}), out = b.temp({kT, width});
  b.op(op::linear_glu, {rows(b, {width}, 0, 1, kMany), b.weight(form, u(ff), u(width)), kNone, b.weight(form, u(ff), u(width)), kNone}, {y},
       {1}, {0, 0});
  b.op(op::linear, {y, b.weight(form, u(width), u(ff)), kNone}, {out});
  return out;
}

Id experts(ProgramBuilder& b, const std::string& form, std::int64_t width, std::int64_t ff, std::int64_t count, std::int64_t top) {
  const Id x = rows(b, {width}, 0, 1, kMany), ids = b.ids({kT, top}), weights = b.temp({kT, top}), gate = b.temp({kT, top, ff}),
           up = b.temp({kT, top, ff}), open = b.temp({kT, top, ff}), down = b.temp({kT, top, width}), out = b.temp({kT, width});
  b.op(op::moe_route, {rows(b, {count}, 0, 1, kMany), kNone}, {ids, weights}, {top, 0, 1, 1, 0, 1}, {1.0});
  b.op(op::moe_linear, {x, b.weight(form, u(count), u(ff), u(width)), ids, kNone}, {gate});
  b.op(op::moe_linear, {x, b.weight(form, u(count), u(ff), u(width)), ids, kNone}, {up});
  b.op(op::glu, {gate, up}, {open}, {1}, {0, 0});
  b.op(op::moe_linear, {open, b.weight(form, u(count), u(width), u(ff)), ids, kNone}, {down});
  b.op(op::moe_combine, {down, weights}, {out});
  return out;
}

Id delta(ProgramBuilder& b, std::int64_t hk, std::int64_t hv, std::int64_t d) {
  const Id y = b.temp({kT, hv, d});
  b.op(op::gated_delta,
       {rows(b, {hk, d}, 0, 0.1f), rows(b, {hk, d}, 0, 0.1f), rows(b, {hv, d}), rows(b, {hv}, -0.5f, 0.1f), rows(b, {hv}, 0.5f, 0.1f),
        b.slot({hv, d, d})},
       {y}, {0}, {0.1});
  return y;
}

Id scan(ProgramBuilder& b, std::int64_t heads, std::int64_t p, std::int64_t n, bool by_column) {
  const Id y = b.temp({kT, heads, p});
  b.op(op::ssm_scan,
       {rows(b, {heads, p}), rows(b, {heads}, 0.5f, 0.1f), by_column ? b.noise(u(heads), u(n), -1, 0.1f) : b.noise(1, u(heads), -1, 0.1f),
        rows(b, {1, n}), rows(b, {1, n}), b.noise(1, u(heads), 1, 0.1f), b.slot({heads, p, n})},
       {y});
  return y;
}

Id latents(ProgramBuilder& b, std::int64_t heads, std::int64_t rank, std::int64_t r, std::int64_t d) {
  const Id state = b.state(1, rank + r), y = b.temp({kT, heads, d});
  b.op(op::mla_append, {rows(b, {rank}), rows(b, {r}), state}, {});
  b.op(op::mla_attention,
       {rows(b, {heads, d}), rows(b, {heads, r}), b.weight("q8_0", u(heads), u(rank), u(d)), b.weight("q8_0", u(heads), u(d), u(rank)),
        state},
       {y}, {rank, r, 0}, {0.1});
  return y;
}

double now(bool cpu_time) {
  timespec t{};
  clock_gettime(cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Seconds {
  double prompt, token;
};

// A prompt of 512, and a token after it; layers one after another, so that the caches are as cold as they are in a model.
Seconds measure(Backend& backend, bool cpu_time, const std::function<Id(ProgramBuilder&)>& build, std::int64_t size, int layers,
                std::int32_t different) {
  ProgramBuilder b;
  Id last = 0;
  for (int i = 0; i < layers; ++i) last = build(b);
  b.op(op::take_rows, {last, b.input("rows")}, {b.output("logits", {kR, size})});
  Session session{backend, b, {.max_tokens = 512, .max_seqs = 2, .block_tokens = 32, .n_blocks = 40, .n_slots = 2}};
  std::vector<std::int32_t> blocks(32), tokens(512);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::int32_t>(i);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i) * 37 % different;
  Seconds best{1e9, 1e9};
  const auto run = [&](const std::vector<Part>& parts) {
    const double start = now(cpu_time);
    session.step(parts);
    return (now(cpu_time) - start) / layers;
  };
  for (int i = 0; i < 4; ++i) best.prompt = std::min(best.prompt, run({{tokens, 0, blocks, -1, 0}}));
  for (int i = 0; i < 20; ++i) best.token = std::min(best.token, run({{{i}, 512, blocks, 0, 0}}));
  return best;
}

int main_of(int argc, char** argv) {
  const auto threads = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 1);
  std::vector<std::string> settings;
  for (int i = 2; i < argc; ++i) settings.emplace_back(argv[i]);
  Backend backend{"cpu", settings};
  backend.host().set_threads(threads);
  const bool cpu_time = threads == 1;
  const auto product = [&](const std::string& name, const std::function<Id(ProgramBuilder&)>& build, double weights, std::int64_t size,
                           int layers) {
    const Seconds s = measure(backend, cpu_time, build, size, layers, kMany);
    std::printf("%-28s %8.1f Gproducts/s prompt %8.1f decode\n", name.c_str(), 512 * weights / s.prompt / 1e9, weights / s.token / 1e9);
  };
  for (const std::string form : {"q4_0", "q8_0", "bf16"}) {
    const double weights = 3.0 * 1024 * 8 * 512;  // those of 32 experts are four times as many, so that there are fewer such layers
    product(
        "dense " + form, [&](ProgramBuilder& b) { return dense(b, form, 1024, 8 * 512); }, weights, 1024, 8);
    product(
        "8 of 32 experts " + form, [&](ProgramBuilder& b) { return experts(b, form, 1024, 512, 32, 8); }, weights, 1024, 2);
    product(
        "8 of 8 experts " + form, [&](ProgramBuilder& b) { return experts(b, form, 1024, 512, 8, 8); }, weights, 1024, 8);
  }
  const auto state = [&](const std::string& name, const std::function<Id(ProgramBuilder&)>& build, double numbers, std::int64_t size,
                         int layers) {
    const Seconds s = measure(backend, cpu_time, build, size, layers, kFew);
    std::printf("%-28s %8.0f tokens/s prompt %8.2f GB/s decode, %.1f us\n", name.c_str(), 512 / s.prompt, 8 * numbers / s.token / 1e9,
                1e6 * s.token);
  };
  state(
      "gated_delta 32 x 128 x 128", [](ProgramBuilder& b) { return delta(b, 16, 32, 128); }, 32 * 128 * 128, 32 * 128, 12);
  state(
      "ssm_scan 80 x 64 x 128", [](ProgramBuilder& b) { return scan(b, 80, 64, 128, false); }, 80 * 64 * 128, 80 * 64, 12);
  state(
      "ssm_scan 5120 x 1 x 16", [](ProgramBuilder& b) { return scan(b, 5120, 1, 16, true); }, 5120 * 16, 5120, 12);
  state(
      "mla 16 heads, 512 + 64", [](ProgramBuilder& b) { return latents(b, 16, 512, 64, 128); }, 0, 16 * 128, 2);
  return 0;
}

}  // namespace

}  // namespace mekik::test

int main(int argc, char** argv) { return mekik::test::main_of(argc, argv); }
