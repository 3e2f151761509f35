#include "reference/checker.hpp"
#include "reference/ops.hpp"

namespace mekik::reference {

namespace {

constexpr auto need = Checker::need;

std::string_view program_name(const Checker& c, std::uint32_t i) { return c.program.name(c.op.in[i]); }

void check_route(const RowShape& logits, const std::int64_t* ints) {
  const auto experts = static_cast<std::int64_t>(logits.size());
  need(ints[0] >= 1 && ints[0] <= experts, "chooses " + std::to_string(ints[0]) + " of " + std::to_string(experts) + " experts");
  need(ints[1] >= 0 && ints[1] <= 3 && ints[4] >= 0 && ints[4] <= 1 && ints[5] >= 0 && ints[5] <= 1, "an unknown way of scoring");
  need(ints[2] >= 1 && ints[3] >= 1 && ints[3] <= ints[2] && experts % ints[2] == 0, "groups that do not divide the experts");
  need(ints[2] == 1 || ints[0] <= experts / ints[2] * ints[3], "more experts than the chosen groups have");
}

// w [e][n][k] with its bias [e][n]; gives n.
std::uint64_t expert_rows(const Checker& c, std::uint32_t w, std::uint64_t experts, std::uint64_t k) {
  const WeightShape shape = c.weight(w);
  need(shape.experts == experts, c.named(w) + " has " + std::to_string(shape.experts) + " experts, not " + std::to_string(experts));
  need(shape.k == k, c.named(w) + " takes rows of " + std::to_string(shape.k) + " numbers, not " + std::to_string(k));
  c.vector(w + 1, shape.rows());
  return shape.n;
}

void check_moe(const Checker& c) {
  const mekik_op& o = c.op;
  if (o.code == op::moe_route) {
    const RowShape logits = c.rows(0), ids = c.out(0), weights = c.out(1);
    check_route(logits, o.ints);
    c.vector(1, logits.size());
    const auto top = static_cast<std::uint64_t>(o.ints[0]);
    return need(ids.rows == logits.rows && weights.rows == logits.rows && ids.size() == top && weights.size() == top,
                "the results must be [rows][top]");
  }
  if (o.code == op::moe_linear) {
    const RowShape x = c.rows(0), ids = c.rows(2), y = c.out(0);
    const WeightShape w = c.weight(1);
    need(x.rows == ids.rows && y.rows == ids.rows && (x.size() == w.k || x.size() == ids.size() * w.k), "x does not fit the experts");
    need(c.in(2).role != MEKIK_ROLE_INPUT, "ids must come from moe_route");
    c.ids(2, w.experts);
    c.vector(3, w.rows());
    return need(y.size() == ids.size() * w.n, "the result must be [rows][top][n]");
  }
  if (o.code == op::moe_combine) {
    const RowShape y = c.rows(0), out = c.out(0);
    need(out.rows == y.rows && y.size() % out.size() == 0, "the result must be [rows][n]");
    return need(!c.has(1) || (c.rows(1).rows == y.rows && c.rows(1).size() * out.size() == y.size()), "a weight for each expert's row");
  }
  if (o.code == op::moe_scale) {
    const RowShape weights = c.rows(0);
    c.ids(1, c.weight(2).size());
    return need(weights.same(c.rows(1)) && weights.same(c.out(0)), "weights, ids and the result must be [rows][top]");
  }
  if (o.code == op::moe_spread) {
    const RowShape x = c.rows(0), weights = c.rows(1), y = c.out(0);
    return need(weights.rows == x.rows && y.rows == x.rows && y.size() == weights.size() * x.size(), "the result must be [rows][top][k]");
  }
  if (o.code == op::moe_route_mixer) {
    const RowShape logits = c.rows(0), ids = c.out(0), weights = c.out(1);
    const std::int64_t top = o.ints[0];
    need(top >= 1 && static_cast<std::uint64_t>(top) <= logits.size() && o.reals[0] >= 0, "attributes out of range");
    return need(ids.rows == logits.rows && ids.same(weights) && ids.size() == static_cast<std::uint64_t>(top),
                "the results must be [rows][top]");
  }
  const RowShape x = c.rows(0), logits = c.rows(1);
  check_route(logits, o.ints);
  need((o.ints[6] >= kNone && o.ints[6] <= kSoftplus) || o.ints[6] == kSwigluClamped, "unknown activation " + std::to_string(o.ints[6]));
  c.vector(2, logits.size());
  const std::uint64_t wide = expert_rows(c, 3, logits.size(), x.size());
  need(expert_rows(c, 5, logits.size(), x.size()) == wide, "gate and up do not have the same shape");
  const std::uint64_t n = expert_rows(c, 7, logits.size(), wide);
  need(logits.rows == x.rows && c.out(0).rows == x.rows && c.out(0).size() == n, "the result must be [rows][n]");
}

void check_mla(const Checker& c) {
  if (c.op.code == op::mla_append) {
    const RowShape latent = c.rows(0), rotated = c.rows(1);
    need(c.state(2, latent.size() + rotated.size()) == 1, "the state must have one head");
    return need(latent.rows == MEKIK_DIM_TOKENS && rotated.rows == latent.rows, "only rows of tokens are stored");
  }
  const RowShape q = c.rows(0), rotated = c.rows(1), y = c.out(0);
  need(c.op.ints[0] > 0 && c.op.ints[1] > 0 && c.op.ints[2] >= 0, "attributes out of range");
  const auto rank = static_cast<std::uint64_t>(c.op.ints[0]), r = static_cast<std::uint64_t>(c.op.ints[1]);
  need(c.state(4, rank + r) == 1, "the state must have one head");
  need(q.rows == MEKIK_DIM_TOKENS && rotated.rows == q.rows && rotated.outer == q.outer && rotated.last == r,
       "q_rot must be [tokens][heads][r]");
  need(c.weight(2).size() == q.outer * rank * q.last && c.weight(2).k == q.last, "k_b must be [heads][rank][n]");
  need(y.rows == q.rows && y.size() % q.outer == 0 && y.last * q.outer == y.size() && c.weight(3).size() == y.size() * rank &&
           c.weight(3).k == rank,
       "v_b must be [heads][v][rank], the result [tokens][heads][v]");
}

void check_recurrent(const Checker& c) {
  const RowShape x = c.rows(0), y = c.out(0);
  need(x.rows == MEKIK_DIM_TOKENS, "only rows of tokens have a state");
  if (c.op.code == op::conv_state) {
    const WeightShape w = c.weight(1);
    need(w.size() % x.size() == 0 && w.k * x.size() == w.size() && w.k > 1, "w must be [channels][taps]");
    need(c.op.ints[0] >= kNone && c.op.ints[0] <= kSoftplus, "unknown activation " + std::to_string(c.op.ints[0]));
    c.vector(2, x.size());
    c.slot(3, x.size() * (w.k - 1));
    return need(y.rows == x.rows && y.size() == x.size(), "the result must have the shape of x");
  }
  if (c.op.code == op::ssm_scan) {
    const RowShape dt = c.rows(1), b = c.rows(3), d = c.rows(4);
    need(dt.rows == x.rows && dt.size() == x.outer && b.same(d) && b.rows == x.rows && x.outer % b.outer == 0, "dt, B and C do not fit x");
    c.weight(2), c.weight(5);
    c.vector(2, x.outer, x.outer * b.last);
    c.vector(5, x.outer);
    c.slot(6, x.size() * b.last);
    return need(y.rows == x.rows && y.size() == x.size(), "the result must have the shape of x");
  }
  const RowShape k = c.rows(1), v = c.rows(2), decay = c.rows(3), beta = c.rows(4);
  need(x.same(k) && v.rows == x.rows && v.outer % k.outer == 0, "q, k and v do not fit");
  need(decay.rows == x.rows && (decay.size() == v.outer || decay.size() == v.outer * k.last),
       "decay must be [tokens][heads of v][dk or 1]");
  need(beta.rows == x.rows && beta.size() == v.outer, "beta must be [tokens][heads of v]");
  need(c.op.ints[0] == 0 || c.op.ints[0] == 1, "unknown spread " + std::to_string(c.op.ints[0]));
  c.slot(5, v.outer * k.last * v.last);
  need(y.rows == v.rows && y.size() == v.size(), "the result must have the shape of v");
}

}  // namespace

void check_family(const Checker& c) {
  const mekik_op& o = c.op;
  switch (o.code) {
    case op::moe_ffn:
    case op::moe_route:
    case op::moe_linear:
    case op::moe_combine:
    case op::moe_scale:
    case op::moe_spread:
    case op::moe_route_mixer:
      return check_moe(c);
    case op::attention_chunk:
      return check_state_ops(c);
    case op::mla_append:
    case op::mla_attention:
      return check_mla(c);
    case op::conv_state:
    case op::ssm_scan:
    case op::gated_delta:
      return check_recurrent(c);
    case op::layer_norm:
    case op::l2_norm: {
      const RowShape x = c.rows(0), y = c.out(0);
      need(y.rows == x.rows && y.size() == x.size(), "the result does not have the shape of the operand");
      if (o.code == op::layer_norm) c.vector(1, x.last, x.size()), c.vector(2, x.last, x.size());
      return;
    }
    case op::concat: {
      const RowShape a = c.rows(0), b = c.rows(1), y = c.out(0);
      return need(a.rows == b.rows && y.rows == a.rows && a.outer == b.outer && y.size() == a.size() + b.size(),
                  "the result must be [rows][..][p + q]");
    }
    case op::mean: {
      const RowShape x = c.rows(0), y = c.out(0);
      return need(y.rows == x.rows && y.size() == x.outer, "the result must be [rows][..][1]");
    }
    case op::position_scale: {
      const RowShape x = c.rows(0), y = c.out(0);
      need(y.rows == x.rows && y.size() == x.size(), "the result does not have the shape of the operand");
      need(x.rows == MEKIK_DIM_TOKENS && c.in(1).role == MEKIK_ROLE_INPUT && program_name(c, 1) == "positions",
           "only rows of tokens have positions");
      return need(o.ints[0] >= 0 && o.ints[0] <= 1 && o.reals[0] > 0, "attributes out of range");
    }
    case op::attention_near:
      c.vector(4, c.rows(0).outer);
      c.vector(5, c.rows(0).outer);
      need(o.ints[0] >= 0, "a window below 0");
      [[fallthrough]];
    case op::attention_full: {
      const RowShape q = c.rows(0), k = c.rows(1), v = c.rows(2), y = c.out(0);
      need(q.last == k.last && q.rows == k.rows && v.rows == k.rows && v.outer == k.outer && q.outer % k.outer == 0,
           "q, k and v do not fit");
      need(c.rows(3).rows == q.rows && c.rows(3).size() == 1 && c.in(3).role == MEKIK_ROLE_INPUT, "segments must be an input, one a row");
      return need(y.rows == q.rows && y.size() == q.outer * v.last, "the result must be [rows][heads][dv]");
    }
    case op::pool:
      need(o.ints[0] >= kMean && o.ints[0] <= kMeanSqrtLen, "unknown pooling " + std::to_string(o.ints[0]));
      need(c.rows(0).rows == MEKIK_DIM_TOKENS, "pools rows of tokens");
      return need(c.out(0).rows == MEKIK_DIM_SEQS && c.out(0).size() == c.rows(0).size(), "the result must be a row a sequence");
    case op::embed_mix: {
      const RowShape ids = c.rows(0), mix = c.rows(1);
      const WeightShape w = c.weight(2);
      c.ids(0, w.rows());
      return need(ids.rows == mix.rows && ids.size() == mix.size() && c.out(0).rows == ids.rows && c.out(0).size() == w.k,
                  "ids, mix and result do not fit");
    }
    default:
      need(false, "unknown operation");
  }
}

}  // namespace mekik::reference
