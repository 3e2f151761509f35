// One case a row of ops.def, with the attributes that matter.
#include <cmath>

#include "programs.hpp"

namespace mekik::test {

using Id = ProgramBuilder::Id;
using Result = std::pair<Id, std::int64_t>;

OpCase map_case(std::string name, bool every, std::uint32_t code, std::vector<std::int64_t> shape, std::vector<std::int64_t> ints,
                std::vector<double> reals, std::function<std::vector<Id>(ProgramBuilder&)> more, double bound) {
  return {std::move(name), every,
          [=](ProgramBuilder& b) -> Result {
            std::vector<Id> in{random_rows(b, shape)};
            if (more)
              for (const Id id : more(b)) in.push_back(id);
            std::vector<std::int64_t> out = shape;
            std::int64_t size = 1;
            for (const std::int64_t s : shape) size *= s;
            out.insert(out.begin(), kT);
            const Id y = b.temp(out);
            b.op(code, in, {y}, ints, reals);
            return {y, size};
          },
          bound};
}

namespace {

std::vector<Id> none(ProgramBuilder&) { return {kNone}; }

OpCase attention_case(std::string name, std::int64_t heads, std::int64_t kv_heads, std::int64_t d, std::int64_t dv, std::int64_t window,
                      double cap, bool sinks, bool slopes, const char* kv, bool causal = true) {
  return {std::move(name), true,
          [=](ProgramBuilder& b) -> Result {
            const Id q = random_rows(b, {heads, d}), k = random_rows(b, {kv_heads, d}), v = random_rows(b, {kv_heads, dv});
            const Id state = b.state(kv_heads, d + dv, kv), y = b.temp({kT, heads, dv});
            b.op(op::kv_append, {k, v, state}, {});
            const auto n = static_cast<std::uint64_t>(heads);
            b.op(op::attention, {q, state, sinks ? b.noise(1, n, 0, 1) : kNone, slopes ? b.noise(1, n, 0.2f, 0.1f) : kNone}, {y},
                 {dv, causal ? 1 : 0, window}, {1.0 / std::sqrt(static_cast<double>(d)), cap});
            return {y, heads * dv};
          },
          2e-5};
}

std::vector<OpCase> attention_cases() {
  return {attention_case("attention", 4, 2, 16, 16, 0, 0, false, false, "f16"),
          attention_case("attention, one head, f32", 1, 1, 8, 8, 0, 0, false, false, "f32"),
          attention_case("attention, bf16, head of 80", 3, 1, 80, 80, 0, 0, false, false, "bf16"),
          attention_case("attention, window", 4, 4, 16, 16, 5, 0, false, false, "f16"),
          attention_case("attention, window of one", 2, 2, 16, 16, 1, 0, false, false, "f16"),
          attention_case("attention, soft cap", 4, 2, 16, 16, 0, 2.5, false, false, "f16"),
          attention_case("attention, sinks and window", 4, 2, 16, 16, 6, 0, true, false, "f16"),
          attention_case("attention, slopes", 4, 2, 16, 16, 0, 0, false, true, "f16"),
          attention_case("attention, wide keys", 4, 2, 24, 8, 0, 0, false, false, "f16"),
          attention_case("attention, two-way", 2, 1, 16, 16, 0, 0, false, false, "f16", false),
          attention_case("attention, q8_head", 4, 2, 64, 64, 0, 0, false, false, "q8_head"),
          attention_case("attention, q8_head, head of 80, window", 3, 1, 80, 80, 6, 0, false, false, "q8_head"),
          attention_case("attention, q8_head, wide keys, soft cap", 4, 2, 24, 8, 0, 2.5, false, false, "q8_head"),
          attention_case("attention, q8_head, odd, sinks", 4, 4, 13, 7, 0, 0, true, false, "q8_head"),
          attention_case("attention, q4_head", 4, 2, 64, 64, 0, 0, false, false, "q4_head"),
          attention_case("attention, q4_head, head of 48, slopes", 6, 2, 48, 48, 0, 0, false, true, "q4_head"),
          attention_case("attention, q4_head, odd, sinks and window", 4, 2, 9, 33, 6, 0, true, false, "q4_head"),
          attention_case("attention, q4_head, two-way", 2, 1, 16, 16, 0, 0, false, false, "q4_head", false)};
}

void add_maps(std::vector<OpCase>& cases) {
  const std::int64_t kinds = 9;
  for (std::int64_t kind = 0; kind <= kinds; ++kind)
    cases.push_back(map_case("act " + std::to_string(kind), true, op::act, {37}, {kind}, {}));
  cases.push_back(map_case("rms_norm", true, op::rms_norm, {67}, {}, {1e-5},
                           [](ProgramBuilder& b) { return std::vector<Id>{b.noise(1, 67, 1, 0.2f)}; }));
  cases.push_back(map_case("rms_norm, no weight", true, op::rms_norm, {3, 16}, {}, {1e-6}, none));
  cases.push_back(map_case("rms_norm, a weight a head", true, op::rms_norm, {3, 16}, {}, {1e-6},
                           [](ProgramBuilder& b) { return std::vector<Id>{b.noise(3, 16, 1, 0.2f)}; }));
  cases.push_back(map_case("add", true, op::add, {33}, {}, {}, [](ProgramBuilder& b) { return std::vector<Id>{random_rows(b, {33})}; }));
  cases.push_back(
      map_case("add, a weight", true, op::add, {4, 8}, {}, {}, [](ProgramBuilder& b) { return std::vector<Id>{b.noise(1, 32, 0, 1)}; }));
  cases.push_back(map_case("mul", true, op::mul, {33}, {}, {}, [](ProgramBuilder& b) { return std::vector<Id>{random_rows(b, {33})}; }));
  cases.push_back(
      map_case("mul, a gate a row", true, op::mul, {33}, {}, {}, [](ProgramBuilder& b) { return std::vector<Id>{random_rows(b, {1})}; }));
  cases.push_back(map_case("mul, a gate a head", true, op::mul, {4, 8}, {}, {}, [](ProgramBuilder& b) {
    return std::vector<Id>{random_rows(b, {4, 1})};
  }));
  cases.push_back(map_case("scale", true, op::scale, {33}, {}, {0.3, 1.5}));
  cases.push_back(map_case("cast f16", true, op::cast, {33}, {MEKIK_F16}, {}, {}, 0));
  cases.push_back(map_case("cast bf16", true, op::cast, {33}, {MEKIK_BF16}, {}, {}, 0));
  cases.push_back(map_case("softmax", true, op::softmax, {33}, {}, {}));
  cases.push_back(map_case("clamp", true, op::clamp, {33}, {}, {-0.5, 0.25}, {}, 0));
  const auto turn = [](std::uint64_t dim) {
    return [dim](ProgramBuilder& b) { return std::vector<Id>{b.rope_table(dim), b.input("positions")}; };
  };
  cases.push_back(map_case("rope, halves", true, op::rope, {3, 16}, {16, 0}, {1.0}, turn(16), 1e-6));
  cases.push_back(map_case("rope, adjacent, partial", true, op::rope, {3, 20}, {12, 1}, {1.2}, turn(12), 1e-6));
  cases.push_back(map_case(
      "put_rows, absent", true, op::put_rows, {33}, {0}, {},
      [](ProgramBuilder& b) {
        return std::vector<Id>{kNone, b.input("rows")};
      },
      0));
}

}  // namespace

OpCase linear_case(const std::string& form, std::uint64_t n, std::uint64_t k) {
  return {"linear " + form + " " + std::to_string(n) + " x " + std::to_string(k), true,
          [=](ProgramBuilder& b) -> Result {
            const Id x = random_rows(b, {static_cast<std::int64_t>(k)}), y = b.temp({kT, static_cast<std::int64_t>(n)});
            b.op(op::linear, {x, b.weight(form, n, k), kNone}, {y});
            return {y, static_cast<std::int64_t>(n)};
          },
          // A chain of k roundings, each of 2^-24 of a partial sum: far below this for sums of random sign.
          2e-5};
}

std::vector<OpCase> basic_cases() {
  std::vector<OpCase> cases = attention_cases();
  add_maps(cases);
  cases.push_back({"embed q4_0", true,
                   [](ProgramBuilder& b) -> Result {
                     const Id y = b.temp({kT, 64});
                     b.op(op::embed, {b.input("tokens"), b.weight("q4_0", kVocab, 64)}, {y});
                     return {y, 64};
                   },
                   0});
  cases.push_back({"linear, a list with biases", true, [](ProgramBuilder& b) -> Result {
                     const Id x = random_rows(b, {64}), first = b.temp({kT, 5}), second = b.temp({kT, 7}), y = b.temp({kT, 5});
                     b.op(op::linear, {x, b.weight("q4_0", 5, 64), b.noise(1, 5, 0, 1), b.weight("q8_0", 7, 64), kNone}, {first, second});
                     b.op(op::add, {first, b.view(second, 2, {kT, 5})}, {y});
                     return {y, 5};
                   }});
  cases.push_back({"argmax", true,
                   [](ProgramBuilder& b) -> Result {
                     const Id best = b.ids({kT, 1}), y = b.temp({kT, 32}), x = random_rows(b, {40});
                     b.op(op::argmax, {x}, {best});
                     b.op(op::embed, {best, b.weight("f32", 40, 32)}, {y});
                     return {y, 32};
                   },
                   0});
  cases.push_back({"put_rows, added", true,
                   [](ProgramBuilder& b) -> Result {
                     const Id x = random_rows(b, {32}), taken = b.temp({kR, 32}), y = b.temp({kT, 32});
                     b.op(op::take_rows, {x, b.input("rows")}, {taken});
                     b.op(op::put_rows, {x, taken, b.input("rows")}, {y}, {1}, {});
                     return {y, 32};
                   },
                   0});
  return cases;
}

std::vector<OpCase> composite_cases() {
  std::vector<OpCase> cases;
  const auto pair = [](ProgramBuilder& b) { return std::vector<Id>{random_rows(b, {48})}; };
  for (const std::int64_t kind : {1, 3, 16})
    cases.push_back(map_case("glu " + std::to_string(kind), false, op::glu, {48}, {kind}, {1.5, 1.7}, pair));
  cases.push_back(map_case("softcap", false, op::softcap, {48}, {}, {3.0}));
  cases.push_back(map_case("norm_rope", false, op::norm_rope, {3, 16}, {16, 0}, {1e-6, 1.0}, [](ProgramBuilder& b) {
    return std::vector<Id>{b.noise(1, 16, 1, 0.2f), b.rope_table(16), b.input("positions")};
  }));
  cases.push_back({"add_norm", false,
                   [](ProgramBuilder& b) -> Result {
                     const Id x = random_rows(b, {48}), sum = b.temp({kT, 48}), normal_rows = b.temp({kT, 48}), y = b.temp({kT, 48});
                     b.op(op::add_norm, {x, random_rows(b, {48}), b.noise(1, 48, 1, 0.1f)}, {sum, normal_rows}, {}, {1e-5});
                     b.op(op::mul, {sum, normal_rows}, {y});
                     return {y, 48};
                   },
                   2e-6});
  cases.push_back({"linear_add", false, [](ProgramBuilder& b) -> Result {
                     const Id x = random_rows(b, {64}), y = b.temp({kT, 32});
                     b.op(op::linear_add, {x, b.weight("q8_0", 32, 64), b.noise(1, 32, 0, 1), random_rows(b, {32})}, {y});
                     return {y, 32};
                   }});
  cases.push_back(
      {"linear_glu", false, [](ProgramBuilder& b) -> Result {
         const Id x = random_rows(b, {64}), y = b.temp({kT, 32});
         b.op(op::linear_glu, {x, b.weight("q4_0", 32, 64), b.noise(1, 32, 0, 1), b.weight("q4_1", 32, 64), kNone}, {y}, {1}, {0, 0});
         return {y, 32};
       }});
  cases.push_back({"qkv_rope_append", false, [](ProgramBuilder& b) -> Result {
                     const Id x = random_rows(b, {64}), q = b.temp({kT, 4, 16}), y = b.temp({kT, 4, 16}), state = b.state(2, 32);
                     b.op(op::qkv_rope_append,
                          {x, b.weight("q4_0", 64, 64), b.noise(1, 64, 0, 0.1f), b.weight("q4_0", 32, 64), kNone, b.weight("q8_0", 32, 64),
                           kNone, b.noise(1, 16, 1, 0.1f), b.noise(1, 16, 1, 0.1f), b.rope_table(16), b.input("positions"), state},
                          {q}, {16, 0}, {1e-6, 1.0});
                     b.op(op::attention, {q, state, kNone, kNone}, {y}, {16, 1, 0}, {0.25, 0.0});
                     return {y, 64};
                   }});
  cases.push_back({"moe_ffn", false, [](ProgramBuilder& b) -> Result {
                     const Id x = random_rows(b, {64}), logits = random_rows(b, {8}), y = b.temp({kT, 64});
                     b.op(op::moe_ffn,
                          {x, logits, kNone, b.weight("q4_0", 8, 32, 64), kNone, b.weight("q4_0", 8, 32, 64), kNone,
                           b.weight("q8_0", 8, 64, 32), kNone},
                          {y}, {2, 0, 1, 1, 0, 1, 1}, {1.0, 0, 0});
                     return {y, 64};
                   }});
  return cases;
}

}  // namespace mekik::test
