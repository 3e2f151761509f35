#include "reference/check.hpp"

#include <mekik/head_form.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/checker.hpp"
#include "reference/ops.hpp"

namespace mekik::reference {

std::uint64_t Checker::state(std::uint32_t i, std::uint64_t size) const {
  const mekik_tensor& t = in(i);
  need(t.role == MEKIK_ROLE_STATE && t.rank == 3 && t.shape[0] < 0, named(i) + " must be a state [tokens][heads][numbers]");
  need(state_form(t.scheme).num != 0, "the state " + std::string{program.name(op.in[i])} + " is stored as \"" +
                                          (t.scheme != nullptr ? t.scheme : "") + "\"; this backend offers " + kKvFormNames);
  need(size == 0 || row_size(t) == size,
       named(i) + " has rows of " + std::to_string(row_size(t)) + " numbers, not " + std::to_string(size));
  return static_cast<std::uint64_t>(t.shape[1]);
}

void Checker::ids(std::uint32_t i, std::uint64_t bound) const {
  need(in(i).role == MEKIK_ROLE_INPUT || in(i).role == MEKIK_ROLE_TEMP, named(i) + " must be numbers of rows");
  const auto root = root_of(program, op.in[i]);
  if (program.tensor(root->tensor).role == MEKIK_ROLE_INPUT) return;
  for (std::uint32_t o = 0; o < index_; ++o) {
    const mekik_op& maker = program.op(o);
    if (maker.n_out == 0 || maker.n_in == 0 || maker.out == nullptr || maker.out[0] != root->tensor || maker.in[0] >= program.n_tensors())
      continue;
    const mekik_tensor& source = program.tensor(maker.in[0]);
    if (maker.code == op::argmax) return need(last_size(source) <= bound, named(i) + " may exceed what it counts");
    if (maker.code == op::moe_route || maker.code == op::moe_route_mixer)
      return need(row_size(source) <= bound, named(i) + " names more experts than there are");
  }
  need(false, named(i) + " is made by no moe_route or argmax before it");
}

namespace {

void check_counts(const mekik_op& o, const OpRow& row) {
  const auto counts = [](const char* what, std::uint32_t got, std::uint32_t wanted) {
    Checker::need(got == wanted, std::string{what} + ": " + std::to_string(got) + " where " + std::to_string(wanted) + " are defined");
  };
  Checker::need(o.n_in >= row.min_in && o.n_in <= std::max(row.max_in, row.min_in),
                "operands: " + std::to_string(o.n_in) + " are not defined");
  if (row.code == op::linear) Checker::need(o.n_in == 1 + 2 * o.n_out && o.n_out > 0, "operands: 1 + 2 for each result are defined");
  else counts("results", o.n_out, row.n_out);
  counts("whole attributes", o.n_ints, row.n_ints);
  counts("real attributes", o.n_reals, row.n_reals);
  Checker::need((o.n_in == 0 || o.in != nullptr) && (o.n_out == 0 || o.out != nullptr) && (o.n_ints == 0 || o.ints != nullptr) &&
                    (o.n_reals == 0 || o.reals != nullptr),
                "a list that is not there");
}

void check_kind(std::int64_t kind, bool gated) {
  Checker::need((kind >= kNone && kind <= kSoftplus) || (gated ? kind == kSwigluClamped : kind == kSqrt || kind == kExp),
                "unknown activation " + std::to_string(kind));
}

// b of add and mul: rows of a's shape, rows with last size 1, a weight of a's row shape, of a number for each outer row, or of one number.
void check_addend(const Checker& c, const RowShape& a, std::uint32_t i) {
  if (c.in(i).role == MEKIK_ROLE_WEIGHT)
    return Checker::need(c.weight(i).size() == a.size() || c.weight(i).size() == a.outer || c.weight(i).size() == 1,
                         c.named(i) + " does not have the row's shape");
  const RowShape b = c.rows(i);
  Checker::need(b.rows == a.rows && (b.size() == a.size() || (b.last == 1 && (b.outer == a.outer || b.outer == 1))),
                c.named(i) + " does not fit the rows");
}

void check_product(const Checker& c, const RowShape& x, std::uint32_t w, const RowShape& y) {
  const WeightShape shape = c.weight(w);
  Checker::need(x.size() == shape.k,
                c.named(w) + " takes rows of " + std::to_string(shape.k) + " numbers, not " + std::to_string(x.size()));
  Checker::need(y.rows == x.rows && y.size() == shape.rows(),
                c.named(w) + " gives rows of " + std::to_string(shape.rows()) + " numbers, not " + std::to_string(y.size()));
  c.vector(w + 1, shape.rows());
}

void check_rope(const Checker& c, const RowShape& x, std::uint32_t table, std::int64_t dim, std::int64_t pairs) {
  Checker::need(dim > 0 && dim % 2 == 0 && static_cast<std::uint64_t>(dim) <= x.last,
                "rotates " + std::to_string(dim) + " of " + std::to_string(x.last) + " columns");
  Checker::need(pairs == 0 || pairs == 1, "unknown pairs " + std::to_string(pairs));
  Checker::need(c.weight(table).size() == static_cast<std::uint64_t>(dim), c.named(table) + " must be a table [2][dim / 2]");
  const mekik_tensor& positions = c.in(table + 1);
  Checker::need(positions.role == MEKIK_ROLE_INPUT && positions.name != nullptr && std::strcmp(positions.name, "positions") == 0,
                c.named(table + 1) + " must be the input \"positions\"");
  Checker::need(x.rows == MEKIK_DIM_TOKENS, "only rows of tokens have positions");
}

// q, k, v and the state they go to, of qkv_rope_append; the state's numbers are d + dv for each of its heads.
void check_qkv(const Checker& c) {
  const RowShape x = c.rows(0), q = c.out(0);
  check_product(c, x, 1, q);
  const std::uint64_t heads = c.state(11, 0), d = q.last, dv = last_size(c.in(11)) - d;
  Checker::need(last_size(c.in(11)) > d && q.outer % heads == 0, "the state does not fit the heads");
  check_product(c, x, 3, {x.rows, heads, d});
  check_product(c, x, 5, {x.rows, heads, dv});
  c.vector(7, d, q.size());
  c.vector(8, d, heads * d);
  check_rope(c, q, 9, c.op.ints[0], c.op.ints[1]);
}

}  // namespace

void check_state_ops(const Checker& c) {
  if (c.op.code == op::kv_append) {
    const RowShape k = c.rows(0), v = c.rows(1);
    const std::uint64_t heads = c.state(2, k.size() + v.size());
    Checker::need(k.rows == MEKIK_DIM_TOKENS && v.rows == k.rows && k.outer == heads && v.outer == heads,
                  "k and v do not have the state's heads");
    return;
  }
  const RowShape q = c.rows(0), y = c.out(0);
  const std::int64_t dv = c.op.ints[0];
  Checker::need(dv > 0 && c.op.ints[1] >= 0 && c.op.ints[1] <= 1 && c.op.ints[2] >= 0, "attributes out of range");
  const std::uint64_t heads = c.state(1, 0);
  Checker::need(last_size(c.in(1)) == q.last + static_cast<std::uint64_t>(dv) && q.outer % heads == 0,
                "the state does not fit the heads of q");
  Checker::need(q.rows == MEKIK_DIM_TOKENS && y.rows == q.rows && y.size() == q.outer * static_cast<std::uint64_t>(dv),
                "the result must be [tokens][heads][dv]");
  Checker::need(c.op.code == op::attention || c.op.ints[2] > 0, "chunks of 0 rows");
  c.vector(2, q.outer);
  c.vector(3, q.outer);
}

namespace {

// Results with the rows and the shape of operand 0.
void check_maps(const Checker& c) {
  const RowShape x = c.rows(0), y = c.out(0);
  const mekik_op& o = c.op;
  Checker::need(y.rows == x.rows && y.size() == x.size(), "the result does not have the shape of the operand");
  switch (o.code) {
    case op::add:
    case op::mul:
      return check_addend(c, x, 1);
    case op::rms_norm:
      return c.vector(1, x.last, x.size());
    case op::act:
      return check_kind(o.ints[0], false);
    case op::cast:
      return Checker::need(is_storable(static_cast<std::uint32_t>(o.ints[0])), "casts to F32, F16 and BF16 only");
    case op::rope:
      return check_rope(c, x, 1, o.ints[0], o.ints[1]);
    case op::norm_rope:
      c.vector(1, x.last, x.size());
      return check_rope(c, x, 2, o.ints[0], o.ints[1]);
    case op::softcap:
      return Checker::need(o.reals[0] != 0, "a cap of 0");
    case op::glu:
      check_kind(o.ints[0], true);
      return Checker::need(c.rows(1).rows == x.rows && c.rows(1).size() == x.size(), "gate and up do not have the same shape");
    case op::add_norm:
      check_addend(c, x, 1);
      c.vector(2, x.last, x.size());
      return Checker::need(c.out(1).rows == x.rows && c.out(1).size() == x.size(), "the result does not have the shape of the operand");
    case op::put_rows: {
      Checker::need(o.ints[0] == 0 || o.ints[0] == 1, "add must be 0 or 1");
      if (!c.has(1)) return;
      Checker::need(c.rows(1).size() == x.size() && c.rows(1).rows == c.rows(2).rows, "the new rows do not fit");
      return Checker::need(c.in(2).role == MEKIK_ROLE_INPUT, "rows must be an input");
    }
    default:
      return;
  }
}

void check_basic(const Checker& c) {
  const mekik_op& o = c.op;
  switch (o.code) {
    case op::embed: {
      const WeightShape w = c.weight(1);
      c.ids(0, w.rows());
      return Checker::need(c.out(0).size() == w.k && c.out(0).rows == c.rows(0).rows && c.rows(0).size() == 1,
                           "the result must be a row of the weight for each id");
    }
    case op::linear:
      for (std::uint32_t i = 0; i < o.n_out; ++i) check_product(c, c.rows(0), 1 + 2 * i, c.out(i));
      return;
    case op::linear_add:
      check_product(c, c.rows(0), 1, c.out(0));
      return Checker::need(c.rows(3).rows == c.out(0).rows && c.rows(3).size() == c.out(0).size(),
                           "what is added does not have the result's shape");
    case op::linear_glu:
      check_kind(o.ints[0], true);
      check_product(c, c.rows(0), 1, c.out(0));
      return check_product(c, c.rows(0), 3, c.out(0));
    case op::kv_append:
    case op::attention:
      return check_state_ops(c);
    case op::qkv_rope_append:
      return check_qkv(c);
    case op::take_rows:
      Checker::need(c.in(1).role == MEKIK_ROLE_INPUT, "rows must be an input");
      return Checker::need(c.out(0).size() == c.rows(0).size() && c.out(0).rows == c.rows(1).rows, "the result must be the rows taken");
    case op::argmax:
      return Checker::need(c.out(0).rows == c.rows(0).rows && c.out(0).size() == c.rows(0).outer,
                           "the result must be one number for each list");
    case op::moe_ffn:
      return check_family(c);
    default:
      return check_maps(c);
  }
}

}  // namespace

StateForm state_form(const char* scheme) {
  const std::string_view name = scheme != nullptr ? scheme : "";
  if (const HeadForm* head = head_form(name)) return {MEKIK_I8, head};
  const std::uint32_t none = 0, f16 = MEKIK_F16, bf16 = MEKIK_BF16, f32 = MEKIK_F32;
  return {name == "f16" ? f16 : name == "bf16" ? bf16 : name == "f32" ? f32 : none};
}

std::string check_op(const ProgramReader& program, std::uint32_t i) {
  try {
    const mekik_op& o = program.op(i);
    const OpRow* row = op_row(o.code);
    Checker::need(row != nullptr, "unknown operation");
    check_counts(o, *row);
    const Checker checker{program, i};
    for (std::uint32_t j = 0; j < o.n_in; ++j)
      Checker::need(o.in[j] == MEKIK_NONE || o.in[j] < program.n_tensors(), "an operand that is not in the program");
    if (o.code < op::layer_norm) check_basic(checker);
    else check_family(checker);
    return {};
  } catch (const Bad& bad) {
    return bad.why;
  }
}

std::uint64_t scratch_floats(const ProgramReader& program, std::uint32_t i, const ScratchLimits& limits) {
  const Checker c{program, i};
  switch (program.op(i).code) {
    case op::linear_glu:
      return 2 * limits.rows * c.weight(1).rows();
    case op::qkv_rope_append:
      return limits.rows * row_size(c.in(11));
    case op::moe_ffn:
      return limits.rows * static_cast<std::uint64_t>(program.op(i).ints[0]) * (2 + 2 * c.weight(3).n + c.weight(7).n);
    case op::mla_attention:
      return c.weight(2).size() + c.weight(3).size();
    case op::conv_state:
      return limits.seqs * whole_size(c.in(3));
    case op::ssm_scan:
      return limits.seqs * whole_size(c.in(6));
    case op::gated_delta:
      return limits.seqs * whole_size(c.in(5));
    default:
      return 0;
  }
}

}  // namespace mekik::reference
