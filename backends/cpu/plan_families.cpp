// Phases of encoders, recurrences, mixtures of experts and latent attention.
#include <algorithm>

#include "planner.hpp"

namespace mekik::cpu {

namespace {

std::uint32_t narrow(std::uint64_t x) { return static_cast<std::uint32_t>(x); }

}  // namespace

// Keys and values of the step are packed as attention reads them, every sequence from a multiple of 16 rows on.
void Planner::add_full(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const RowShape k = row_shape(program_.tensor(op.in[1])), v = row_shape(program_.tensor(op.in[2]));
  open_rows(MEKIK_DIM_TOKENS);
  for (std::uint32_t i = 0; i < 3; ++i) read(op.in[i], o);
  const std::uint64_t row = times(k.outer, k.last + round_up(v.last, 16));
  const std::uint32_t kv = new_buffer(times(times(plan_.full_rows(), row), sizeof(float)));
  phase().rows.push_back({RowKind::pack_kv, o, kNone, kv, kNone, kNone, 1});
  phase().row_cost += row;
  open(PhasePlan::Kind::full, MEKIK_DIM_TOKENS, o).buffer = kv;
  use_buffer(kv);
  read(op.in[0], o);
  for (std::uint32_t i = 4; i < op.n_in; ++i) use_vector(op.in[i]);  // sinks and slopes of attention_near
  write(op.out[0], o);
}

void Planner::add_scan(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  open(PhasePlan::Kind::scan, MEKIK_DIM_TOKENS, o);
  for (std::uint32_t i = 0; i + 1 < op.n_in; ++i) {
    if (op.in[i] == kNone) continue;
    read(op.in[i], o);
    if (program_.tensor(op.in[i]).role != MEKIK_ROLE_WEIGHT) continue;
    // Taps, and A by column, are read with channels in lanes.
    const bool by_column = i == 1 || (op.code == op::ssm_scan && i == 2 && a_by_column(program_, op));
    if (by_column) plan_.weights[op.in[i]].columns = true;
    else use_vector(op.in[i]);
  }
  write(op.out[0], o);
  SlotPlan& s = plan_.slots[op.in[op.n_in - 1]];
  if (s.code != 0) throw Error{MEKIK_E_INVALID, describe_op(program_, o) + ": its slot belongs to another operation, too"};
  s.code = op.code;
  s.floats = scan_floats(program_, op);
}

std::uint64_t Planner::scan_scratch(std::uint32_t o) const {
  const mekik_op& op = program_.op(o);
  if (op.code == op::ssm_scan) return scan_scratch_floats(narrow(last_size(program_.tensor(op.in[3]))));
  if (op.code == op::gated_delta) return delta_scratch_floats(narrow(last_size(program_.tensor(op.in[1]))));
  return 0;
}

std::uint32_t Planner::grouping_of(std::uint32_t ids, std::uint32_t experts, std::int64_t domain_of_rows) {
  for (std::uint32_t g = 0; g < plan_.groupings.size(); ++g) {
    Grouping& known = plan_.groupings[g];
    if (known.ids == ids && known.experts == experts) return g;
  }
  Grouping g;
  g.ids = ids;
  g.experts = experts;
  g.top = narrow(row_size(program_.tensor(ids)));
  const std::uint64_t entries = times(plan_.max_rows(domain_of_rows), g.top);
  if (entries > (std::uint64_t{1} << 31)) throw Error{MEKIK_E_NO_MEMORY, "a step of more than 2^31 rows of experts"};
  open(PhasePlan::Kind::group, domain_of_rows, kNone).grouping = narrow(plan_.groupings.size());
  g.buffer = new_buffer(Groups::bytes(experts, entries));
  touch(ids);
  plan_.groupings.push_back(g);
  return narrow(plan_.groupings.size() - 1);
}

// The rows of x, or of the buffer `source`, as a product of the grouping wants them: sorted, permuted, quantised.
void Planner::spread(std::uint32_t x, std::uint32_t source, std::uint32_t grouping, std::int64_t domain_of_rows, Product& p) {
  const Matrix& m = plan_.weights[p.weight].layout.matrix;
  const bool acts = integer(m), permuted = !plan_.weights[p.weight].layout.inputs.empty();
  for (const Spread& s : spreads_) {
    if (x == kNone || s.x != x || s.grouping != grouping || (s.product.acts != kNone) != acts || !same_acts(s.product.weight, p.weight))
      continue;
    p.acts = s.product.acts;
    p.gathered = s.product.gathered;
    return;
  }
  const std::uint64_t entries = times(plan_.max_rows(domain_of_rows), plan_.groupings[grouping].top);
  PhasePlan& phase_of = open(PhasePlan::Kind::spread, domain_of_rows, kNone);
  if (!acts || permuted) p.gathered = new_buffer(times(times(entries, m.k), sizeof(float)));
  if (acts) p.acts = new_buffer(Acts::bytes(m.blocks, entries));
  phase_of.x = x;
  phase_of.buffer = source;
  phase_of.grouping = grouping;
  phase_of.products = {p};
  if (x != kNone) touch(x);
  use_buffer(source);
  use_buffer(plan_.groupings[grouping].buffer);
  if (x != kNone) spreads_.push_back({x, grouping, p});
}

void Planner::add_experts(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const std::int64_t rows = domain(op.in[2]);
  read(op.in[0], o);
  read(op.in[2], o);
  const std::uint64_t experts = weight_shape(program_.tensor(op.in[1])).experts;
  matrix(op.in[1], experts);
  use_vector(op.in[3]);
  Product p{op.in[1], op.in[3], op.out[0]};
  const std::uint32_t grouping = grouping_of(root(op.in[2]), narrow(experts), rows);
  const std::uint32_t before = now();
  spread(op.in[0], kNone, grouping, rows, p);
  // Gate and up run together: one phase more than needed costs as much as a small expert.
  PhasePlan& last = phase();
  const bool joins = before == now() && last.kind == PhasePlan::Kind::experts && last.grouping == grouping;
  PhasePlan& here = joins ? last : open(PhasePlan::Kind::experts, rows, o);
  here.grouping = grouping;
  here.products.push_back(p);
  use_buffer(p.acts);
  use_buffer(p.gathered);
  use_buffer(plan_.groupings[grouping].buffer);
  write(op.out[0], o);
}

// Always absorbed: the queries go into the space of the latents and the results come out of it, whatever the number of rows.
void Planner::add_latent(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const RowShape q = row_shape(program_.tensor(op.in[0]));
  const auto rank = static_cast<std::uint64_t>(op.ints[0]);
  StatePlan& s = plan_.states[op.in[4]];
  if ((s.dv != 0 && !s.latent) || (s.latent && s.dv != rank))
    throw Error{MEKIK_E_INVALID, describe_op(program_, o) + ": the state is not made of such latents"};
  s.latent = true;
  s.dv = narrow(rank);
  look_back(op.in[4], op.ints[2]);
  matrix(op.in[2], q.outer);
  matrix(op.in[3], q.outer);
  const auto heads = narrow(plan_.groupings.size());
  plan_.groupings.push_back({kNone, kNone, narrow(q.outer), narrow(q.outer)});
  const auto product = [&](Product& p) {
    PhasePlan& here = open(PhasePlan::Kind::experts, MEKIK_DIM_TOKENS, o);
    here.grouping = heads;
    here.products = {p};
    use_buffer(p.acts);
    use_buffer(p.gathered);
  };
  read(op.in[0], o);
  Product in{op.in[2], kNone, kNone}, out{op.in[3], kNone, op.out[0]};
  spread(op.in[0], kNone, heads, MEKIK_DIM_TOKENS, in);
  product(in);
  const std::uint32_t latents = new_buffer(times(times(limits_.max_tokens, q.outer * rank), sizeof(float)));
  phase().buffer = latents;
  open(PhasePlan::Kind::latent, MEKIK_DIM_TOKENS, o).buffer = latents;
  use_buffer(latents);
  read(op.in[1], o);
  spread(kNone, latents, heads, MEKIK_DIM_TOKENS, out);
  product(out);
  write(op.out[0], o);
}

}  // namespace mekik::cpu
