#include "program/verify_op.hpp"

#include <utility>

namespace mekik::program {

namespace {

struct Fault {
  std::string why;
};

struct Rows {
  std::int64_t first, outer, last;
  std::int64_t size() const { return outer * last; }
  bool like(const Rows& o) const { return first == o.first && size() == o.size(); }
};

struct Weight {
  std::int64_t experts = 1, n = 1, k = 1;
  std::int64_t size() const { return experts * n * k; }
};

void need(bool holds, const char* why) {
  if (!holds) throw Fault{why};
}

class Shapes {
 public:
  Shapes(const Program& program, const Op& op) : p_{program}, op_{op} {}

  void check() const {
    switch (op_.code) {
      case op_embed:
        return need(weight(1).k == out(0).size() && rows(0).first == out(0).first && rows(0).size() == 1, "a row of w for each id");
      case op_embed_mix:
        return need(rows(0).size() == rows(1).size() && weight(2).k == out(0).size(), "ids, mix and w");
      case op_linear:
        for (std::size_t i = 0; i < op_.out.size(); ++i) product(rows(0), 1 + 2 * i, out(i));
        return;
      case op_linear_add:
        product(rows(0), 1, out(0));
        return need(rows(3).like(out(0)), "r must have the result's shape");
      case op_linear_glu:
        product(rows(0), 1, out(0));
        product(rows(0), 3, out(0));
        return kind(op_.ints[0], true);
      case op_take_rows:
        return need(out(0).size() == rows(0).size() && out(0).first == rows(1).first, "the rows taken");
      case op_put_rows:
        return need(!has(1) || rows(1).size() == rows(0).size(), "y must have the shape of x");
      case op_argmax:
        return need(out(0).size() == rows(0).outer, "one number for each list");
      case op_concat:
        return need(rows(0).first == rows(1).first && out(0).first == rows(0).first && rows(0).outer == rows(1).outer &&
                        out(0).size() == rows(0).size() + rows(1).size(),
                    "the columns of both");
      case op_mean:
        return need(out(0).first == rows(0).first && out(0).size() == rows(0).outer, "one number for each list");
      case op_pool:
        return need(out(0).first == MEKIK_DIM_SEQS && out(0).size() == rows(0).size(), "one row a sequence");
      case op_kv_append:
      case op_attention:
      case op_attention_chunk:
      case op_attention_full:
      case op_attention_near:
      case op_mla_append:
      case op_mla_attention:
      case op_qkv_rope_append:
        return attention();
      case op_moe_route:
      case op_moe_linear:
      case op_moe_combine:
      case op_moe_scale:
      case op_moe_spread:
      case op_moe_route_mixer:
      case op_moe_ffn:
        return experts();
      case op_conv_state:
      case op_ssm_scan:
      case op_gated_delta:
        return recurrent();
      default:
        return map();
    }
  }

 private:
  bool has(std::size_t i) const { return op_.in[i] != MEKIK_NONE; }
  const Tensor& tensor(std::size_t i) const {
    need(has(i), "an operand is missing");
    return p_.tensors[op_.in[i]];
  }
  static Rows row_shape(const Tensor& t) {
    Rows out{t.shape[0], 1, 1};
    if (t.shape.size() > 1) out.last = t.shape.back();
    for (std::size_t i = 1; i + 1 < t.shape.size(); ++i) out.outer *= t.shape[i];
    return out;
  }
  Rows rows(std::size_t i) const {
    const Tensor& t = tensor(i);
    need(t.role == MEKIK_ROLE_TEMP || t.role == MEKIK_ROLE_INPUT, "an operand must be rows");
    return row_shape(t);
  }
  Rows out(std::size_t i) const { return row_shape(p_.tensors[op_.out[i]]); }
  Weight weight(std::size_t i) const {
    const Tensor& t = tensor(i);
    need(t.role == MEKIK_ROLE_WEIGHT, "an operand must be a weight");
    const WeightRecipe& recipe = p_.weights[static_cast<std::size_t>(t.weight)];
    return {static_cast<std::int64_t>(recipe.experts), static_cast<std::int64_t>(recipe.n), static_cast<std::int64_t>(recipe.k)};
  }
  void vector(std::size_t i, std::int64_t size, std::int64_t other = -1) const {
    if (has(i)) need(weight(i).size() == size || weight(i).size() == other, "a vector of another size");
  }
  static void kind(std::int64_t code, bool glu) { need((code >= 0 && code <= 9) || (glu && code == 16), "an unknown activation"); }

  void product(const Rows& x, std::size_t w, const Rows& y) const {
    const Weight shape = weight(w);
    need(shape.experts == 1 && shape.k == x.size(), "the row does not meet the weight's inputs");
    need(y.first == x.first && y.size() == shape.n, "the result is not the weight's outputs");
    vector(w + 1, shape.n);
  }
  void rope(const Rows& x, std::size_t table) const {
    const std::int64_t dim = op_.ints[0];
    need(dim > 0 && dim % 2 == 0 && dim <= x.last && (op_.ints[1] == 0 || op_.ints[1] == 1), "the table turns more than there is");
    need(weight(table).size() == dim && weight(table).n == 2, "a table is [2][dim / 2]");
    need(tensor(table + 1).role == MEKIK_ROLE_INPUT && tensor(table + 1).name == "positions" && x.first == MEKIK_DIM_TOKENS,
         "positions of tokens");
  }
  void addend(const Rows& a) const {
    if (tensor(1).role == MEKIK_ROLE_WEIGHT)
      return need(weight(1).size() == a.size() || weight(1).size() == a.outer || weight(1).size() == 1,
                  "a weight of the row's shape, of its outer rows, or of one number");
    const Rows b = rows(1);
    need(b.first == a.first && (b.size() == a.size() || (b.last == 1 && b.outer == a.outer)), "rows that do not go together");
  }

  void map() const {
    const Rows x = rows(0);
    need(out(0).like(x), "the result must have the shape of the operand");
    switch (op_.code) {
      case op_add:
      case op_mul:
        return addend(x);
      case op_add_norm:
        addend(x);
        need(out(1).like(x), "the norm must have the shape of the sum");
        return vector(2, x.last, x.size());
      case op_rms_norm:
        return vector(1, x.last, x.size());
      case op_layer_norm:
        vector(1, x.last, x.size());
        return vector(2, x.last, x.size());
      case op_norm_rope:
        vector(1, x.last, x.size());
        return rope(x, 2);
      case op_rope:
        return rope(x, 1);
      case op_act:
        return need(op_.ints[0] >= 0 && op_.ints[0] <= 11, "an unknown activation");
      case op_position_scale:
        return need(x.first == MEKIK_DIM_TOKENS && tensor(1).name == "positions" && op_.reals[0] > 0, "positions of tokens");
      case op_glu:
        kind(op_.ints[0], true);
        return need(rows(1).like(x), "gate and up differ");
      case op_softcap:
        return need(op_.reals[0] != 0, "a cap of 0");
      default:
        return;
    }
  }

  std::pair<std::int64_t, std::int64_t> state(std::size_t i) const {
    const Tensor& t = tensor(i);
    need(t.role == MEKIK_ROLE_STATE && t.shape.size() == 3, "a state is [tokens][heads][numbers]");
    return {t.shape[1], t.shape[2]};
  }
  void attention() const {
    const Rows a = rows(0);
    need(a.first == MEKIK_DIM_TOKENS, "only rows of tokens attend");
    if (op_.code == op_kv_append) {
      const auto [heads, numbers] = state(2);
      need(a.outer == heads && rows(1).outer == heads && a.last + rows(1).last == numbers, "k and v do not fit the state");
    } else if (op_.code == op_mla_append) {
      const auto [heads, numbers] = state(2);
      need(heads == 1 && a.size() + rows(1).size() == numbers, "the latent does not fit the state");
    } else if (op_.code == op_attention || op_.code == op_attention_chunk) {
      const auto [heads, numbers] = state(1);
      const std::int64_t dv = op_.ints[0];
      need(dv > 0 && a.last + dv == numbers && a.outer % heads == 0 && op_.ints[2] >= 0, "q does not fit the state");
      need(p_.groups[tensor(1).group].window == static_cast<std::uint64_t>(op_.ints[2]), "the window is not that of the state's group");
      need(out(0).size() == a.outer * dv, "the result must be [heads][dv]");
      need(op_.code == op_attention || op_.ints[2] > 0, "chunks of 0 rows");
      vector(2, a.outer);
      vector(3, a.outer);
    } else if (op_.code == op_attention_full || op_.code == op_attention_near) {
      if (op_.code == op_attention_near) vector(4, a.outer), vector(5, a.outer);
      need(a.last == rows(1).last && rows(1).outer == rows(2).outer && a.outer % rows(1).outer == 0 && rows(3).size() == 1,
           "q, k, v and segments");
      need(out(0).size() == a.outer * rows(2).last, "the result must be [heads][dv]");
    } else if (op_.code == op_mla_attention) {
      const auto [heads, numbers] = state(4);
      const Weight k_b = weight(2), v_b = weight(3);
      const std::int64_t rank = op_.ints[0], r = op_.ints[1];
      need(heads == 1 && rank + r == numbers && rows(1).outer == a.outer && rows(1).last == r, "q does not fit the state");
      need(k_b.experts == a.outer && k_b.n == rank && k_b.k == a.last && v_b.experts == a.outer && v_b.k == rank,
           "the projections do not fit");
      need(out(0).size() == a.outer * v_b.n, "the result must be [heads][v]");
    } else {
      const auto [heads, numbers] = state(11);
      const Rows q = out(0);
      product(a, 1, q);
      product(a, 3, {a.first, heads, q.last});
      product(a, 5, {a.first, heads, numbers - q.last});
      rope(q, 9);
    }
  }

  void route(std::size_t logits) const {
    const std::int64_t e = rows(logits).size(), top = op_.ints[0], groups = op_.ints[2];
    need(top >= 1 && top <= e && op_.ints[1] >= 0 && op_.ints[1] <= 3, "the route cannot be taken");
    need(groups >= 1 && e % groups == 0 && op_.ints[3] >= 1 && op_.ints[3] <= groups, "groups that do not divide the experts");
  }
  void experts() const {
    if (op_.code == op_moe_route) {
      route(0);
      vector(1, rows(0).size());
      need(out(0).size() == op_.ints[0] && out(1).size() == op_.ints[0], "the results must be [top]");
    } else if (op_.code == op_moe_linear) {
      const Weight w = weight(1);
      const std::int64_t top = rows(2).size();
      need(rows(0).size() == w.k || rows(0).size() == top * w.k, "x does not meet the experts");
      need(out(0).size() == top * w.n, "the result must be [top][n]");
      vector(3, w.experts * w.n);
    } else if (op_.code == op_moe_combine) {
      need(rows(0).size() % out(0).size() == 0, "the result must be [n]");
      need(!has(1) || rows(0).size() == rows(1).size() * out(0).size(), "a weight for each expert's row");
    } else if (op_.code == op_moe_scale) {
      need(rows(0).size() == rows(1).size() && out(0).like(rows(0)) && weight(2).size() > 0, "weights and ids do not fit");
    } else if (op_.code == op_moe_spread) {
      need(out(0).size() == rows(0).size() * rows(1).size() && out(0).first == rows(0).first, "the result must be [top][k]");
    } else if (op_.code == op_moe_route_mixer) {
      const std::int64_t top = op_.ints[0];
      need(top >= 1 && top <= rows(0).size() && out(0).size() == top && out(1).size() == top, "the results must be [top]");
    } else {
      route(1);
      const Weight gate = weight(3), up = weight(5), down = weight(7);
      need(gate.k == rows(0).size() && up.k == gate.k && up.n == gate.n && down.k == gate.n && down.n == out(0).size(),
           "the experts do not fit");
      kind(op_.ints[6], true);
    }
  }

  void slot(std::size_t i, std::int64_t size) const {
    std::int64_t got = 1;
    for (const std::int64_t one : tensor(i).shape) got *= one;
    need(tensor(i).role == MEKIK_ROLE_SLOT && got == size, "a slot of another size");
  }
  void recurrent() const {
    const Rows x = rows(0);
    need(x.first == MEKIK_DIM_TOKENS, "only rows of tokens have a state");
    if (op_.code == op_conv_state) {
      const Weight w = weight(1);
      need(w.n == x.size() && w.k > 1 && out(0).like(x), "w must be [channels][taps]");
      vector(2, x.size());
      slot(3, x.size() * (w.k - 1));
      kind(op_.ints[0], false);
    } else if (op_.code == op_ssm_scan) {
      const Rows b = rows(3), c = rows(4);
      need(rows(1).size() == x.outer && b.outer == c.outer && b.last == c.last && x.outer % b.outer == 0 && out(0).like(x),
           "dt, B and C do not fit");
      vector(2, x.outer, x.outer * b.last);
      vector(5, x.outer);
      slot(6, x.size() * b.last);
    } else {
      const Rows k = rows(1), v = rows(2);
      need(x.outer == k.outer && x.last == k.last && v.outer % k.outer == 0 && rows(4).size() == v.outer, "q, k, v do not fit");
      need(rows(3).size() == v.outer || rows(3).size() == v.outer * k.last, "decay must be [hv] or [hv][dk]");
      slot(5, v.outer * k.last * v.last);
      need(out(0).like(v), "the result must have the shape of v");
    }
  }

  const Program& p_;
  const Op& op_;
};

}  // namespace

std::string shape_fault(const Program& program, const Op& op) {
  try {
    Shapes{program, op}.check();
    return {};
  } catch (const Fault& fault) {
    return fault.why;
  }
}

}  // namespace mekik::program
