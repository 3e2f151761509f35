// Keys and values: stored, and attended to.
#include "planner.hpp"

#include <algorithm>

namespace mekik::vulkan {

namespace {

std::uint32_t narrow(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
bool is_codes(KvForm form) { return form == KvForm::codes8 || form == KvForm::codes4; }
// Numbers of a part that 16 bytes hold.
std::uint32_t numbers_of(KvForm form) { return form == KvForm::f32 ? 4 : form == KvForm::codes8 ? 16 : form == KvForm::codes4 ? 32 : 8; }
// 16-byte texels of a part; the last word of one in codes is the scale.
std::uint32_t texels_of(KvForm form, std::uint32_t n) {
  if (n == 0) return 0;
  if (!is_codes(form)) return (n + numbers_of(form) - 1) / numbers_of(form);
  const std::uint32_t bytes = form == KvForm::codes8 ? n : (n + 1) / 2;
  return (bytes + 4 + 15) / 16;
}

}  // namespace

void Planner::shape_state(StatePlan& s, KvForm form, std::uint32_t heads, std::uint32_t first, std::uint32_t second) const {
  s.form = form;
  s.heads = heads;
  s.first = first;
  s.second = second;
  s.first_texels = texels_of(form, first);
  s.head_texels = s.first_texels + texels_of(form, second);
  s.row_texels = heads * s.head_texels;
}

void Planner::set_state(Dispatch& d, const StatePlan& s, std::uint32_t state, std::uint32_t pool) {
  const BatchPlan& b = plan_.batch;
  d.constants = {static_cast<std::uint32_t>(s.form), pool != kNone ? 1u : 0u};
  d.state = state;
  d.pool = pool;
  if (pool != kNone) patch(d, Patch::Kind::texel, kW0, {pool, 0});
  d.set(kW1, s.row_texels);
  d.set(kW2, s.head_texels);
  d.set(kW3, s.first_texels);
  d.set(kK, limits_.block_tokens);
  if (state != kNone) d.set(kI0, narrow(b.blocks[tensor(state).group]));
  d.set(kI1, limits_.max_blocks);
  d.set(kI2, narrow(b.segments));
  d.set(kI3, narrow(b.starts));
  d.set(kI4, narrow(b.contexts));
}

// Lists of n numbers times the Hadamard matrix, as codes are stored.
Ref Planner::turned(Ref x, std::int64_t rows, std::uint64_t lists, std::uint64_t n, bool divide, Ref to) {
  if (to.buffer == kNone) to = {new_buffer(rows, lists * n), 0};
  Dispatch& d = open("hadamard", rows, lists);
  d.grid = Dispatch::Grid::groups;
  d.set(kN, narrow(n));
  d.set(kM, narrow(lists));
  d.set(kH, narrow(n & (~n + 1)));
  d.set(kI0, divide ? 1 : 0);
  bind(d, 1, x);
  bind(d, 0, to);
  return to;
}

void Planner::append(Ref k, Ref v, const StatePlan& s, std::uint32_t state, std::uint32_t pool) {
  if (is_codes(s.form)) {
    k = turned(k, MEKIK_DIM_TOKENS, s.heads, s.first, false);
    v = turned(v, MEKIK_DIM_TOKENS, s.heads, s.second, false);
  }
  Dispatch& d = open("append", MEKIK_DIM_TOKENS, is_codes(s.form) ? std::uint64_t{2} * s.heads : std::uint64_t{s.heads} * s.head_texels);
  d.local = 32;
  set_state(d, s, state, pool);
  d.set(kN, s.first);
  d.set(kH, s.second);
  d.set(kM, s.heads);
  bind(d, 1, k);
  bind(d, 2, v);
}

void Planner::add_append(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const Ref k = read(op.in[0], o), v = read(op.in[1], o);
  StatePlan& s = plan_.states[op.in[2]];
  const auto heads = narrow(static_cast<std::uint64_t>(tensor(op.in[2]).shape[1]));
  const std::uint32_t first = narrow(row(op.in[0]) / heads), second = narrow(row(op.in[1]) / heads);
  if (s.row_texels != 0 && (s.first != first || s.second != second))
    throw Error{MEKIK_E_INVALID, describe_op(program_, o) + ": the state is used with two widths of keys"};
  shape_state(s, kv_form(tensor(op.in[2]).scheme), heads, first, second);
  append(k, v, s, op.in[2], kNone);
}

// What of the past is read decides which blocks a batch must bring.
void Planner::look_back(std::uint32_t state, std::int64_t window) {
  std::uint64_t& back = plan_.look_back[tensor(state).group];
  back = std::max(back, window == 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(window) - 1);
}

Dispatch& Planner::attend(const StatePlan& s, std::uint32_t state, std::uint32_t pool, std::uint32_t heads, bool latent, const Sight& sight,
                          double scale, double cap, std::uint32_t sinks, std::uint32_t slopes) {
  // Heads that meet the same keys share their loads, as far as the queries and sums stay small enough for registers.
  const std::uint32_t same = heads / s.heads, numbers = latent ? 2 * s.first + s.second : s.first + s.second;
  std::uint32_t shared = 1;
  for (std::uint32_t n = 1; n <= same; ++n)
    if (same % n == 0 && n * numbers <= 512) shared = n;
  Dispatch& d = open("attention", MEKIK_DIM_TOKENS, heads / shared);
  d.local = 32;
  set_state(d, s, state, pool);
  d.constants.insert(d.constants.end(), {s.first, s.second, latent ? 1u : 0u, shared, cap != 0 ? 1u : 0u, sinks != kNone ? 1u : 0u,
                                         slopes != kNone ? 1u : 0u, sight.kind, sight.window ? 1u : 0u});
  d.set(kN, heads);
  d.set(kM, s.heads);
  d.set(kI5, sight.span);
  d.set_float(kF0, scale);
  d.set_float(kF1, cap);
  vector(d, kCt, sinks);
  vector(d, kCs, slopes);
  return d;
}

void Planner::add_attention(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const bool chunks = op.code == op::attention_chunk;
  StatePlan& s = plan_.states[op.in[1]];
  const std::uint64_t dv = static_cast<std::uint64_t>(op.ints[0]), d = last_size(tensor(op.in[0])), heads = row(op.in[0]) / d;
  if (s.row_texels == 0)
    shape_state(s, kv_form(tensor(op.in[1]).scheme), narrow(static_cast<std::uint64_t>(tensor(op.in[1]).shape[1])), narrow(d), narrow(dv));
  if (s.first != d || s.second != dv)
    throw Error{MEKIK_E_INVALID, describe_op(program_, o) + ": the state is used with two widths of keys"};
  look_back(op.in[1], op.ints[2]);
  Ref q = read(op.in[0], o);
  const bool codes = is_codes(s.form);
  if (codes) q = turned(q, MEKIK_DIM_TOKENS, heads, d, true);
  Sight sight;
  sight.kind = (chunks ? 2 : 0) + (op.ints[1] != 0 ? 0 : 1);
  sight.window = !chunks && op.ints[2] != 0;
  sight.span = narrow(std::min<std::uint64_t>(static_cast<std::uint64_t>(op.ints[2]), 0x7FFFFFFFu));
  const Ref y = write(op.out[0], o), sums = codes ? Ref{new_buffer(MEKIK_DIM_TOKENS, heads * dv), 0} : y;
  Dispatch& a = attend(s, op.in[1], kNone, narrow(heads), false, sight, op.reals[0], op.reals[1], op.in[2], op.in[3]);
  bind(a, 1, q);
  bind(a, 0, sums);
  if (codes) turned(sums, MEKIK_DIM_TOKENS, heads, dv, true, y);
}

// Rows of this step: kept in a buffer of the step as a state keeps them, F32.
void Planner::add_full(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const Ref q = read(op.in[0], o), k = read(op.in[1], o), v = read(op.in[2], o);
  const std::uint64_t d = last_size(tensor(op.in[0])), dv = last_size(tensor(op.in[2])), heads = row(op.in[0]) / d,
                      groups = row(op.in[1]) / d;
  const bool near = op.code == op::attention_near;
  StatePlan s;
  shape_state(s, KvForm::f32, narrow(groups), narrow(d), narrow(dv));
  const std::uint32_t rows = new_buffer(MEKIK_DIM_TOKENS, std::uint64_t{s.row_texels} * 4);
  append(k, v, s, kNone, rows);
  Sight sight;
  sight.kind = 1;
  sight.window = near && op.ints[0] != 0;
  sight.span = near ? narrow(std::min<std::uint64_t>(static_cast<std::uint64_t>(op.ints[0]), 0x7FFFFFFFu)) : 0;
  Dispatch& a = attend(s, kNone, rows, narrow(heads), false, sight, op.reals[0], near ? op.reals[1] : 0, near ? op.in[4] : kNone,
                       near ? op.in[5] : kNone);
  bind(a, 1, q);
  bind(a, 0, write(op.out[0], o));
}

// Always absorbed: queries go into the space of the latents and results come out of it, whatever the number of rows.
void Planner::add_latent(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const auto rank = static_cast<std::uint64_t>(op.ints[0]), r = static_cast<std::uint64_t>(op.ints[1]);
  const std::uint64_t n = last_size(tensor(op.in[0])), heads = row(op.in[0]) / n;
  StatePlan& s = plan_.states[op.in[4]];
  if (s.row_texels == 0) shape_state(s, kv_form(tensor(op.in[4]).scheme), 1, narrow(rank), narrow(r));
  if (s.first != rank || s.second != r) throw Error{MEKIK_E_INVALID, describe_op(program_, o) + ": the state is not made of such latents"};
  look_back(op.in[4], op.ints[2]);
  matrix(op.in[2], heads, true);
  matrix(op.in[3], heads, true);
  const Ref q = padded(read(op.in[0], o), MEKIK_DIM_TOKENS, heads, n);
  Ref rotated = read(op.in[1], o), latents{new_buffer(MEKIK_DIM_TOKENS, heads * rank), 0};
  bind(expert_dispatch(op.in[2], kNone, heads, MEKIK_DIM_TOKENS, q, narrow(round_up(n, 4)), {}), 0, latents);
  const bool codes = is_codes(s.form);
  if (codes) {
    latents = turned(latents, MEKIK_DIM_TOKENS, heads, rank, true);
    rotated = turned(rotated, MEKIK_DIM_TOKENS, heads, r, true);
  }
  Sight sight;
  sight.window = op.ints[2] != 0;
  sight.span = narrow(std::min<std::uint64_t>(static_cast<std::uint64_t>(op.ints[2]), 0x7FFFFFFFu));
  Ref sums{new_buffer(MEKIK_DIM_TOKENS, heads * rank), 0};
  Dispatch& a = attend(s, op.in[4], kNone, narrow(heads), true, sight, op.reals[0], 0, kNone, kNone);
  bind(a, 1, latents);
  bind(a, 2, rotated);
  bind(a, 0, sums);
  if (codes) sums = turned(sums, MEKIK_DIM_TOKENS, heads, rank, true);
  sums = padded(sums, MEKIK_DIM_TOKENS, heads, rank);
  bind(expert_dispatch(op.in[3], kNone, heads, MEKIK_DIM_TOKENS, sums, narrow(round_up(rank, 4)), {}), 0, write(op.out[0], o));
}

}  // namespace mekik::vulkan
