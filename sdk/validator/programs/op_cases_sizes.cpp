// Operations of families of models in odd and large sizes: mixtures of experts, recurrences, latent attention, encoders.
#include <cmath>

#include "programs.hpp"

namespace mekik::test {

using Id = ProgramBuilder::Id;
using Result = std::pair<Id, std::int64_t>;

namespace {

std::uint64_t u(std::int64_t n) { return static_cast<std::uint64_t>(n); }

// f(x [T][columns]) of rows of random numbers.
Id mapped(ProgramBuilder& b, std::uint32_t code, std::vector<std::int64_t> shape, std::vector<std::int64_t> ints, std::vector<double> reals,
          float mean = 0, float spread = 1) {
  const Id x = random_rows(b, shape, mean, spread);
  shape.insert(shape.begin(), kT);
  const Id y = b.temp(std::move(shape));
  b.op(code, {x}, {y}, std::move(ints), std::move(reals));
  return y;
}

struct Route {
  std::int64_t experts, top, score, groups, top_groups, group_score, normalize;
};

OpCase route_case(const std::string& name, const Route& r, bool biased) {
  return {"route, " + name, false, [=](ProgramBuilder& b) -> Result {
            const Id ids = b.ids({kT, r.top}), weights = b.temp({kT, r.top}), y = b.temp({kT, r.top, 4}), out = b.temp({kT, 4});
            const Id x = random_rows(b, {8});
            b.op(op::moe_route, {random_rows(b, {r.experts}), biased ? b.noise(1, u(r.experts), 0, 0.3f) : kNone}, {ids, weights},
                 {r.top, r.score, r.groups, r.top_groups, r.group_score, r.normalize}, {1.5});
            b.op(op::moe_linear, {x, b.weight("f32", u(r.experts), 4, 8), ids, kNone}, {y});
            b.op(op::moe_combine, {y, weights}, {out});
            return {out, 4};
          }};
}

// Experts in `form`; `own`: each of a row's experts has an x of its own.
OpCase experts_case(const std::string& form, std::int64_t experts, std::int64_t top, std::int64_t n, std::int64_t k, bool own, bool bias) {
  return {
      "experts " + form + " " + std::to_string(experts) + " x " + std::to_string(n) + " x " + std::to_string(k) + (own ? ", own x" : ""),
      false, [=](ProgramBuilder& b) -> Result {
        const Id ids = b.ids({kT, top}), weights = b.temp({kT, top}), y = b.temp({kT, top, n}), out = b.temp({kT, n});
        const Id x = own ? random_rows(b, {top, k}) : random_rows(b, {k});
        b.op(op::moe_route, {random_rows(b, {experts}), kNone}, {ids, weights}, {top, 0, 1, 1, 0, 1}, {1.0});
        b.op(op::moe_linear, {x, b.weight(form, u(experts), u(n), u(k)), ids, bias ? b.noise(u(experts), u(n), 0, 0.1f) : kNone}, {y});
        b.op(op::moe_combine, {y, weights}, {out});
        return {out, n};
      }};
}

OpCase conv_case(std::int64_t channels, std::int64_t taps, std::int64_t kind, bool bias) {
  return {"conv_state " + std::to_string(channels) + " x " + std::to_string(taps), false,
          [=](ProgramBuilder& b) -> Result {
            const Id y = b.temp({kT, channels});
            b.op(op::conv_state,
                 {random_rows(b, {channels}), b.noise(u(channels), u(taps), 0, 0.5f), bias ? b.noise(1, u(channels), 0, 0.1f) : kNone,
                  b.slot({channels, taps - 1})},
                 {y}, {kind});
            return {y, channels};
          },
          2e-6};
}

OpCase scan_case(std::int64_t heads, std::int64_t p, std::int64_t groups, std::int64_t n, bool by_column) {
  return {"ssm_scan " + std::to_string(heads) + " x " + std::to_string(p) + ", " + std::to_string(groups) + " groups, " +
              std::to_string(n) + (by_column ? " by column" : ""),
          false, [=](ProgramBuilder& b) -> Result {
            const Id y = b.temp({kT, heads, p}), dt = mapped(b, op::act, {heads}, {9}, {});
            b.op(op::ssm_scan,
                 {random_rows(b, {heads, p}), dt, by_column ? b.noise(u(heads), u(n), -1, 0.3f) : b.noise(1, u(heads), -1, 0.3f),
                  random_rows(b, {groups, n}), random_rows(b, {groups, n}), b.noise(1, u(heads), 1, 0.1f), b.slot({heads, p, n})},
                 {y});
            return {y, heads * p};
          }};
}

OpCase delta_case(std::int64_t hk, std::int64_t dk, std::int64_t hv, std::int64_t dv, std::int64_t spread) {
  return {"gated_delta " + std::to_string(hk) + " x " + std::to_string(dk) + ", " + std::to_string(hv) + " x " + std::to_string(dv), false,
          [=](ProgramBuilder& b) -> Result {
            const Id y = b.temp({kT, hv, dv}), q = mapped(b, op::l2_norm, {hk, dk}, {}, {1e-6}),
                     k = mapped(b, op::l2_norm, {hk, dk}, {}, {1e-6}), decay = mapped(b, op::clamp, {hv}, {}, {-5.0, 0.0}, -0.5f),
                     beta = mapped(b, op::act, {hv}, {7}, {});
            b.op(op::gated_delta, {q, k, random_rows(b, {hv, dv}), decay, beta, b.slot({hv, dk, dv})}, {y}, {spread}, {0.25});
            return {y, hv * dv};
          }};
}

struct Latent {
  std::int64_t heads, rank, r, n, v, window;
};

OpCase latent_case(const std::string& name, const Latent& m, const std::string& form, const char* kv, bool stacked) {
  return {"mla, " + name, false, [=](ProgramBuilder& b) -> Result {
            const Id state = b.state(1, m.rank + m.r, kv), y = b.temp({kT, m.heads, m.v});
            const auto weight = [&](std::int64_t rows, std::int64_t k) {
              return stacked ? b.weight(form, u(m.heads), u(rows), u(k)) : b.weight(form, u(m.heads * rows), u(k));
            };
            b.op(op::mla_append, {random_rows(b, {m.rank}), random_rows(b, {m.r}), state}, {});
            b.op(op::mla_attention,
                 {random_rows(b, {m.heads, m.n}), random_rows(b, {m.heads, m.r}), weight(m.rank, m.n), weight(m.v, m.rank), state}, {y},
                 {m.rank, m.r, m.window}, {0.2});
            return {y, m.heads * m.v};
          }};
}

OpCase full_case(std::int64_t heads, std::int64_t kv_heads, std::int64_t d, std::int64_t dv) {
  return {"attention_full " + std::to_string(heads) + " x " + std::to_string(d), false,
          [=](ProgramBuilder& b) -> Result {
            const Id y = b.temp({kT, heads, dv});
            b.op(op::attention_full,
                 {random_rows(b, {heads, d}), random_rows(b, {kv_heads, d}), random_rows(b, {kv_heads, dv}), b.input("segments")}, {y}, {},
                 {1.0 / std::sqrt(static_cast<double>(d))});
            return {y, heads * dv};
          },
          2e-5, true};
}

// Rows of a table by a number that is not a token.
OpCase place_case(const std::string& input, const std::string& form) {
  return {"embed " + input, false,
          [=](ProgramBuilder& b) -> Result {
            const Id y = b.temp({kT, 64});
            b.op(op::embed, {b.input(input), b.weight(form, 256, 64)}, {y});
            return {y, 64};
          },
          0, true};
}

}  // namespace

std::vector<OpCase> expert_cases() {
  std::vector<OpCase> cases{route_case("softmax", {8, 3, 0, 1, 1, 0, 0}, false),
                            route_case("softmax, normalised", {60, 4, 0, 1, 1, 0, 1}, false),
                            route_case("sigmoid, bias, best pairs of groups", {32, 4, 1, 8, 3, 0, 1}, true),
                            route_case("softmax, best of groups", {24, 6, 0, 4, 2, 1, 0}, false),
                            route_case("softmax of the chosen", {8, 3, 2, 2, 1, 0, 1}, false),
                            route_case("one of one", {1, 1, 0, 1, 1, 0, 1}, false),
                            route_case("all", {5, 5, 1, 1, 1, 0, 1}, false)};
  for (const std::string& form : form_names()) {
    const auto step = static_cast<std::int64_t>(form_multiple(form));
    cases.push_back(experts_case(form, 6, 2, 17, step == 1 ? 37 : 3 * step, false, true));
  }
  for (const std::string form : {"f32", "bf16", "q8_0", "q4_k", "mxfp4", "nvfp4", "gptq"})
    cases.push_back(experts_case(form, 9, 4, 80, form == "gptq" ? 128 : 256, true, form == "mxfp4"));
  cases.push_back(experts_case("q4_0", 128, 8, 48, 64, false, false));
  cases.push_back(experts_case("f32", 1, 1, 16, 33, false, false));
  cases.push_back({"gate, up and down", false, [](ProgramBuilder& b) -> Result {
                     const Id x = random_rows(b, {64}), ids = b.ids({kT, 3}), weights = b.temp({kT, 3}), gate = b.temp({kT, 3, 96}),
                              up = b.temp({kT, 3, 96}), open = b.temp({kT, 3, 96}), down = b.temp({kT, 3, 64}), out = b.temp({kT, 64});
                     b.op(op::moe_route, {random_rows(b, {8}), kNone}, {ids, weights}, {3, 0, 1, 1, 0, 1}, {1.0});
                     b.op(op::moe_linear, {x, b.weight("q4_0", 8, 96, 64), ids, b.noise(8, 96, 0, 0.1f)}, {gate});
                     b.op(op::moe_linear, {x, b.weight("q8_0", 8, 96, 64), ids, b.noise(8, 96, 0, 0.1f)}, {up});
                     b.op(op::glu, {gate, up}, {open}, {16}, {7.0, 1.702});
                     b.op(op::moe_linear, {open, b.weight("q8_0", 8, 64, 96), ids, b.noise(8, 64, 0, 0.1f)}, {down});
                     b.op(op::moe_combine, {down, weights}, {out});
                     return {out, 64};
                   }});
  return cases;
}

std::vector<OpCase> recurrent_cases() {
  return {conv_case(5, 2, 0, false),     conv_case(37, 4, 1, true),     conv_case(64, 3, 0, true),       conv_case(200, 9, 1, false),
          scan_case(37, 1, 1, 16, true), scan_case(96, 1, 1, 16, true), scan_case(6, 16, 2, 24, false),  scan_case(4, 64, 1, 128, false),
          scan_case(6, 5, 3, 7, false),  scan_case(6, 5, 2, 7, true),   scan_case(12, 24, 2, 16, false), delta_case(2, 16, 4, 8, 0),
          delta_case(2, 37, 6, 19, 1),   delta_case(1, 128, 2, 128, 0), delta_case(3, 24, 3, 80, 0),     delta_case(1, 8, 1, 1, 0)};
}

std::vector<OpCase> latent_cases() {
  return {latent_case("f32", {2, 32, 8, 16, 16, 0}, "f32", "f32", false),
          latent_case("f16, odd sizes", {5, 40, 6, 24, 20, 0}, "f32", "f16", true),
          latent_case("bf16, window", {3, 48, 16, 16, 8, 5}, "bf16", "bf16", true),
          latent_case("q8_0, stacked", {4, 64, 32, 32, 32, 0}, "q8_0", "f16", true),
          latent_case("q8_0, one below the other", {4, 64, 32, 32, 48, 0}, "q8_0", "f16", false),
          latent_case("heads of 28 rows", {30, 32, 8, 32, 28, 0}, "q8_0", "f32", false),
          latent_case("kv q8_head", {4, 64, 32, 32, 32, 0}, "q8_0", "q8_head", true),
          latent_case("kv q4_head, odd sizes", {5, 40, 6, 24, 20, 0}, "f32", "q4_head", true)};
}

std::vector<OpCase> encoder_cases() {
  std::vector<OpCase> cases{full_case(4, 2, 16, 16),         full_case(3, 3, 37, 21),        full_case(12, 12, 64, 64),
                            full_case(30, 1, 8, 8),          place_case("positions", "f16"), place_case("segments", "f32"),
                            place_case("token_types", "f32")};
  cases.push_back({"embed_mix", false, [](ProgramBuilder& b) -> Result {
                     const Id ids = b.ids({kT, 3}), weights = b.temp({kT, 3}), y = b.temp({kT, 64});
                     b.op(op::moe_route, {random_rows(b, {20}), kNone}, {ids, weights}, {3, 0, 1, 1, 0, 0}, {1.0});
                     b.op(op::embed_mix, {ids, weights, b.weight("q4_0", 20, 64)}, {y});
                     return {y, 64};
                   }});
  cases.push_back({"embed_mix of one", false, [](ProgramBuilder& b) -> Result {
                     const Id y = b.temp({kT, 37});
                     b.op(op::embed_mix, {b.input("tokens"), random_rows(b, {1}), b.weight("f16", kVocab, 37)}, {y});
                     return {y, 37};
                   }});
  return cases;
}

}  // namespace mekik::test
