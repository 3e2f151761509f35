// Checks of mixtures of experts, latent attention, recurrences and encoders.
#include "ops/checker.hpp"

namespace mekik::vulkan {

namespace {

constexpr auto need = Checker::need;

void check_route(const Checker& c) {
  const RowShape logits = c.rows(0), ids = c.out(0), weights = c.out(1);
  const std::int64_t* o = c.op.ints;
  const auto experts = static_cast<std::int64_t>(logits.size());
  need(o[0] >= 1 && o[0] <= experts, "chooses " + std::to_string(o[0]) + " of " + std::to_string(experts) + " experts");
  need(o[1] >= 0 && o[1] <= 3 && (o[4] == 0 || o[4] == 1) && (o[5] == 0 || o[5] == 1), "an unknown way of scoring");
  need(o[2] >= 1 && o[3] >= 1 && o[3] <= o[2] && experts % o[2] == 0, "groups that do not divide the experts");
  need(o[2] == 1 || o[0] <= experts / o[2] * o[3], "more experts than the chosen groups have");
  c.vector(1, logits.size());
  const auto top = static_cast<std::uint64_t>(o[0]);
  need(ids.rows == logits.rows && weights.rows == logits.rows && ids.size() == top && weights.size() == top,
       "the results must be [rows][top]");
}

void check_experts(const Checker& c) {
  const RowShape x = c.rows(0), ids = c.rows(2), y = c.out(0);
  const WeightShape w = c.weight(1);
  need(x.rows == ids.rows && y.rows == ids.rows && (x.size() == w.k || x.size() == ids.size() * w.k), "x does not fit the experts");
  need(c.in(2).role == MEKIK_ROLE_TEMP, "ids must come from moe_route");
  need(w.experts <= kMostExperts, c.named(1) + " has more than 2^16 experts");
  c.ids(2, w.experts);
  c.vector(3, w.rows());
  need(y.size() == ids.size() * w.n, "the result must be [rows][top][n]");
}

void check_combine(const Checker& c) {
  const RowShape y = c.rows(0), out = c.out(0);
  need(out.rows == y.rows && y.size() % out.size() == 0, "the result must be [rows][n]");
  if (!c.has(1)) return;
  const RowShape weights = c.rows(1);
  need(weights.rows == y.rows && weights.size() * out.size() == y.size(), c.named(1) + " must have a weight for each expert's row");
}

void check_mixer(const Checker& c) {
  const RowShape logits = c.rows(0), ids = c.out(0), weights = c.out(1);
  const std::int64_t top = c.op.ints[0];
  need(top >= 1 && static_cast<std::uint64_t>(top) <= logits.size() && c.op.reals[0] >= 0, "attributes out of range");
  need(ids.rows == logits.rows && weights.rows == logits.rows && ids.size() == static_cast<std::uint64_t>(top) &&
           weights.size() == ids.size(),
       "the results must be [rows][top]");
}

void check_moe_scale(const Checker& c) {
  const RowShape weights = c.rows(0), ids = c.rows(1), y = c.out(0);
  c.ids(1, c.weight(2).size());
  need(ids.rows == weights.rows && y.rows == weights.rows && ids.size() == weights.size() && y.size() == weights.size(),
       "weights, ids and the result must be [rows][top]");
}

void check_moe_spread(const Checker& c) {
  const RowShape x = c.rows(0), weights = c.rows(1), y = c.out(0);
  need(weights.rows == x.rows && y.rows == x.rows && y.size() == weights.size() * x.size(), "the result must be [rows][top][k]");
}

void check_concat(const Checker& c) {
  const RowShape a = c.rows(0), b = c.rows(1), y = c.out(0);
  need(a.rows == b.rows && y.rows == a.rows && a.outer == b.outer && y.size() == a.size() + b.size(),
       "the result must be [rows][..][p + q]");
}

void check_mean(const Checker& c) {
  const RowShape x = c.rows(0), y = c.out(0);
  need(y.rows == x.rows && y.size() == x.outer, "the result must be [rows][..][1]");
}

void check_position_scale(const Checker& c) {
  const RowShape x = c.rows(0), y = c.out(0);
  need(y.rows == x.rows && y.size() == x.size(), "the result does not have the shape of the operand");
  c.input(1, "positions");
  need(x.rows == MEKIK_DIM_TOKENS, "only rows of tokens have positions");
  need((c.op.ints[0] == 0 || c.op.ints[0] == 1) && c.op.reals[0] > 0, "attributes out of range");
}

void check_latent_append(const Checker& c) {
  const RowShape latent = c.rows(0), turned = c.rows(1);
  need(c.state(2) == 1 && last_size(c.in(2)) == latent.size() + turned.size(), "the state must be [tokens][1][rank + r]");
  need(latent.rows == MEKIK_DIM_TOKENS && turned.rows == latent.rows, "only rows of tokens are stored");
}

void check_latent_attention(const Checker& c) {
  const RowShape q = c.rows(0), turned = c.rows(1), y = c.out(0);
  need(c.op.ints[0] > 0 && c.op.ints[1] > 0 && c.op.ints[2] >= 0, "attributes out of range");
  const auto rank = static_cast<std::uint64_t>(c.op.ints[0]), r = static_cast<std::uint64_t>(c.op.ints[1]);
  need(c.state(4) == 1 && last_size(c.in(4)) == rank + r, "the state must be [tokens][1][rank + r]");
  need(q.rows == MEKIK_DIM_TOKENS && turned.rows == q.rows && turned.outer == q.outer && turned.last == r,
       "q_rot must be [tokens][heads][r]");
  need(y.rows == q.rows && y.size() % q.outer == 0, "the result must be [tokens][heads][v]");
  need(q.outer <= kMostExperts && q.outer * rank <= kMostColumns, "more heads than this backend can hold");
  c.stack(2, q.outer, rank, q.last);
  c.stack(3, q.outer, y.size() / q.outer, rank);
}

void check_conv(const Checker& c) {
  const RowShape x = c.rows(0), y = c.out(0);
  const WeightShape w = c.weight(1);
  need(x.rows == MEKIK_DIM_TOKENS, "only rows of tokens have a state");
  need(w.k > 1 && w.k <= kMostTaps && w.rows() == x.size(), "w must be [channels][2 to 64 taps]");
  Checker::kind(c.op.ints[0], false);
  c.vector(2, x.size());
  c.slot(3, x.size() * (w.k - 1));
  need(y.rows == x.rows && y.size() == x.size(), "the result must have the shape of x");
}

void check_scan(const Checker& c) {
  const RowShape x = c.rows(0), dt = c.rows(1), b = c.rows(3), d = c.rows(4), y = c.out(0);
  need(x.rows == MEKIK_DIM_TOKENS, "only rows of tokens have a state");
  need(dt.rows == x.rows && dt.size() == x.outer && b.rows == x.rows && d.rows == x.rows && b.outer == d.outer && b.last == d.last &&
           x.outer % b.outer == 0,
       "dt, B and C do not fit x");
  c.weight(2), c.weight(5);
  c.vector(2, x.outer, x.outer * b.last);
  c.vector(5, x.outer);
  c.slot(6, x.size() * b.last);
  need(y.rows == x.rows && y.size() == x.size(), "the result must have the shape of x");
}

void check_delta(const Checker& c) {
  const RowShape q = c.rows(0), k = c.rows(1), v = c.rows(2), decay = c.rows(3), beta = c.rows(4), y = c.out(0);
  need(q.rows == MEKIK_DIM_TOKENS, "only rows of tokens have a state");
  need(k.rows == q.rows && k.outer == q.outer && k.last == q.last && v.rows == q.rows && v.outer % k.outer == 0, "q, k and v do not fit");
  need(decay.rows == q.rows && (decay.size() == v.outer || decay.size() == v.outer * k.last),
       "decay must be [tokens][heads of v][dk or 1]");
  need(beta.rows == q.rows && beta.size() == v.outer, "beta must be [tokens][heads of v]");
  need(c.op.ints[0] == 0 || c.op.ints[0] == 1, "unknown spread " + std::to_string(c.op.ints[0]));
  c.slot(5, v.outer * k.last * v.last);
  need(y.rows == v.rows && y.size() == v.size(), "the result must have the shape of v");
}

void check_full(const Checker& c) {
  const RowShape q = c.rows(0), k = c.rows(1), v = c.rows(2), y = c.out(0);
  c.input(3, "segments");
  need(q.rows == MEKIK_DIM_TOKENS && q.last == k.last && k.rows == q.rows && v.rows == q.rows && v.outer == k.outer &&
           q.outer % k.outer == 0,
       "q, k and v do not fit");
  need(y.rows == q.rows && y.size() == q.outer * v.last, "the result must be [tokens][heads][dv]");
  if (c.op.code != op::attention_near) return;
  need(c.op.ints[0] >= 0, "a window below 0");
  c.vector(4, q.outer);
  c.vector(5, q.outer);
}

void check_mix(const Checker& c) {
  const WeightShape w = c.matrix(2);
  const RowShape mix = c.rows(1), y = c.out(0);
  c.ids(0, w.n);
  need(y.rows == MEKIK_DIM_TOKENS && c.in(0).shape[0] == mix.rows && mix.rows == y.rows && row_size(c.in(0)) == mix.size() &&
           y.size() == w.k,
       "ids, mix and result do not fit");
}

struct Family {
  std::uint32_t code;
  void (*check)(const Checker&);
};
constexpr Family kFamilies[] = {{op::moe_route, check_route},
                                {op::moe_linear, check_experts},
                                {op::moe_combine, check_combine},
                                {op::mla_append, check_latent_append},
                                {op::mla_attention, check_latent_attention},
                                {op::conv_state, check_conv},
                                {op::ssm_scan, check_scan},
                                {op::gated_delta, check_delta},
                                {op::attention_full, check_full},
                                {op::embed_mix, check_mix},
                                {op::moe_route_mixer, check_mixer},
                                {op::moe_scale, check_moe_scale},
                                {op::moe_spread, check_moe_spread},
                                {op::mean, check_mean},
                                {op::concat, check_concat},
                                {op::position_scale, check_position_scale},
                                {op::attention_near, check_full}};

}  // namespace

bool is_family(std::uint32_t code) {
  for (const Family& f : kFamilies)
    if (f.code == code) return true;
  return false;
}

void check_family(const Checker& c) {
  for (const Family& f : kFamilies)
    if (f.code == c.op.code) return f.check(c);
}

}  // namespace mekik::vulkan
