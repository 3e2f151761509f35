#include <mekik/head_form.hpp>

#include <string_view>

#include "ops/checker.hpp"

namespace mekik::vulkan {

namespace {

class Check : private Checker {
 public:
  using Checker::Checker;

  void run() const {
    counts();
    switch (op.code) {
      case op::embed:
        return embed();
      case op::linear:
        return linear();
      case op::linear_add:
        return linear_add();
      case op::linear_glu:
        return linear_glu();
      case op::kv_append:
        return append();
      case op::attention:
      case op::attention_chunk:
        return attention();
      case op::take_rows:
        return take();
      case op::put_rows:
        return put();
      case op::pool:
        return pool();
      case op::argmax:
        return argmax();
      default:
        return is_family(op.code) ? check_family(*this) : maps();
    }
  }

 private:
  void counts() const {
    const OpRow* row = op_row(op.code);
    need(row != nullptr, "there is no operation " + std::to_string(op.code));
    const bool known = (op.code >= op::embed && op.code <= op::put_rows) || (op.code >= op::glu && op.code <= op::linear_glu) ||
                       op.code == op::layer_norm || op.code == op::l2_norm || op.code == op::pool || op.code == op::attention_chunk ||
                       is_family(op.code);
    need(known, "this backend has no kernel for " + std::string{row->name});
    const bool list = op.code == op::linear;
    need(list ? op.n_out > 0 && op.n_in == 1 + 2 * op.n_out : op.n_in == row->min_in && op.n_out == row->n_out,
         "the numbers of operands and results are not those of " + std::string{row->name});
    need(op.n_ints == row->n_ints && op.n_reals == row->n_reals, "the numbers of attributes are not those of " + std::string{row->name});
    need((op.n_in == 0 || op.in != nullptr) && (op.n_out == 0 || op.out != nullptr) && (op.n_ints == 0 || op.ints != nullptr) &&
             (op.n_reals == 0 || op.reals != nullptr),
         "a list that is not there");
  }
  void product(const RowShape& x, std::uint32_t w, const RowShape& y) const {
    const WeightShape s = matrix(w);
    need(x.size() == s.k, named(w) + " takes rows of " + std::to_string(s.k) + " numbers, not " + std::to_string(x.size()));
    need(y.rows == x.rows && y.size() == s.n,
         named(w) + " gives rows of " + std::to_string(s.n) + " numbers, not " + std::to_string(y.size()));
    vector(w + 1, s.n);
  }
  void linear() const {
    const RowShape x = rows(0);
    for (std::uint32_t i = 0; i < op.n_out; ++i) product(x, 1 + 2 * i, out(i));
  }
  void linear_add() const {
    const RowShape x = rows(0), y = out(0), r = rows(3);
    product(x, 1, y);
    need(r.rows == y.rows && r.size() == y.size(), named(3) + " does not have the shape of the result");
  }
  void linear_glu() const {
    const RowShape x = rows(0), y = out(0);
    product(x, 1, y);
    product(x, 3, y);
    kind(op.ints[0], true);
  }
  void embed() const {
    const WeightShape w = matrix(1);
    ids(0, w.n);
    need(row_size(in(0)) == 1, named(0) + " must have one number a token");
    const RowShape y = out(0);
    need(y.rows == MEKIK_DIM_TOKENS && y.size() == w.k, "the result must be [tokens][width]");
  }
  void append() const {
    const RowShape k = rows(0), v = rows(1);
    const std::uint64_t heads = state(2);
    need(k.rows == MEKIK_DIM_TOKENS && v.rows == k.rows && k.outer == heads && v.outer == heads && k.last + v.last == last_size(in(2)),
         "k and v do not have the state's heads");
  }
  void attention() const {
    const RowShape q = rows(0), y = out(0);
    const std::int64_t dv = op.ints[0];
    need(dv > 0 && (op.ints[1] == 0 || op.ints[1] == 1) && op.ints[2] >= 0, "attributes out of range");
    need(op.code == op::attention || op.ints[2] > 0, "chunks of 0 rows");
    const std::uint64_t heads = state(1);
    need(last_size(in(1)) == q.last + static_cast<std::uint64_t>(dv) && q.outer % heads == 0, "the state does not fit the heads of q");
    need(q.rows == MEKIK_DIM_TOKENS && y.rows == q.rows && y.size() == q.outer * static_cast<std::uint64_t>(dv),
         "the result must be [tokens][heads][dv]");
    vector(2, q.outer);
    vector(3, q.outer);
  }
  void take() const {
    const RowShape x = rows(0), y = out(0);
    input(1, "rows");
    need(x.rows == MEKIK_DIM_TOKENS && y.rows == MEKIK_DIM_ROWS && y.size() == x.size(),
         "the result must be [rows] of the operand's shape");
  }
  void put() const {
    const RowShape x = rows(0), y = out(0);
    need(x.rows == MEKIK_DIM_TOKENS && y.rows == x.rows && y.size() == x.size(), "the result does not have the shape of the operand");
    if (!has(1)) return;
    const RowShape r = rows(1);
    input(2, "rows");
    need(r.rows == MEKIK_DIM_ROWS && r.size() == x.size(), named(1) + " does not have the shape of the rows");
  }
  void pool() const {
    const RowShape x = rows(0), y = out(0);
    need(x.rows == MEKIK_DIM_TOKENS && y.rows == MEKIK_DIM_SEQS && y.size() == x.size(),
         "the result must be [sequences] of the operand's shape");
    need(op.ints[0] >= 0 && op.ints[0] <= 5, "unknown pooling " + std::to_string(op.ints[0]));
  }
  void argmax() const {
    const RowShape x = rows(0), y = out(0);
    need(y.rows == x.rows && y.size() == x.outer, "the result must have one number for each of the operand's last size");
  }
  void addend(const RowShape& a, std::uint32_t i) const {
    if (in(i).role == MEKIK_ROLE_WEIGHT)
      return need(weight(i).size() == a.size() || weight(i).size() == a.outer || weight(i).size() == 1,
                  named(i) + " does not have the row's shape");
    const RowShape b = rows(i);
    need(b.rows == a.rows && (b.size() == a.size() || (b.last == 1 && (b.outer == a.outer || b.outer == 1))),
         named(i) + " does not fit the rows");
  }
  void rope(const RowShape& x, std::uint32_t table) const {
    const std::int64_t dim = op.ints[0];
    need(dim > 0 && dim % 2 == 0 && static_cast<std::uint64_t>(dim) <= x.last,
         "rotates " + std::to_string(dim) + " of " + std::to_string(x.last) + " columns");
    need(op.ints[1] == 0 || op.ints[1] == 1, "unknown pairs " + std::to_string(op.ints[1]));
    need(weight(table).size() == static_cast<std::uint64_t>(dim), named(table) + " must be a table [2][dim / 2]");
    input(table + 1, "positions");
    need(x.rows == MEKIK_DIM_TOKENS, "only rows of tokens have positions");
  }
  void maps() const {
    const RowShape x = rows(0);
    for (std::uint32_t i = 0; i < op.n_out; ++i) {
      const RowShape y = out(i);
      need(y.rows == x.rows && y.size() == x.size(), "the result does not have the shape of the operand");
    }
    switch (op.code) {
      case op::add:
      case op::mul:
        return addend(x, 1);
      case op::rms_norm:
        return vector(1, x.last, x.size());
      case op::layer_norm:
        vector(1, x.last, x.size());
        return vector(2, x.last, x.size());
      case op::act:
        return op.ints[0] == 10 || op.ints[0] == 11 ? void() : kind(op.ints[0], false);
      case op::cast:
        return need(op.ints[0] == MEKIK_F32 || op.ints[0] == MEKIK_F16 || op.ints[0] == MEKIK_BF16, "casts to F32, F16 and BF16 only");
      case op::rope:
        return rope(x, 1);
      case op::norm_rope:
        vector(1, x.last, x.size());
        return rope(x, 2);
      case op::add_norm:
        addend(x, 1);
        return vector(2, x.last, x.size());
      case op::glu: {
        const RowShape u = rows(1);
        need(u.rows == x.rows && u.size() == x.size(), named(1) + " does not have the shape of the gate");
        return kind(op.ints[0], true);
      }
      default:
        return;
    }
  }
};

}  // namespace

WeightShape weight_shape(const mekik_tensor& t) {
  if (t.form != nullptr) return {t.form->experts, t.form->n, t.form->k};
  const auto k = static_cast<std::uint64_t>(t.shape[t.rank - 1]);
  return {1, k != 0 ? whole_size(t) / k : 0, k};
}

KvForm kv_form(const char* scheme) {
  const std::string_view name = scheme != nullptr ? scheme : "";
  if (const HeadForm* head = head_form(name)) return head->bits == 8 ? KvForm::codes8 : KvForm::codes4;
  return name == "f32" ? KvForm::f32 : name == "f16" ? KvForm::f16 : name == "bf16" ? KvForm::bf16 : KvForm::none;
}

std::string why_not(const ProgramReader& program, std::uint32_t i) {
  try {
    Check{program, i}.run();
    return {};
  } catch (const Bad& bad) {
    return bad.why;
  }
}

}  // namespace mekik::vulkan
