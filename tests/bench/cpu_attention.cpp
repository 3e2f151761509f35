// Attention by the form of keys and values: bench_cpu_attention [SETTING=VALUE ...]. For two shapes of heads and three depths, microseconds
// a layer of one token's attention, and of a prompt's 512 tokens, with its keys and values stored; forms take turns, the medians of many
// rounds in this thread's CPU time.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "ops/session.hpp"

namespace mekik::test {

namespace {

using Id = ProgramBuilder::Id;

constexpr int kLayers = 6;  // so that the caches are as cold as they are in a model
constexpr const char* kForms[] = {"f16", "bf16", "q8_head", "q4_head"};

struct Shape {
  const char* name;
  std::int64_t heads, kv_heads, d;
};

Id rows(ProgramBuilder& b, std::int64_t heads, std::int64_t d) {
  const Id y = b.temp({kT, heads, d});
  b.op(op::embed, {b.input("tokens"), b.noise(64, static_cast<std::uint64_t>(heads * d), 0, 1)}, {y});
  return y;
}

struct Subject {
  Subject(Backend& backend, const Shape& shape, const char* form, std::uint32_t depth) {
    Id last = 0;
    for (int i = 0; i < kLayers; ++i) {
      const Id state = builder.state(shape.kv_heads, 2 * shape.d, form), q = rows(builder, shape.heads, shape.d);
      builder.op(op::kv_append, {rows(builder, shape.kv_heads, shape.d), rows(builder, shape.kv_heads, shape.d), state}, {});
      last = builder.temp({kT, shape.heads, shape.d});
      builder.op(op::attention, {q, state, kNone, kNone}, {last}, {shape.d, 1, 0}, {1 / std::sqrt(static_cast<double>(shape.d)), 0});
    }
    builder.op(op::take_rows, {last, builder.input("rows")}, {builder.output("logits", {kR, shape.heads * shape.d})});
    const std::uint32_t blocks = (depth + 512) / 32 + 1;
    session = std::make_unique<Session>(backend, builder, Sizes{.max_tokens = 512, .max_seqs = 1, .block_tokens = 32, .n_blocks = blocks});
    for (std::uint32_t i = 0; i < blocks; ++i) table.push_back(static_cast<std::int32_t>(i));
    for (std::uint32_t at = 0; at < depth; at += 512) step(at, std::min(512u, depth - at));
  }
  double step(std::uint32_t context, std::uint32_t n) {
    std::vector<std::int32_t> tokens(n);
    for (std::uint32_t i = 0; i < n; ++i) tokens[i] = static_cast<std::int32_t>((context + i * 37) % 64);
    const Part part{tokens, static_cast<std::int32_t>(context), table, -1, -1};
    timespec from{}, to{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    session->step({part});
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return (static_cast<double>(to.tv_sec - from.tv_sec) * 1e6 + static_cast<double>(to.tv_nsec - from.tv_nsec) * 1e-3) / kLayers;
  }
  ProgramBuilder builder;
  std::unique_ptr<Session> session;
  std::vector<std::int32_t> table;
};

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

int main_of(int argc, char** argv) {
  Backend backend{"cpu", {argv + 1, argv + argc}};
  backend.host().set_threads(1);
  for (const Shape& shape : {Shape{"9 heads of 64 on 3", 9, 3, 64}, Shape{"16 heads of 128 on 4", 16, 4, 128}})
    for (const std::uint32_t depth : {512u, 2048u, 8192u}) {
      std::vector<std::unique_ptr<Subject>> subjects;
      for (const char* form : kForms) subjects.push_back(std::make_unique<Subject>(backend, shape, form, depth));
      std::vector<double> token[std::size(kForms)], prompt[std::size(kForms)];
      for (int round = 0; round < 24; ++round)
        for (std::size_t f = 0; f < subjects.size(); ++f) {
          token[f].push_back(subjects[f]->step(depth, 1));
          if (round % 6 == 0) prompt[f].push_back(subjects[f]->step(depth, 512));
        }
      std::printf("%s, depth %u\n", shape.name, depth);
      for (std::size_t f = 0; f < subjects.size(); ++f)
        std::printf("  %-8s token %8.1f us (%.2f of f16)   512 tokens %9.0f us (%.2f)\n", kForms[f], median(token[f]),
                    median(token[f]) / median(token[0]), median(prompt[f]), median(prompt[f]) / median(prompt[0]));
      std::fflush(stdout);
    }
  return 0;
}

}  // namespace

}  // namespace mekik::test

int main(int argc, char** argv) { return mekik::test::main_of(argc, argv); }
