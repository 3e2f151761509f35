#include "programs.hpp"

#include <cmath>
#include <limits>

namespace mekik::test {

using Id = ProgramBuilder::Id;

Id random_rows(ProgramBuilder& b, std::vector<std::int64_t> shape, float mean, float spread) {
  std::int64_t size = 1;
  for (const std::int64_t s : shape) size *= s;
  std::vector<float> table(static_cast<std::size_t>(kVocab * size));
  for (float& v : table) v = mean + spread * normal(b.random());
  for (std::int64_t j = 0; j < size; ++j) {
    table[static_cast<std::size_t>((kVocab - 2) * size + j)] = std::numeric_limits<float>::quiet_NaN();
    table[static_cast<std::size_t>((kVocab - 1) * size + j)] =
        j % 2 == 0 ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity();
  }
  shape.insert(shape.begin(), kT);
  const Id rows = b.temp(std::move(shape));
  b.op(op::embed, {b.input("tokens"), b.values(std::move(table), kVocab, static_cast<std::uint64_t>(size))}, {rows});
  return rows;
}

void finish(ProgramBuilder& b, Id rows, std::int64_t size) {
  b.op(op::take_rows, {rows, b.input("rows")}, {b.output("logits", {kR, size})});
}

namespace {

struct Decoder {
  std::int64_t width = 64, heads = 4, kv_heads = 2, dim = 16, ff = 96;
};

std::uint64_t u(std::int64_t n) { return static_cast<std::uint64_t>(n); }

Id linear(ProgramBuilder& b, Id x, const std::string& form, std::int64_t n, std::int64_t k, std::vector<std::int64_t> shape) {
  shape.insert(shape.begin(), kT);
  const Id y = b.temp(std::move(shape));
  b.op(op::linear, {x, b.weight(form, u(n), u(k)), kNone}, {y});
  return y;
}

Id norm(ProgramBuilder& b, Id x, std::int64_t width) {
  const Id y = b.temp({kT, width});
  b.op(op::rms_norm, {x, b.noise(1, u(width), 1, 0.1f)}, {y}, {}, {1e-5});
  return y;
}

Id attend(ProgramBuilder& b, Id x, const Decoder& m, const std::string& form, const char* kv, std::int64_t window, Id table) {
  const Id n = norm(b, x, m.width), positions = b.input("positions");
  const Id q = b.temp({kT, m.heads, m.dim}), k = b.temp({kT, m.kv_heads, m.dim}), v = b.temp({kT, m.kv_heads, m.dim});
  b.op(op::linear,
       {n, b.weight(form, u(m.heads * m.dim), u(m.width)), kNone, b.weight(form, u(m.kv_heads * m.dim), u(m.width)),
        b.noise(1, u(m.kv_heads * m.dim), 0, 0.1f), b.weight(form, u(m.kv_heads * m.dim), u(m.width)), kNone},
       {q, k, v});
  const Id q2 = b.temp({kT, m.heads, m.dim}), k2 = b.temp({kT, m.kv_heads, m.dim}), y = b.temp({kT, m.heads, m.dim});
  b.op(op::rope, {q, table, positions}, {q2}, {m.dim, 0}, {1.0});
  b.op(op::rope, {k, table, positions}, {k2}, {m.dim, 0}, {1.0});
  const Id state = b.state(m.kv_heads, 2 * m.dim, kv);
  b.op(op::kv_append, {k2, v, state}, {});
  b.op(window < 0 ? op::attention_chunk : op::attention, {q2, state, kNone, kNone}, {y}, {m.dim, 1, std::abs(window)},
       {1.0 / std::sqrt(static_cast<double>(m.dim)), 0.0});
  const Id o = linear(b, y, form, m.width, m.heads * m.dim, {m.width}), sum = b.temp({kT, m.width});
  b.op(op::add, {x, o}, {sum});
  return sum;
}

Id feed_forward(ProgramBuilder& b, Id x, const Decoder& m, const std::string& form) {
  const Id n = norm(b, x, m.width), gate = b.temp({kT, m.ff}), up = b.temp({kT, m.ff}), y = b.temp({kT, m.ff}), sum = b.temp({kT, m.width});
  b.op(op::linear, {n, b.weight(form, u(m.ff), u(m.width)), kNone, b.weight(form, u(m.ff), u(m.width)), kNone}, {gate, up});
  b.op(op::glu, {gate, up}, {y}, {1}, {0, 0});
  b.op(op::add, {x, linear(b, y, form, m.width, m.ff, {m.width})}, {sum});
  return sum;
}

void head(ProgramBuilder& b, Id x, std::int64_t width, const std::string& form) {
  const Id taken = b.temp({kR, width}), n = b.temp({kR, width});
  b.op(op::take_rows, {x, b.input("rows")}, {taken});
  b.op(op::rms_norm, {taken, b.noise(1, u(width), 1, 0.1f)}, {n}, {}, {1e-5});
  b.op(op::linear, {n, b.weight(form, kVocab, u(width)), kNone}, {b.output("logits", {kR, kVocab})});
}

}  // namespace

void build_llama(ProgramBuilder& b, const std::string& form, const char* kv, std::int64_t window) {
  Decoder m;
  if (form_multiple(form) > 32) m.width = 256, m.heads = 8, m.dim = 32, m.ff = 256;
  Id x = random_rows(b, {m.width});
  const Id table = b.rope_table(u(m.dim));
  for (int layer = 0; layer < 2; ++layer) x = feed_forward(b, attend(b, x, m, form, kv, window, table), m, form);
  head(b, x, m.width, form);
}

void build_hybrid(ProgramBuilder& b) {
  const Decoder m;
  Id x = random_rows(b, {m.width});
  const Id mixed = b.temp({kT, m.width});
  b.op(op::conv_state, {x, b.noise(u(m.width), 4, 0, 0.5f), b.noise(1, u(m.width), 0, 0.1f), b.slot({m.width, 3})}, {mixed}, {1});
  const Id dt = b.temp({kT, 4}), scan = b.temp({kT, 4, 16}), sum = b.temp({kT, m.width});
  b.op(op::act, {linear(b, mixed, "f32", 4, m.width, {4})}, {dt}, {9});
  const Id states = linear(b, mixed, "f32", 32, m.width, {32});
  b.op(op::ssm_scan,
       {b.view(mixed, 0, {kT, 4, 16}), dt, b.noise(1, 4, -1, 0.1f), b.view(states, 0, {kT, 2, 8}), b.view(states, 16, {kT, 2, 8}),
        b.noise(1, 4, 1, 0.1f), b.slot({4, 16, 8})},
       {scan});
  b.op(op::add, {x, b.view(scan, 0, {kT, m.width})}, {sum});
  const Id q = b.temp({kT, 2, 16}), k = b.temp({kT, 2, 16}), beta = b.temp({kT, 4}), decay = b.temp({kT, 4}), delta = b.temp({kT, 4, 8}),
           last = b.temp({kT, m.width});
  b.op(op::l2_norm, {linear(b, sum, "f32", 32, m.width, {2, 16})}, {q}, {}, {1e-6});
  b.op(op::l2_norm, {linear(b, sum, "f32", 32, m.width, {2, 16})}, {k}, {}, {1e-6});
  b.op(op::act, {linear(b, sum, "f32", 4, m.width, {4})}, {beta}, {7});
  b.op(op::clamp, {linear(b, sum, "f32", 4, m.width, {4})}, {decay}, {}, {-3.0, 0.0});
  b.op(op::gated_delta, {q, k, linear(b, sum, "f32", 32, m.width, {4, 8}), decay, beta, b.slot({4, 16, 8})}, {delta}, {0}, {0.25});
  b.op(op::add, {sum, linear(b, delta, "f32", m.width, 32, {m.width})}, {last});
  head(b, attend(b, last, m, "f32", "f16", 0, b.rope_table(u(m.dim))), m.width, "f32");
}

void build_experts(ProgramBuilder& b, const std::string& form) {
  const std::int64_t width = 64, experts = 8, top = 2, ff = 32;
  const Id x = random_rows(b, {width}), n = norm(b, x, width), logits = linear(b, n, "f32", experts, width, {experts});
  const Id ids = b.ids({kT, top}), weights = b.temp({kT, top}), gate = b.temp({kT, top, ff}), up = b.temp({kT, top, ff}),
           y = b.temp({kT, top, ff});
  b.op(op::moe_route, {logits, kNone}, {ids, weights}, {top, 0, 1, 1, 0, 1}, {1.0});
  b.op(op::moe_linear, {n, b.weight(form, experts, ff, width), ids, kNone}, {gate});
  b.op(op::moe_linear, {n, b.weight(form, experts, ff, width), ids, kNone}, {up});
  b.op(op::glu, {gate, up}, {y}, {1}, {0, 0});
  const Id down = b.temp({kT, top, width}), mixed = b.temp({kT, width}), sum = b.temp({kT, width});
  b.op(op::moe_linear, {y, b.weight(form, experts, width, ff), ids, kNone}, {down});
  b.op(op::moe_combine, {down, weights}, {mixed});
  b.op(op::add, {x, mixed}, {sum});
  head(b, sum, width, form);
}

void build_mamba(ProgramBuilder& b) {
  const std::int64_t width = 48, inner = 80, states = 16;
  const Id x = random_rows(b, {width}), mixed = b.temp({kT, inner}), dt = b.temp({kT, inner}), y = b.temp({kT, inner, 1}),
           sum = b.temp({kT, width});
  b.op(op::conv_state,
       {linear(b, norm(b, x, width), "f32", inner, width, {inner}), b.noise(u(inner), 4, 0, 0.5f), kNone, b.slot({inner, 3})}, {mixed},
       {1});
  b.op(op::act, {linear(b, mixed, "f32", inner, inner, {inner})}, {dt}, {9});
  const Id bc = linear(b, mixed, "f32", 2 * states, inner, {2 * states});
  b.op(op::ssm_scan,
       {b.view(mixed, 0, {kT, inner, 1}), dt, b.noise(u(inner), u(states), -1, 0.3f), b.view(bc, 0, {kT, 1, states}),
        b.view(bc, u(states), {kT, 1, states}), b.noise(1, u(inner), 1, 0.1f), b.slot({inner, 1, states})},
       {y});
  b.op(op::add, {x, linear(b, b.view(y, 0, {kT, inner}), "q8_0", width, inner, {width})}, {sum});
  head(b, sum, width, "f32");
}

void build_latent(ProgramBuilder& b, const std::string& form, const char* kv) {
  const std::int64_t width = 64, heads = 4, rank = 64, r = 16, nope = 32, v = 32;
  const Id x = random_rows(b, {width}), n = norm(b, x, width), positions = b.input("positions"), table = b.rope_table(u(r));
  const Id q = linear(b, n, "f32", heads * nope, width, {heads, nope}), turn = linear(b, n, "f32", heads * r, width, {heads, r}),
           latent = linear(b, n, "f32", rank + r, width, {rank + r}), kept = b.temp({kT, rank});
  const Id turned = b.temp({kT, heads, r}), key = b.temp({kT, 1, r}), y = b.temp({kT, heads, v}), sum = b.temp({kT, width});
  b.op(op::rope, {turn, table, positions}, {turned}, {r, 1}, {1.0});
  b.op(op::rope, {b.view(latent, u(rank), {kT, 1, r}), table, positions}, {key}, {r, 1}, {1.0});
  b.op(op::rms_norm, {b.view(latent, 0, {kT, rank}), b.noise(1, u(rank), 1, 0.1f)}, {kept}, {}, {1e-5});
  const Id state = b.state(1, rank + r, kv);
  b.op(op::mla_append, {kept, key, state}, {});
  b.op(op::mla_attention, {q, turned, b.weight(form, u(heads), u(rank), u(nope)), b.weight(form, u(heads), u(v), u(rank)), state}, {y},
       {rank, r, 0}, {0.15});
  b.op(op::add, {x, linear(b, y, form, width, heads * v, {width})}, {sum});
  head(b, sum, width, form);
}

void build_encoder(ProgramBuilder& b) {
  const Decoder m;
  Id x = random_rows(b, {m.width});
  for (int layer = 0; layer < 2; ++layer) {
    const Id q = linear(b, x, "q8_0", m.heads * m.dim, m.width, {m.heads, m.dim}),
             k = linear(b, x, "q8_0", m.kv_heads * m.dim, m.width, {m.kv_heads, m.dim}),
             v = linear(b, x, "q8_0", m.kv_heads * m.dim, m.width, {m.kv_heads, m.dim}), y = b.temp({kT, m.heads, m.dim}),
             sum = b.temp({kT, m.width});
    b.op(op::attention_full, {q, k, v, b.input("segments")}, {y}, {}, {0.25});
    b.op(op::add, {x, linear(b, y, "q8_0", m.width, m.heads * m.dim, {m.width})}, {sum});
    x = feed_forward(b, sum, m, "q8_0");
  }
  head(b, x, m.width, "f32");
}

}  // namespace mekik::test
