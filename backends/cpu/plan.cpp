#include "plan.hpp"

#include <openssl/sha.h>

#include <algorithm>
#include <cstring>

namespace mekik::cpu {

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > (std::uint64_t{1} << 62))
    throw Error{MEKIK_E_NO_MEMORY, "the limits ask for more memory than can be counted"};
  return product;
}

// Builds a Plan in program order.
class Planner {
 public:
  Planner(const mekik_program& raw, const mekik_limits& limits, const Settings& settings, Plan& plan)
      : raw_{raw}, program_{raw}, limits_{limits}, settings_{settings}, plan_{plan} {}
  void run() {
    check();
    plan_.lanes = limits_.block_tokens % 16 == 0;
    plan_.weights.resize(raw_.n_tensors);
    plan_.buffer_of.assign(raw_.n_tensors, kNone);
    plan_.states.resize(raw_.n_tensors);
    find_outputs();
    for (std::uint32_t o = 0; o < raw_.n_ops; ++o) add(o);
    copy_outputs();
    place_buffers();
    place_weights();
    place_states();
    count_scratch();
    identify();
  }

 private:
  void check() const {
    if (limits_.struct_size < sizeof(mekik_limits)) throw Error{MEKIK_E_INVALID, "the limits are smaller than this backend knows them"};
    if (limits_.block_tokens == 0 || limits_.max_tokens == 0 || limits_.max_seqs == 0) throw Error{MEKIK_E_INVALID, "limits of 0 tokens"};
    if (limits_.max_tokens > (1u << 24) || limits_.max_seqs > (1u << 24) || limits_.max_rows > (1u << 24) ||
        limits_.block_tokens > (1u << 20))
      throw Error{MEKIK_E_INVALID, "limits of more than 2^24 tokens"};
    if (limits_.n_adapters != 0) throw Error{MEKIK_E_UNSUPPORTED, "the backend cpu has no adapters"};
    if (const std::string why = check_tensors(raw_); !why.empty()) throw Error{MEKIK_E_INVALID, why};
    for (std::uint32_t o = 0; o < raw_.n_ops; ++o)
      if (const std::string why = why_not(program_, o); !why.empty())
        throw Error{MEKIK_E_UNSUPPORTED, describe_op(program_, o) + ": " + why};
    for (std::uint32_t i = 0; i < raw_.n_tensors; ++i) {
      const mekik_tensor& t = program_.tensor(i);
      const std::string name = "\"" + std::string{program_.name(i)} + "\"";
      if (t.role == MEKIK_ROLE_WEIGHT && t.form == nullptr) throw Error{MEKIK_E_INVALID, "weight " + name + " has no form"};
      if (t.role == MEKIK_ROLE_SLOT) throw Error{MEKIK_E_UNSUPPORTED, "slot " + name + ": the backend cpu has no recurrent states"};
      if (t.role == MEKIK_ROLE_OUTPUT &&
          (!is_output_name(program_.name(i)) || (t.shape[0] != MEKIK_DIM_ROWS && t.shape[0] != MEKIK_DIM_SEQS)))
        throw Error{MEKIK_E_UNSUPPORTED, "output " + name + " is not known"};
      if (t.role == MEKIK_ROLE_INPUT && (t.rank != 1 || t.shape[0] != (program_.name(i) == "rows" ? MEKIK_DIM_ROWS : MEKIK_DIM_TOKENS)))
        throw Error{MEKIK_E_INVALID, "input " + name + " does not have its shape"};
    }
  }

  std::uint32_t root(std::uint32_t tensor) const { return root_of(program_, tensor)->tensor; }
  std::int64_t domain(std::uint32_t tensor) const { return program_.tensor(tensor).shape[0]; }

  void find_outputs() {
    for (std::uint32_t o = 0; o < raw_.n_ops; ++o)
      for (std::uint32_t i = 0; i < program_.op(o).n_in; ++i) {
        const std::uint32_t t = program_.op(o).in[i];
        if (t == kNone || program_.tensor(root(t)).role != MEKIK_ROLE_OUTPUT) continue;
        if (std::find(plan_.copied_out.begin(), plan_.copied_out.end(), root(t)) == plan_.copied_out.end())
          plan_.copied_out.push_back(root(t));
      }
  }

  // ---- phases
  PhasePlan& phase() { return plan_.phases.back(); }
  std::uint32_t now() const { return static_cast<std::uint32_t>(plan_.phases.size() - 1); }
  void open_rows(std::int64_t domain_of_rows, bool fresh = false) {
    if (!fresh && !plan_.phases.empty() && phase().kind == PhasePlan::Kind::rows && phase().domain == domain_of_rows) return;
    plan_.phases.push_back({PhasePlan::Kind::rows, domain_of_rows, {}, 0, kNone, {}});
  }
  std::uint32_t new_buffer(std::uint64_t bytes) {
    plan_.buffers.push_back({round_up(bytes, 64), 0, now(), now()});
    return static_cast<std::uint32_t>(plan_.buffers.size() - 1);
  }
  void use_buffer(std::uint32_t b) { plan_.buffers[b].last = std::max(plan_.buffers[b].last, now()); }

  void read(std::uint32_t tensor, std::uint32_t op) {
    if (tensor == kNone) return;
    const std::uint32_t r = root(tensor);
    const std::uint32_t role = program_.tensor(r).role;
    if (role != MEKIK_ROLE_TEMP && role != MEKIK_ROLE_OUTPUT) return;
    if (plan_.buffer_of[r] == kNone)
      throw Error{MEKIK_E_INVALID, describe_op(program_, op) + ": reads " + std::string{program_.name(r)} + " before it is written"};
    use_buffer(plan_.buffer_of[r]);
  }
  void write(std::uint32_t tensor, std::uint32_t op) {
    const mekik_tensor& t = program_.tensor(tensor);
    const bool direct =
        t.role == MEKIK_ROLE_OUTPUT && std::find(plan_.copied_out.begin(), plan_.copied_out.end(), tensor) == plan_.copied_out.end();
    if (!written_.emplace(tensor, op).second)
      throw Error{MEKIK_E_INVALID, describe_op(program_, op) + ": writes " + std::string{program_.name(tensor)} + " again"};
    if (!direct) plan_.buffer_of[tensor] = new_buffer(times(times(plan_.max_rows(t.shape[0]), row_size(t)), sizeof(float)));
  }
  void use_vector(std::uint32_t tensor) {
    if (tensor != kNone) plan_.weights[tensor].vector = true;
  }

  // ---- what a product reads
  bool same_inputs(std::uint32_t a, std::uint32_t b) const {
    const auto &x = plan_.weights[a].layout.inputs, &y = plan_.weights[b].layout.inputs;
    return x == y;
  }
  const WeightPlan& matrix(std::uint32_t tensor) {
    WeightPlan& w = plan_.weights[tensor];
    if (!w.matrix) {
      w.matrix = true;
      w.layout = make_layout(*program_.tensor(tensor).form);
    }
    return w;
  }
  void prepare(std::uint32_t x, Product& p) {
    const WeightPlan& w = matrix(p.weight);
    const Matrix& m = w.layout.matrix;
    const bool integer = !settings_.exact && m.integer && settings_.kernels->int_gemm(m) != nullptr;
    if (!w.layout.inputs.empty()) p.gathered = gathered(x, p.weight);
    if (!integer) return;
    for (const Prepared& q : quantised_)
      if (q.x == x && same_inputs(q.weight, p.weight) && plan_.weights[q.weight].layout.matrix.act_outlier == m.act_outlier) {
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
  std::uint32_t gathered(std::uint32_t x, std::uint32_t weight) {
    for (const Prepared& g : gathered_)
      if (g.x == x && same_inputs(g.weight, weight)) return g.buffer;
    open_rows(domain(x));
    const std::uint32_t b = new_buffer(times(times(plan_.max_rows(domain(x)), row_size(program_.tensor(x))), sizeof(float)));
    phase().rows.push_back({RowKind::gather, kNone, x, b, kNone, weight, 1});
    touch(x);
    gathered_.push_back({x, weight, b});
    return b;
  }
  void touch(std::uint32_t x) {
    if (const std::uint32_t b = plan_.buffer_of[root(x)]; b != kNone) use_buffer(b);
  }

  void add_linear(std::uint32_t o) {
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
    plan_.phases.push_back({PhasePlan::Kind::linear, domain(op.in[0]), {}, 0, o, products});
    read(op.in[0], o);
    if (op.code == op::linear_add) read(op.in[3], o);
    for (const Product& p : products) {
      if (p.acts != kNone) use_buffer(p.acts);
      if (p.gathered != kNone) use_buffer(p.gathered);
    }
    for (std::uint32_t i = 0; i < op.n_out; ++i) write(op.out[i], o);
  }

  std::uint32_t rope_table(const mekik_op& op, std::uint32_t weight) {
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

  void add_row(std::uint32_t o) {
    const mekik_op& op = program_.op(o);
    const bool crosses = op.code == op::take_rows || op.code == op::put_rows || op.code == op::pool;
    const std::int64_t rows = op.code == op::kv_append ? std::int64_t{MEKIK_DIM_TOKENS} : domain(op.out[0]);
    open_rows(rows, crosses);
    RowOp row{RowKind::op, o, op.in[0], kNone, kNone, kNone, 1};
    if (op.code == op::rope) row.buffer = rope_table(op, op.in[1]);
    if (op.code == op::norm_rope) row.buffer = rope_table(op, op.in[2]);
    if (row.buffer != kNone) use_buffer(row.buffer);
    if (op.code == op::embed) matrix(op.in[1]);
    for (std::uint32_t i = 0; i < op.n_in; ++i) {
      if (op.in[i] == kNone) continue;
      read(op.in[i], o);
      if (program_.tensor(op.in[i]).role == MEKIK_ROLE_WEIGHT && op.code != op::embed) use_vector(op.in[i]);
    }
    phase().rows.push_back(row);
    phase().row_cost +=
        (op.n_out != 0 ? row_size(program_.tensor(op.out[0])) : row_size(program_.tensor(op.in[2]))) * (op.code == op::embed ? 16 : 1);
    for (std::uint32_t i = 0; i < op.n_out; ++i) write(op.out[i], o);
  }

  void add(std::uint32_t o) {
    const mekik_op& op = program_.op(o);
    if (op.code == op::linear || op.code == op::linear_add || op.code == op::linear_glu) return add_linear(o);
    if (op.code != op::attention) return add_row(o);
    plan_.phases.push_back({PhasePlan::Kind::attention, MEKIK_DIM_TOKENS, {}, 0, o, {}});
    read(op.in[0], o);
    use_vector(op.in[2]);
    use_vector(op.in[3]);
    write(op.out[0], o);
    const std::uint32_t group = program_.tensor(op.in[1]).group;
    const std::uint64_t window = static_cast<std::uint64_t>(op.ints[2]);
    plan_.look_back[group] = std::max(plan_.look_back[group], window == 0 ? ~std::uint64_t{0} : window - 1);
    state(op.in[1], static_cast<std::uint32_t>(op.ints[0]));
  }
  void state(std::uint32_t tensor, std::uint32_t dv) {
    StatePlan& s = plan_.states[tensor];
    if (s.heads != 0 && s.dv != dv)
      throw Error{MEKIK_E_INVALID, "state " + std::string{program_.name(tensor)} + " is read with two widths"};
    s.dv = dv;
    s.heads = 1;
  }

  void copy_outputs() {
    for (const std::uint32_t t : plan_.copied_out) {
      if (plan_.buffer_of[t] == kNone) continue;
      open_rows(domain(t), true);
      phase().rows.push_back({RowKind::copy_out, kNone, t, kNone, kNone, kNone, 1});
      phase().row_cost += row_size(program_.tensor(t));
      use_buffer(plan_.buffer_of[t]);
    }
  }

  // ---- memory
  void place_buffers() {
    std::vector<const Buffer*> alive;
    for (Buffer& b : plan_.buffers) {  // in order of their first phase
      std::erase_if(alive, [&](const Buffer* other) { return other->last < b.first; });
      std::sort(alive.begin(), alive.end(), [](const Buffer* x, const Buffer* y) { return x->offset < y->offset; });
      std::uint64_t at = 0;
      for (const Buffer* other : alive) {
        if (other->offset >= at + b.bytes) break;
        at = std::max(at, other->offset + other->bytes);
      }
      b.offset = at;
      alive.push_back(&b);
      plan_.buffer_bytes = std::max(plan_.buffer_bytes, at + b.bytes);
    }
  }

  void place_weights() {
    for (std::uint32_t i = 0; i < raw_.n_tensors; ++i) {
      const mekik_tensor& t = program_.tensor(i);
      if (t.role != MEKIK_ROLE_WEIGHT) continue;
      WeightPlan& w = plan_.weights[i];
      if (const std::string why = why_not_packed(*t.form); !why.empty())
        throw Error{MEKIK_E_UNSUPPORTED, "weight \"" + std::string{program_.name(i)} + "\": " + why};
      w.form = *t.form;
      w.form.table = w.form.tensor_scale = nullptr;
      w.form.k_perm = w.form.kept_k = nullptr;
      w.form.owner = nullptr;
      if (w.matrix) {
        w.matrix_offset = plan_.weight_bytes;
        plan_.weight_bytes += round_up(times(w.layout.matrix.stripe_bytes, w.layout.matrix.stripes), 64);
      }
      if (w.vector) {
        w.vector_size = times(t.form->n, t.form->k);
        w.vector_offset = plan_.weight_bytes;
        plan_.weight_bytes += round_up(times(w.vector_size, sizeof(float)), 64);
      }
      const std::uint64_t stages = w.matrix ? settings_.threads : 1;
      plan_.load_bytes = std::max(plan_.load_bytes, times(staging_bytes(*t.form), stages));
    }
  }

  void place_states() {
    for (std::uint32_t i = 0; i < raw_.n_tensors; ++i) {
      const mekik_tensor& t = program_.tensor(i);
      if (t.role != MEKIK_ROLE_STATE) continue;
      StatePlan& s = plan_.states[i];
      if (t.rank != 3 || kv_number(t.scheme) == Num::none)
        throw Error{MEKIK_E_UNSUPPORTED, "state \"" + std::string{program_.name(i)} + "\" cannot be stored"};
      s.num = kv_number(t.scheme);
      s.heads = static_cast<std::uint32_t>(t.shape[1]);
      const auto both = static_cast<std::uint32_t>(t.shape[2]);
      for (std::uint32_t o = 0; o < raw_.n_ops; ++o) {
        const mekik_op& op = program_.op(o);
        if (op.code != op::kv_append || op.in[2] != i) continue;
        const auto dv = static_cast<std::uint32_t>(last_size(program_.tensor(op.in[1])));
        if (s.dv != 0 && s.dv != dv) throw Error{MEKIK_E_INVALID, describe_op(program_, o) + ": attention reads values of another width"};
        s.dv = dv;
      }
      s.d = both - s.dv;
      s.dvp = static_cast<std::uint32_t>(round_up(s.dv, 16));
      const std::uint64_t e = num_bytes(s.num), tokens = limits_.block_tokens;
      s.k_head = round_up(times(tokens * s.d, e), 64);
      s.v_head = round_up(times(tokens * s.dvp, e), 64);
      s.v_offset = times(s.k_head, s.heads);
      std::uint64_t& block = plan_.block_bytes[t.group];
      s.offset = block;
      block += s.v_offset + times(s.v_head, s.heads);
      if (block > (std::uint64_t{1} << 40)) throw Error{MEKIK_E_NO_MEMORY, "blocks of more than 2^40 bytes"};
    }
    for (std::uint32_t g = 0; g < raw_.n_groups; ++g) plan_.kv_bytes += times(plan_.block_bytes[g], limits_.n_blocks[g]);
  }

  void count_scratch() {
    std::uint64_t floats = 2 * kColumnChunk * 16 + kPanelColumns * 16;
    for (const PhasePlan& p : plan_.phases) {
      if (p.kind != PhasePlan::Kind::attention) continue;
      const StatePlan& s = plan_.states[program_.op(p.op).in[1]];
      floats = std::max<std::uint64_t>(floats, attention_scratch_floats(s.d, s.dvp));
    }
    for (std::uint32_t o = 0; o < raw_.n_ops; ++o)
      if (program_.op(o).code == op::kv_append)
        floats = std::max<std::uint64_t>(floats, row_size(program_.tensor(program_.op(o).in[2])) + 64);
    plan_.scratch_bytes = times(round_up(floats * sizeof(float), 128), settings_.threads);
    plan_.batch_bytes = round_up(times(limits_.max_tokens, 2 * sizeof(std::uint32_t)) + times(limits_.max_rows, sizeof(std::uint32_t)), 64);
  }

  void identify() {
    std::string layout =
        "mekik cpu state 1; block_tokens " + std::to_string(limits_.block_tokens) + "; lanes " + std::to_string(plan_.lanes);
    for (std::uint32_t i = 0; i < raw_.n_tensors; ++i) {
      const mekik_tensor& t = program_.tensor(i);
      if (t.role != MEKIK_ROLE_STATE) continue;
      const StatePlan& s = plan_.states[i];
      layout += "; group " + std::to_string(t.group) + " " + t.scheme + " " + std::to_string(s.heads) + " " + std::to_string(s.d) + " " +
                std::to_string(s.dv);
    }
    // Raise the number with every change of a kernel that can change a bit.
    const std::string numeric = std::string{"mekik cpu kernels 3; isa "} + settings_.kernels->name + "; math " +
                                (settings_.exact ? "exact" : "quantized") + "; " + layout;
    SHA256(reinterpret_cast<const unsigned char*>(layout.data()), layout.size(), plan_.layout_id);
    SHA256(reinterpret_cast<const unsigned char*>(numeric.data()), numeric.size(), plan_.numeric_id);
  }

  struct Prepared {
    std::uint32_t x, weight, buffer;
  };
  struct Table {
    std::uint32_t weight;
    float magnitude;
    std::uint32_t buffer;
  };
  const mekik_program& raw_;
  ProgramReader program_;
  const mekik_limits& limits_;
  const Settings& settings_;
  Plan& plan_;
  std::map<std::uint32_t, std::uint32_t> written_;
  std::vector<Prepared> quantised_, gathered_;
  std::vector<Table> tables_;
};

Plan::Plan(const mekik_program& program, const mekik_limits& limits, const Settings& settings) : limits_{limits} {
  Planner{program, limits, settings, *this}.run();
}

std::uint64_t Plan::max_rows(std::int64_t domain) const {
  return domain == MEKIK_DIM_TOKENS ? limits_.max_tokens : domain == MEKIK_DIM_SEQS ? limits_.max_seqs : limits_.max_rows;
}

}  // namespace mekik::cpu
