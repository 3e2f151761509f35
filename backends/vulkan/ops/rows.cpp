// Operations on rows alone: maps, norms, rotations, embeddings, rows that are taken and put, pooling.
#include "planner.hpp"

namespace mekik::vulkan {

namespace {
std::uint32_t code(MapOp op) { return static_cast<std::uint32_t>(op); }
std::uint32_t narrow(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
}  // namespace

void Planner::add_map(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  if (op.code == op::add || op.code == op::mul) return add_addend(o, op.out[0]);
  const Ref x = read(op.in[0], o);
  Ref other{};
  const bool two = op.code == op::glu || op.code == op::moe_scale || op.code == op::moe_spread || op.code == op::concat ||
                   (op.code == op::moe_combine && op.in[1] != kNone);
  if (two) other = read(op.in[1], o);
  const std::uint64_t size = row(op.out[0]), last = last_size(tensor(op.in[0]));
  Dispatch& d = open("map", domain(op.out[0]), size);
  d.set(kN, narrow(size));
  d.set(kM, 1);
  MapOp map = MapOp::act;
  std::uint32_t kind = 0;
  switch (op.code) {
    case op::act:
      kind = narrow(static_cast<std::uint64_t>(op.ints[0]));
      break;
    case op::scale:
      map = MapOp::scale;
      break;
    case op::cast:
      map = MapOp::cast;
      kind = narrow(static_cast<std::uint64_t>(op.ints[0]));
      break;
    case op::clamp:
      map = MapOp::clamp;
      break;
    case op::softcap:
      map = MapOp::softcap;
      break;
    case op::glu:
      map = MapOp::glu;
      kind = narrow(static_cast<std::uint64_t>(op.ints[0]));
      break;
    case op::moe_scale:
      map = MapOp::moe_scale;
      vector(d, kW3, op.in[2]);
      break;
    case op::moe_spread:
      map = MapOp::spread;
      d.set(kM, narrow(row(op.in[0])));
      break;
    case op::moe_combine:
      map = MapOp::combine;
      d.set(kM, narrow(row(op.in[0]) / size));
      d.set(kI0, two ? 1 : 0);
      break;
    case op::concat:
      map = MapOp::concat;
      d.set(kM, narrow(last));
      d.set(kK, narrow(last_size(tensor(op.in[1]))));
      break;
    case op::position_scale: {
      map = MapOp::factor;
      plan_.factors.push_back({op.ints[0], op.reals[0], op.reals[1], plan_.batch.words});
      d.set(kI0, narrow(plan_.batch.words));
      plan_.batch.words += limits_.max_tokens;
      break;
    }
    default:
      throw Error{MEKIK_E_INTERNAL, describe_op(program_, o) + ": no kernel"};
  }
  if (op.code != op::position_scale)
    for (std::uint32_t i = 0; i < op.n_reals && i < 2; ++i) d.set_float(kF0 + i, op.reals[i]);
  d.constants = {code(map), kind};
  bind(d, 1, x);
  if (two) bind(d, 2, other);
  bind(d, 0, write(op.out[0], o));
}

void Planner::add_addend(std::uint32_t o, std::uint32_t out) {
  const mekik_op& op = program_.op(o);
  const bool adds = op.code != op::mul, weight = tensor(op.in[1]).role == MEKIK_ROLE_WEIGHT;
  const Ref x = read(op.in[0], o);
  Ref other{};
  if (!weight) other = read(op.in[1], o);
  const std::uint64_t size = row(op.in[0]), of_other = weight ? whole_size(tensor(op.in[1])) : row(op.in[1]);
  Dispatch& d = open("map", domain(out), size);
  d.constants = {code(weight ? (adds ? MapOp::add_vector : MapOp::mul_vector) : adds ? MapOp::add : MapOp::mul), 0};
  d.set(kN, narrow(size));
  d.set(kM, narrow(size / of_other));
  bind(d, 1, x);
  if (weight) vector(d, kW3, op.in[1]);
  else bind(d, 2, other);
  bind(d, 0, write(out, o));
}

void Planner::add_norm_op(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  switch (op.code) {
    case op::rms_norm:
      return add_norm(o, NormMode::rms, op.in[0], op.in[1], kNone, op.reals[0], op.out[0]);
    case op::layer_norm:
      return add_norm(o, NormMode::layer, op.in[0], op.in[1], op.in[2], op.reals[0], op.out[0]);
    case op::l2_norm:
      return add_norm(o, NormMode::l2, op.in[0], kNone, kNone, op.reals[0], op.out[0]);
    case op::mean:
      return add_norm(o, NormMode::mean, op.in[0], kNone, kNone, 0, op.out[0]);
    case op::softmax:
      return add_norm(o, NormMode::softmax, op.in[0], kNone, kNone, 0, op.out[0]);
    case op::add_norm:
      add_addend(o, op.out[0]);
      return add_norm(o, NormMode::rms, op.out[0], op.in[2], kNone, op.reals[0], op.out[1]);
    default:  // norm_rope: turned where the norm has put it
      add_norm(o, NormMode::rms, op.in[0], op.in[1], kNone, op.reals[0], op.out[0]);
      return add_rope_of(op, op.out[0], op.in[2], op.reals[1]);
  }
}

void Planner::add_norm(std::uint32_t o, NormMode mode, std::uint32_t x, std::uint32_t w, std::uint32_t bias, double eps,
                       std::uint32_t out) {
  const Ref from = read(x, o);
  const std::uint64_t last = last_size(tensor(x)), lists = row(x) / last;
  Dispatch& d = open("norm", domain(x), lists);
  d.grid = Dispatch::Grid::groups;
  d.constants = {static_cast<std::uint32_t>(mode)};
  d.set(kN, narrow(last));
  d.set(kM, narrow(lists));
  d.set_float(kF0, eps);
  d.set(kI0, w != kNone && whole_size(tensor(w)) > last ? 1 : 0);
  d.set(kI1, bias != kNone && whole_size(tensor(bias)) > last ? 1 : 0);
  vector(d, kW3, w);
  vector(d, kW2, bias);
  bind(d, 1, from);
  bind(d, 0, write(out, o));
}

std::uint64_t Planner::turn(std::uint32_t weight, std::uint64_t half, double magnitude) {
  for (const TurnPlan& t : plan_.turns)
    if (t.weight == weight && t.magnitude == magnitude) return t.at;
  plan_.turns.push_back({weight, magnitude, narrow(half), plan_.batch.words});
  plan_.batch.words += times(limits_.max_tokens, 2 * half);
  return plan_.turns.back().at;
}

void Planner::add_rope(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  read(op.in[0], o);
  write(op.out[0], o);
  add_rope_of(op, op.in[0], op.in[1], op.reals[0]);
}

void Planner::add_rope_of(const mekik_op& op, std::uint32_t x, std::uint32_t table, double magnitude) {
  const Root of = *root_of(program_, x);
  const std::uint64_t last = last_size(tensor(x)), lists = row(x) / last, half = static_cast<std::uint64_t>(op.ints[0]) / 2;
  const std::uint64_t at = turn(table, half, magnitude);
  Dispatch& d = open("rope", MEKIK_DIM_TOKENS, lists * (last - half));
  d.set(kN, narrow(last));
  d.set(kM, narrow(lists));
  d.set(kH, narrow(half));
  d.set(kI0, narrow(static_cast<std::uint64_t>(op.ints[1])));
  d.set(kI1, narrow(at));
  bind(d, 1, {plan_.buffer_of[of.tensor], of.column});
  bind(d, 0, {plan_.buffer_of[op.out[0]], 0});
}

void Planner::add_rows(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const Ref x = read(op.in[0], o);
  const std::uint64_t size = row(op.out[0]);
  const bool takes = op.code == op::take_rows;
  Ref put{};
  if (!takes && op.in[1] != kNone) put = read(op.in[1], o);
  Dispatch& d = open("map", domain(op.out[0]), size);
  d.constants = {code(takes ? MapOp::take : MapOp::copy), 0};
  d.set(kN, narrow(size));
  d.set(kM, 1);
  d.set(kI0, narrow(plan_.batch.rows));
  bind(d, 1, x);
  const Ref y = write(op.out[0], o);
  bind(d, 0, y);
  if (put.buffer == kNone) return;
  Dispatch& p = open("put_rows", MEKIK_DIM_ROWS, size);
  p.grid = Dispatch::Grid::columns;
  p.set(kN, narrow(size));
  p.set(kI0, narrow(plan_.batch.rows));
  p.set(kI1, op.ints[0] == 1 ? 1 : 0);
  bind(p, 2, put);
  bind(p, 0, y);
}

void Planner::add_embed(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const bool mixed = op.code == op::embed_mix, of_batch = tensor(op.in[0]).role == MEKIK_ROLE_INPUT;
  const std::uint32_t table = op.in[mixed ? 2 : 1];
  WeightPlan& w = matrix(table, 1, true);
  BatchPlan& batch = plan_.batch;
  const std::string_view name = of_batch ? program_.name(op.in[0]) : std::string_view{};
  const auto width = narrow(row(op.out[0]));
  const bool embeds = name == "tokens" && !mixed;
  if (embeds && batch.embed_width != 0 && batch.embed_width != width) batch.embeds_fit = false;
  if (embeds) batch.embed_width = width;
  Ref ids{}, mix{};
  if (!of_batch) ids = read(op.in[0], o);
  if (mixed) mix = read(op.in[1], o);
  Dispatch& d = open("embed", domain(op.out[0]), width);
  d.constants = form_constants(w);
  for (const bool flag : {of_batch, embeds, mixed}) d.constants.push_back(flag ? 1 : 0);
  d.set(kN, width);
  d.set(kK, width);
  d.set(kM, mixed ? narrow(row(op.in[0])) : 1);
  if (of_batch)
    d.set(kI0, narrow(name == "tokens"      ? batch.tokens
                      : name == "positions" ? batch.positions
                      : name == "segments"  ? batch.segments
                                            : batch.token_types));
  d.set(kI1, narrow(batch.embed_rows));
  bind_weight(d, table);
  if (!of_batch) bind(d, 2, ids);
  if (mixed) bind(d, 3, mix);
  bind(d, 0, write(op.out[0], o));
}

void Planner::add_pool(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const Ref x = read(op.in[0], o);
  const std::uint64_t size = row(op.in[0]);
  Dispatch& d = open("pool", MEKIK_DIM_SEQS, size);
  d.set(kN, narrow(size));
  d.set(kI0, narrow(static_cast<std::uint64_t>(op.ints[0])));
  d.set(kI1, narrow(plan_.batch.starts));
  bind(d, 1, x);
  bind(d, 0, write(op.out[0], o));
}

void Planner::add_argmax(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const Ref x = read(op.in[0], o);
  const std::uint64_t last = last_size(tensor(op.in[0])), lists = row(op.in[0]) / last;
  Dispatch& d = open("argmax", domain(op.in[0]), lists);
  d.grid = Dispatch::Grid::groups;
  d.set(kN, narrow(last));
  d.set(kM, narrow(lists));
  bind(d, 1, x);
  bind(d, 0, write(op.out[0], o));
}

}  // namespace mekik::vulkan
