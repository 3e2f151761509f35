// Products with matrices, and mixtures of experts.
#include "planner.hpp"

namespace mekik::vulkan {

namespace {
std::uint32_t narrow(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
}  // namespace

// Rows as a product reads them, four numbers at a time and in the weight's order of inputs: themselves, or a copy.
Ref Planner::aligned(std::uint32_t x, std::uint32_t weight, std::uint32_t o) {
  const Ref from = read(x, o);
  const bool permuted = weight != kNone && plan_.weights[weight].layout.permuted;
  if (!permuted && from.column % 4 == 0 && plan_.buffers[from.buffer].stride % 4 == 0) return from;
  const std::pair<std::uint32_t, std::uint32_t> key{x, permuted ? weight : kNone};
  if (const auto known = aligned_.find(key); known != aligned_.end()) return known->second;
  const std::uint64_t size = row(x);
  const Ref to{new_buffer(domain(x), size), 0};
  Dispatch& d = open("map", domain(x), size);
  d.constants = {static_cast<std::uint32_t>(permuted ? MapOp::permute : MapOp::copy), 0};
  d.set(kN, narrow(size));
  d.set(kM, 1);
  if (permuted) d.patches.push_back({Patch::Kind::vector, kW3, {weight, 1}});  // column 1: its order of inputs
  bind(d, 1, from);
  bind(d, 0, to);
  return aligned_[key] = to;
}

void Planner::add_product(std::uint32_t x, std::uint32_t w, std::uint32_t bias, std::uint32_t residual, Ref out, std::uint32_t o,
                          bool joins) {
  const Ref from = aligned(x, w, o);
  const WeightPlan& weight = plan_.weights[w];
  Ref added{};
  if (residual != kNone) added = read(residual, o);
  Dispatch& d = open("linear_" + std::to_string(static_cast<std::uint32_t>(weight.layout.kind)), domain(x), 1, joins);
  d.grid = Dispatch::Grid::linear;
  d.constants = form_constants(weight);
  d.constants.insert(d.constants.end(), {weight.layout.k % 4, bias != kNone ? 1u : 0u, residual != kNone ? 1u : 0u});
  d.set(kN, weight.layout.n);
  d.set(kK, weight.layout.k);
  bind_weight(d, w);
  vector(d, kW3, bias);
  bind(d, 1, from);
  if (residual != kNone) bind(d, 3, added);
  bind(d, 0, out);
}

void Planner::add_linear(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  if (op.code == op::linear_glu) {
    const Ref gate{new_buffer(domain(op.out[0]), row(op.out[0])), 0}, up{new_buffer(domain(op.out[0]), row(op.out[0])), 0};
    for (const std::uint32_t i : {1u, 3u}) {
      matrix(op.in[i], 1, false);
      aligned(op.in[0], op.in[i], o);
    }
    add_product(op.in[0], op.in[1], op.in[2], kNone, gate, o, false);
    add_product(op.in[0], op.in[3], op.in[4], kNone, up, o, true);
    const std::uint64_t size = row(op.out[0]);
    Dispatch& d = open("map", domain(op.out[0]), size);
    d.constants = {static_cast<std::uint32_t>(MapOp::glu), narrow(static_cast<std::uint64_t>(op.ints[0]))};
    d.set(kN, narrow(size));
    d.set(kM, 1);
    d.set_float(kF0, op.reals[0]);
    d.set_float(kF1, op.reals[1]);
    bind(d, 1, gate);
    bind(d, 2, up);
    bind(d, 0, write(op.out[0], o));
    return;
  }
  for (std::uint32_t i = 0; i < op.n_out; ++i) {  // copies first, so that the products run side by side
    matrix(op.in[1 + 2 * i], 1, false);
    aligned(op.in[0], op.in[1 + 2 * i], o);
  }
  for (std::uint32_t i = 0; i < op.n_out; ++i)
    add_product(op.in[0], op.in[1 + 2 * i], op.in[2 + 2 * i], op.code == op::linear_add ? op.in[3] : kNone, write(op.out[i], o), o, i > 0);
}

// Each (row, choice) of x meets one matrix of a stack. x_of_choice: numbers from a choice's input to the next, 0: they share a row's.
Dispatch& Planner::expert_dispatch(std::uint32_t w, std::uint32_t bias, std::uint64_t top, std::int64_t rows, Ref x,
                                   std::uint32_t x_of_choice, Ref ids) {
  const WeightPlan& weight = plan_.weights[w];
  Dispatch& d = open("experts_" + std::to_string(static_cast<std::uint32_t>(weight.layout.kind)), rows, top);
  d.grid = Dispatch::Grid::experts;
  d.constants = form_constants(weight);
  d.constants.insert(d.constants.end(), {weight.layout.k % 4, bias != kNone ? 1u : 0u, 0u, ids.buffer != kNone ? 1u : 0u});
  d.set(kN, weight.layout.n);
  d.set(kK, weight.layout.k);
  d.set(kM, narrow(top));
  d.set(kI0, x_of_choice);
  bind_weight(d, w);
  vector(d, kW3, bias);
  bind(d, 1, x);
  if (ids.buffer != kNone) bind(d, 2, ids);
  return d;
}

// Lists of m numbers with room up to a multiple of four; themselves where they have that.
Ref Planner::padded(Ref x, std::int64_t rows, std::uint64_t lists, std::uint64_t m) {
  const std::uint64_t wide = round_up(m, 4);
  if (wide == m && x.column % 4 == 0 && plan_.buffers[x.buffer].stride % 4 == 0) return x;
  const Ref to{new_buffer(rows, lists * wide), 0};
  Dispatch& d = open("map", rows, lists * wide);
  d.constants = {static_cast<std::uint32_t>(MapOp::pad), 0};
  d.set(kN, narrow(lists * wide));
  d.set(kM, narrow(m));
  d.set(kK, narrow(wide));
  bind(d, 1, x);
  bind(d, 0, to);
  return to;
}

void Planner::add_experts(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const WeightShape shape = weight_shape(tensor(op.in[1]));
  matrix(op.in[1], shape.experts, true);
  const std::uint64_t top = row(op.in[2]);
  const bool shared = row(op.in[0]) == shape.k;
  const Ref x = padded(read(op.in[0], o), domain(op.in[0]), shared ? 1 : top, shape.k), ids = read(op.in[2], o);
  Dispatch& d = expert_dispatch(op.in[1], op.in[3], top, domain(op.out[0]), x, shared ? 0 : narrow(round_up(shape.k, 4)), ids);
  bind(d, 0, write(op.out[0], o));
}

void Planner::add_route(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const bool mixer = op.code == op::moe_route_mixer;
  const Ref logits = read(op.in[0], o);
  const std::uint64_t experts = row(op.in[0]);
  const auto groups = mixer ? std::uint64_t{0} : static_cast<std::uint64_t>(op.ints[2]);
  const Ref lists{new_buffer(domain(op.in[0]), 2 * experts + groups), 0};
  Dispatch& d = open("route", domain(op.in[0]), 1);
  d.local = 32;
  d.constants = {mixer ? 9u : narrow(static_cast<std::uint64_t>(op.ints[1]))};
  d.set(kN, narrow(experts));
  d.set(kM, narrow(static_cast<std::uint64_t>(op.ints[0])));
  d.set_float(kF0, op.reals[0]);
  if (!mixer) {
    for (const auto& [word, attribute] : {std::pair{kI0, 2}, {kI1, 3}, {kI2, 4}, {kI3, 5}})
      d.set(word, narrow(static_cast<std::uint64_t>(op.ints[attribute])));
    vector(d, kW3, op.in[1]);
  }
  bind(d, 1, logits);
  bind(d, 2, lists);
  bind(d, 0, write(op.out[0], o));
  bind(d, 3, write(op.out[1], o));
}

}  // namespace mekik::vulkan
