// One case a row of ops.def, of the operations that only some families of models need.
#include "programs.hpp"

namespace mekik::test {

using Id = ProgramBuilder::Id;
using Result = std::pair<Id, std::int64_t>;

namespace {

void add_experts(std::vector<OpCase>& cases) {
  cases.push_back({"moe, weights before the experts", false, [](ProgramBuilder& b) -> Result {
                     const Id x = random_rows(b, {32}), ids = b.ids({kT, 2}), weights = b.temp({kT, 2}), spread = b.temp({kT, 2, 32}),
                              y = b.temp({kT, 2, 16}), out = b.temp({kT, 16});
                     b.op(op::moe_route, {random_rows(b, {8}), kNone}, {ids, weights}, {2, 1, 1, 1, 0, 0}, {1.0});
                     b.op(op::moe_spread, {x, weights}, {spread});
                     b.op(op::moe_linear, {spread, b.weight("f32", 8, 16, 32), ids, kNone}, {y});
                     b.op(op::moe_combine, {y, kNone}, {out});
                     return {out, 16};
                   }});
  cases.push_back({"moe, a number for each expert", false, [](ProgramBuilder& b) -> Result {
                     const Id ids = b.ids({kT, 3}), weights = b.temp({kT, 3}), y = b.temp({kT, 3});
                     b.op(op::moe_route, {random_rows(b, {8}), kNone}, {ids, weights}, {3, 0, 1, 1, 0, 1}, {1.0});
                     b.op(op::moe_scale, {weights, ids, b.noise(1, 8, 1, 0.5f)}, {y});
                     return {y, 3};
                   }});
  cases.push_back({"moe_route_mixer", false, [](ProgramBuilder& b) -> Result {
                     const Id ids = b.ids({kT, 2}), weights = b.temp({kT, 2}), y = b.temp({kT, 2});
                     b.op(op::moe_route_mixer, {random_rows(b, {8})}, {ids, weights}, {2}, {0.4});
                     b.op(op::moe_scale, {weights, ids, b.noise(1, 8, 1, 0.5f)}, {y});
                     return {y, 2};
                   }});
}

OpCase chunk_case(std::int64_t chunk, double cap, bool sinks) {
  return {"attention_chunk of " + std::to_string(chunk), false,
          [=](ProgramBuilder& b) -> Result {
            const Id q = random_rows(b, {4, 16}), k = random_rows(b, {2, 16}), v = random_rows(b, {2, 8});
            const Id state = b.state(2, 24), y = b.temp({kT, 4, 8});
            b.op(op::kv_append, {k, v, state}, {});
            b.op(op::attention_chunk, {q, state, sinks ? b.noise(1, 4, 0, 1) : kNone, kNone}, {y}, {8, 1, chunk}, {0.25, cap});
            return {y, 32};
          },
          2e-5};
}

OpCase near_case(std::int64_t window, double cap, bool more) {
  return {"attention_near, window " + std::to_string(window), false,
          [=](ProgramBuilder& b) -> Result {
            const Id q = random_rows(b, {4, 16}), k = random_rows(b, {2, 16}), v = random_rows(b, {2, 8}), y = b.temp({kT, 4, 8});
            b.op(op::attention_near,
                 {q, k, v, b.input("segments"), more ? b.noise(1, 4, 0, 1) : kNone, more ? b.noise(1, 4, 0.2f, 0.1f) : kNone}, {y},
                 {window}, {0.25, cap});
            return {y, 32};
          },
          2e-5, true};
}

void add_attentions(std::vector<OpCase>& cases) {
  for (const std::int64_t chunk : {1, 3, 4, 100}) cases.push_back(chunk_case(chunk, chunk == 3 ? 2.5 : 0, chunk == 4));
  for (const std::int64_t window : {0, 1, 3, 40}) cases.push_back(near_case(window, window == 3 ? 2.5 : 0, window != 1));
  cases.push_back({"two attentions of one state", false,
                   [](ProgramBuilder& b) -> Result {
                     const Id k = random_rows(b, {2, 16}), v = random_rows(b, {2, 16}), state = b.state(2, 32);
                     const Id first = b.temp({kT, 4, 16}), second = b.temp({kT, 2, 16}), sum = b.temp({kT, 64});
                     b.op(op::kv_append, {k, v, state}, {});
                     b.op(op::attention, {random_rows(b, {4, 16}), state, kNone, kNone}, {first}, {16, 1, 3}, {0.25, 0});
                     b.op(op::attention, {random_rows(b, {2, 16}), state, kNone, kNone}, {second}, {16, 1, 3}, {0.25, 0});
                     const Id wide = b.temp({kT, 64});
                     b.op(op::linear, {second, b.weight("f32", 64, 32), kNone}, {wide});
                     b.op(op::add, {b.view(first, 0, {kT, 64}), wide}, {sum});
                     return {sum, 64};
                   },
                   2e-5});
}

void add_maps(std::vector<OpCase>& cases) {
  for (const std::int64_t kind : {10, 11}) {
    cases.push_back({"act " + std::to_string(kind), false, [kind](ProgramBuilder& b) -> Result {
                       const Id x = random_rows(b, {37}, 1, 0.3f), square = b.temp({kT, 37}), y = b.temp({kT, 37});
                       b.op(op::mul, {x, x}, {square});
                       b.op(op::act, {square}, {y}, {kind});
                       return {y, 37};
                     }});
  }
  cases.push_back({"mean", false, [](ProgramBuilder& b) -> Result {
                     const Id x = random_rows(b, {3, 16}), y = b.temp({kT, 3, 1});
                     b.op(op::mean, {x}, {y});
                     return {y, 3};
                   }});
  cases.push_back({"concat", false, [](ProgramBuilder& b) -> Result {
                     const Id x = random_rows(b, {3, 16}), more = random_rows(b, {3, 5}), y = b.temp({kT, 3, 21});
                     b.op(op::concat, {x, more}, {y});
                     return {y, 63};
                   }});
  for (const std::int64_t shift : {0, 1})
    cases.push_back(map_case("position_scale", false, op::position_scale, {3, 16}, {shift}, {3.0, 0.1},
                             [](ProgramBuilder& b) { return std::vector<Id>{b.input("positions")}; }));
  cases.push_back(map_case("mul, a weight a head", false, op::mul, {4, 8}, {}, {},
                           [](ProgramBuilder& b) { return std::vector<Id>{b.noise(4, 1, 2, 1)}; }));
  cases.push_back(
      map_case("mul, one number", false, op::mul, {33}, {}, {}, [](ProgramBuilder& b) { return std::vector<Id>{b.noise(1, 1, 2, 1)}; }));
  cases.push_back(
      map_case("add, one number", false, op::add, {33}, {}, {}, [](ProgramBuilder& b) { return std::vector<Id>{b.noise(1, 1, 2, 1)}; }));
}

}  // namespace

std::vector<OpCase> family_cases() {
  std::vector<OpCase> cases;
  cases.push_back(map_case("layer_norm", false, op::layer_norm, {48}, {}, {1e-5}, [](ProgramBuilder& b) {
    return std::vector<Id>{b.noise(1, 48, 1, 0.1f), b.noise(1, 48, 0, 0.1f)};
  }));
  cases.push_back(map_case("l2_norm", false, op::l2_norm, {3, 16}, {}, {1e-6}));
  for (const std::int64_t score : {0, 1, 2, 3})
    cases.push_back({"moe " + std::to_string(score), false, [score](ProgramBuilder& b) -> Result {
                       const Id x = random_rows(b, {32}), ids = b.ids({kT, 3}), weights = b.temp({kT, 3}), y = b.temp({kT, 3, 16}),
                                out = b.temp({kT, 16});
                       b.op(op::moe_route, {random_rows(b, {8}), score == 1 ? b.noise(1, 8, 0, 0.3f) : kNone}, {ids, weights},
                            {3, score, 2, 1, 0, 1}, {1.5});
                       b.op(op::moe_linear, {x, b.weight("q8_0", 8, 16, 32), ids, b.noise(8, 16, 0, 0.1f)}, {y});
                       b.op(op::moe_combine, {y, weights}, {out});
                       return {out, 16};
                     }});
  cases.push_back({"mla", false, [](ProgramBuilder& b) -> Result {
                     const Id state = b.state(1, 40), y = b.temp({kT, 2, 16});
                     b.op(op::mla_append, {random_rows(b, {32}), random_rows(b, {8}), state}, {});
                     b.op(op::mla_attention,
                          {random_rows(b, {2, 16}), random_rows(b, {2, 8}), b.noise(64, 16, 0, 0.2f), b.noise(32, 32, 0, 0.2f), state}, {y},
                          {32, 8, 0}, {0.2});
                     return {y, 32};
                   }});
  cases.push_back({"gated_delta, a decay for each channel", false, [](ProgramBuilder& b) -> Result {
                     const Id decay = random_rows(b, {4, 8}, -0.5f, 0.2f), beta = random_rows(b, {4}, 0.4f, 0.1f), y = b.temp({kT, 4, 6});
                     b.op(op::gated_delta,
                          {random_rows(b, {2, 8}), random_rows(b, {2, 8}), random_rows(b, {4, 6}), decay, beta, b.slot({4, 8, 6})}, {y},
                          {0}, {0.35});
                     return {y, 24};
                   }});
  add_experts(cases);
  add_attentions(cases);
  add_maps(cases);
  return cases;
}

}  // namespace mekik::test
