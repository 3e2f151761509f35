#include <algorithm>

#include "planner.hpp"

namespace mekik::cpu {

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > (std::uint64_t{1} << 62))
    throw Error{MEKIK_E_NO_MEMORY, "the limits ask for more memory than can be counted"};
  return product;
}

void Planner::run() {
  check_limits();
  check();
  plan_.lanes = limits_.block_tokens % 16 == 0;
  plan_.weights.resize(raw_.n_tensors);
  plan_.buffer_of.assign(raw_.n_tensors, kNone);
  plan_.states.resize(raw_.n_tensors);
  plan_.slots.resize(raw_.n_tensors);
  find_outputs();
  for (std::uint32_t o = 0; o < raw_.n_ops; ++o) add(o);
  copy_outputs();
  place_buffers();
  place_weights();
  place_states();
  place_slots();
  count_scratch();
  identify();
}

void Planner::check_limits() const {
  if (limits_.struct_size < sizeof(mekik_limits)) throw Error{MEKIK_E_INVALID, "the limits are smaller than this backend knows them"};
  if (limits_.block_tokens == 0 || limits_.max_tokens == 0 || limits_.max_seqs == 0) throw Error{MEKIK_E_INVALID, "limits of 0 tokens"};
  if (limits_.max_tokens > (1u << 24) || limits_.max_seqs > (1u << 24) || limits_.max_rows > (1u << 24) ||
      limits_.block_tokens > (1u << 20))
    throw Error{MEKIK_E_INVALID, "limits of more than 2^24 tokens"};
  if (limits_.n_adapters != 0) throw Error{MEKIK_E_UNSUPPORTED, "the backend cpu has no adapters"};
}

void Planner::check() const {
  if (const std::string why = check_tensors(raw_); !why.empty()) throw Error{MEKIK_E_INVALID, why};
  for (std::uint32_t o = 0; o < raw_.n_ops; ++o)
    if (const std::string why = why_not(program_, o); !why.empty()) throw Error{MEKIK_E_UNSUPPORTED, describe_op(program_, o) + ": " + why};
  for (std::uint32_t i = 0; i < raw_.n_tensors; ++i) {
    const mekik_tensor& t = program_.tensor(i);
    const std::string name = "\"" + std::string{program_.name(i)} + "\"";
    if (t.role == MEKIK_ROLE_WEIGHT && t.form == nullptr) throw Error{MEKIK_E_INVALID, "weight " + name + " has no form"};
    if (t.role == MEKIK_ROLE_OUTPUT &&
        (!is_output_name(program_.name(i)) || (t.shape[0] != MEKIK_DIM_ROWS && t.shape[0] != MEKIK_DIM_SEQS)))
      throw Error{MEKIK_E_UNSUPPORTED, "output " + name + " is not known"};
    if (t.role == MEKIK_ROLE_INPUT && (t.rank != 1 || t.shape[0] != (program_.name(i) == "rows" ? MEKIK_DIM_ROWS : MEKIK_DIM_TOKENS)))
      throw Error{MEKIK_E_INVALID, "input " + name + " does not have its shape"};
  }
}

void Planner::find_outputs() {
  for (std::uint32_t o = 0; o < raw_.n_ops; ++o)
    for (std::uint32_t i = 0; i < program_.op(o).n_in; ++i) {
      const std::uint32_t t = program_.op(o).in[i];
      if (t == kNone || program_.tensor(root(t)).role != MEKIK_ROLE_OUTPUT) continue;
      if (std::find(plan_.copied_out.begin(), plan_.copied_out.end(), root(t)) == plan_.copied_out.end())
        plan_.copied_out.push_back(root(t));
    }
}

// ---- phases
PhasePlan& Planner::open(PhasePlan::Kind kind, std::int64_t domain_of_rows, std::uint32_t op) {
  PhasePlan& p = plan_.phases.emplace_back();
  p.kind = kind;
  p.domain = domain_of_rows;
  p.op = op;
  return p;
}

void Planner::read(std::uint32_t tensor, std::uint32_t op) {
  if (tensor == kNone) return;
  const std::uint32_t r = root(tensor);
  const std::uint32_t role = program_.tensor(r).role;
  if (role != MEKIK_ROLE_TEMP && role != MEKIK_ROLE_OUTPUT) return;
  if (plan_.buffer_of[r] == kNone)
    throw Error{MEKIK_E_INVALID, describe_op(program_, op) + ": reads " + std::string{program_.name(r)} + " before it is written"};
  use_buffer(plan_.buffer_of[r]);
}
void Planner::write(std::uint32_t tensor, std::uint32_t op) {
  const mekik_tensor& t = program_.tensor(tensor);
  const bool direct =
      t.role == MEKIK_ROLE_OUTPUT && std::find(plan_.copied_out.begin(), plan_.copied_out.end(), tensor) == plan_.copied_out.end();
  if (!written_.emplace(tensor, op).second)
    throw Error{MEKIK_E_INVALID, describe_op(program_, op) + ": writes " + std::string{program_.name(tensor)} + " again"};
  if (!direct) plan_.buffer_of[tensor] = new_buffer(times(times(plan_.max_rows(t.shape[0]), row_size(t)), sizeof(float)));
}

// ---- what a product reads
const WeightPlan& Planner::matrix(std::uint32_t tensor, std::uint64_t experts) {
  WeightPlan& w = plan_.weights[tensor];
  if (w.matrix && w.experts != experts)
    throw Error{MEKIK_E_UNSUPPORTED, "weight \"" + std::string{program_.name(tensor)} + "\" is one matrix here and a stack there"};
  if (!w.matrix) {
    mekik_form one = *program_.tensor(tensor).form;
    one.n = one.experts * one.n / experts;
    one.experts = 1;
    w.matrix = true;
    w.experts = static_cast<std::uint32_t>(experts);
    w.layout = make_layout(one);
  }
  return w;
}

void Planner::prepare(std::uint32_t x, Product& p) {
  const WeightPlan& w = matrix(p.weight);
  const Matrix& m = w.layout.matrix;
  if (!w.layout.inputs.empty()) p.gathered = gathered(x, p.weight);
  if (!integer(m)) return;
  for (const Prepared& q : quantised_)
    if (q.x == x && same_acts(q.weight, p.weight)) {
      p.acts = q.buffer;
      return;
    }
  open_rows(domain(x));
  const std::uint32_t b = new_buffer(Acts::bytes(m.blocks, plan_.max_rows(domain(x))));
  phase().rows.push_back({RowKind::quantise, kNone, x, b, p.gathered, p.weight, 1});
  phase().row_cost += m.k;
  if (p.gathered != kNone) use_buffer(p.gathered);
  touch(x);
  quantised_.push_back({x, p.weight, b});
  p.acts = b;
}
std::uint32_t Planner::gathered(std::uint32_t x, std::uint32_t weight) {
  for (const Prepared& g : gathered_)
    if (g.x == x && same_inputs(g.weight, weight)) return g.buffer;
  open_rows(domain(x));
  const std::uint32_t b = new_buffer(times(times(plan_.max_rows(domain(x)), row_size(program_.tensor(x))), sizeof(float)));
  phase().rows.push_back({RowKind::gather, kNone, x, b, kNone, weight, 1});
  touch(x);
  gathered_.push_back({x, weight, b});
  return b;
}

void Planner::add_linear(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  std::vector<Product> products;
  if (op.code == op::linear_glu) {
    products = {{op.in[1], op.in[2], op.out[0]}, {op.in[3], op.in[4], op.out[0]}};
  } else {
    for (std::uint32_t i = 0; i < op.n_out; ++i) products.push_back({op.in[1 + 2 * i], op.in[2 + 2 * i], op.out[i]});
  }
  read(op.in[0], o);
  for (Product& p : products) {
    prepare(op.in[0], p);
    use_vector(p.bias);
  }
  open(PhasePlan::Kind::linear, domain(op.in[0]), o).products = products;
  read(op.in[0], o);
  if (op.code == op::linear_add) read(op.in[3], o);
  for (const Product& p : products) {
    if (p.acts != kNone) use_buffer(p.acts);
    if (p.gathered != kNone) use_buffer(p.gathered);
  }
  for (std::uint32_t i = 0; i < op.n_out; ++i) write(op.out[i], o);
}

std::uint32_t Planner::rope_table(const mekik_op& op, std::uint32_t weight) {
  const auto dim = static_cast<std::uint64_t>(op.ints[0]);
  const auto magnitude = static_cast<float>(op.code == op::rope ? op.reals[0] : op.reals[1]);
  use_vector(weight);
  for (const Table& t : tables_)
    if (t.weight == weight && t.magnitude == magnitude) return t.buffer;
  const std::uint32_t b = new_buffer(times(times(limits_.max_tokens, dim), sizeof(float)));
  phase().rows.push_back({RowKind::rope_table, kNone, kNone, b, kNone, weight, magnitude});
  phase().row_cost += 16 * dim;
  tables_.push_back({weight, magnitude, b});
  return b;
}

void Planner::add_row(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const bool crosses = op.code == op::take_rows || op.code == op::put_rows || op.code == op::pool;
  const std::int64_t rows = op.n_out == 0 ? std::int64_t{MEKIK_DIM_TOKENS} : domain(op.out[0]);
  open_rows(rows, crosses);
  RowOp row{RowKind::op, o, op.in[0], kNone, kNone, kNone, 1};
  if (op.code == op::rope) row.buffer = rope_table(op, op.in[1]);
  if (op.code == op::norm_rope) row.buffer = rope_table(op, op.in[2]);
  if (row.buffer != kNone) use_buffer(row.buffer);
  const std::uint32_t table = op.code == op::embed ? 1 : op.code == op::embed_mix ? 2 : kNone;
  if (table != kNone) matrix(op.in[table]);
  for (std::uint32_t i = 0; i < op.n_in; ++i) {
    if (op.in[i] == kNone) continue;
    read(op.in[i], o);
    if (program_.tensor(op.in[i]).role == MEKIK_ROLE_WEIGHT && i != table) use_vector(op.in[i]);
  }
  phase().rows.push_back(row);
  const std::uint64_t size = op.n_out != 0 ? row_size(program_.tensor(op.out[0])) : row_size(program_.tensor(op.in[2]));
  if (op.code == op::moe_route || op.code == op::moe_route_mixer)
    phase().row_cost += row_size(program_.tensor(op.in[0])) * (2 + static_cast<std::uint64_t>(op.ints[0]));
  else if (op.code == op::moe_combine) phase().row_cost += row_size(program_.tensor(op.in[0]));
  else phase().row_cost += table != kNone ? times(16 * row_size(program_.tensor(op.in[0])), size) : size;
  for (std::uint32_t i = 0; i < op.n_out; ++i) write(op.out[i], o);
  if (op.code == op::mla_append) {
    StatePlan& s = plan_.states[op.in[2]];
    s.latent = true;
    s.dv = static_cast<std::uint32_t>(row_size(program_.tensor(op.in[0])));
  }
}

void Planner::add_attention(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  open(PhasePlan::Kind::attention, MEKIK_DIM_TOKENS, o);
  read(op.in[0], o);
  use_vector(op.in[2]);
  use_vector(op.in[3]);
  write(op.out[0], o);
  look_back(op.in[1], op.ints[2]);
  StatePlan& s = plan_.states[op.in[1]];
  const auto dv = static_cast<std::uint32_t>(op.ints[0]);
  if (s.latent || (s.dv != 0 && s.dv != dv))
    throw Error{MEKIK_E_INVALID, "state " + std::string{program_.name(op.in[1])} + " is read with two widths"};
  s.dv = dv;
}

// What of the past is read decides which blocks a batch must bring.
void Planner::look_back(std::uint32_t state, std::int64_t window) {
  std::uint64_t& back = plan_.look_back[program_.tensor(state).group];
  back = std::max(back, window == 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(window) - 1);
}

void Planner::add(std::uint32_t o) {
  switch (program_.op(o).code) {
    case op::linear:
    case op::linear_add:
    case op::linear_glu:
      return add_linear(o);
    case op::attention:
    case op::attention_chunk:
      return add_attention(o);
    case op::attention_full:
    case op::attention_near:
      return add_full(o);
    case op::conv_state:
    case op::ssm_scan:
    case op::gated_delta:
      return add_scan(o);
    case op::moe_linear:
      return add_experts(o);
    case op::mla_attention:
      return add_latent(o);
    default:
      return add_row(o);
  }
}

void Planner::copy_outputs() {
  for (const std::uint32_t t : plan_.copied_out) {
    if (plan_.buffer_of[t] == kNone) continue;
    open_rows(domain(t), true);
    phase().rows.push_back({RowKind::copy_out, kNone, t, kNone, kNone, kNone, 1});
    phase().row_cost += row_size(program_.tensor(t));
    use_buffer(plan_.buffer_of[t]);
  }
}

Plan::Plan(const mekik_program& program, const mekik_limits& limits, const Settings& settings) : limits_{limits} {
  Planner{program, limits, settings, *this}.run();
}

std::uint64_t Plan::max_rows(std::int64_t domain) const {
  return domain == MEKIK_DIM_TOKENS ? limits_.max_tokens : domain == MEKIK_DIM_SEQS ? limits_.max_seqs : limits_.max_rows;
}

}  // namespace mekik::cpu
