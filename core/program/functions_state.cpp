// Functions that keep state from step to step, and mixtures of experts.
#include <cmath>
#include <limits>

#include "base/text.hpp"
#include "program/emitter.hpp"

namespace mekik::program {

namespace {

constexpr double kNeeded = std::numeric_limits<double>::quiet_NaN();

}  // namespace

// ALiBi (Press et al. 2022): slopes fall geometrically; head counts that are no power of two fill up from the next finer series.
std::uint32_t Emitter::slopes(double alibi, double scale, std::int64_t heads) {
  const std::string key = "alibi:" + to_text(Datum::of(alibi)) + "*" + to_text(Datum::of(scale)) + ":" + std::to_string(heads);
  if (const auto found = slope_tensors_.find(key); found != slope_tensors_.end()) return found->second;
  std::int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  WeightRecipe recipe;
  recipe.symbol = "alibi";
  recipe.k = static_cast<std::uint64_t>(heads);
  for (std::int64_t h = 0; h < heads; ++h) {
    const double exponent = h < power ? alibi * static_cast<double>(h + 1) / static_cast<double>(power)
                                      : alibi / 2 * static_cast<double>(2 * (h - power) + 1) / static_cast<double>(power);
    recipe.host.push_back(static_cast<float>(std::exp2(-exponent) * scale));
  }
  Tensor tensor;
  tensor.name = "alibi";
  tensor.role = MEKIK_ROLE_WEIGHT;
  tensor.shape = {heads};
  tensor.weight = static_cast<std::int32_t>(out_.weights.size());
  out_.weights.push_back(std::move(recipe));
  return slope_tensors_[key] = add_tensor(std::move(tensor));
}

// attention(q, k, v, scale, window, softcap, sinks, causal, within, alibi, alibi_scale)
Datum Emitter::attention(Call& call) {
  const Datum &q = rows(call, 0, 2), &k = rows(call, 1, 2), &v = rows(call, 2, 2);
  const std::int64_t heads = q.shape[0], d = q.shape[1], groups = k.shape[0], dv = v.shape[1];
  if (k.shape[1] != d || v.shape[0] != groups || heads % groups != 0)
    wrong(call.at(), "attention: q " + shape_text(q.shape) + ", k " + shape_text(k.shape) + ", v " + shape_text(v.shape) +
                         " do not go together: q and k share the last size, k and v the first, which divides that of q" + where());
  if (q.first != MEKIK_DIM_TOKENS) wrong(call.at(), "attention works on rows of all tokens" + where());
  same_first(call, q, k);
  same_first(call, q, v);
  const bool causal = boolean(call, 7, true);
  if (causal ? full_ : stateful_) wrong(call.at(), "state: attention in a program with causal = false and kv" + where());
  if (!causal) return attention_full(call);
  stateful_ = true;
  if (!absent(call, 8)) wrong(call.at(8), "attention: within belongs to causal = false" + where());
  const double scale = number(call, 3, 1 / std::sqrt(static_cast<double>(d))), softcap = number(call, 5, 0), alibi = number(call, 9, 0);
  std::int64_t window = integer(call, 4, 0, 0);
  if (const std::uint64_t context = page_number("context"); context != 0 && static_cast<std::uint64_t>(window) >= context) window = 0;
  const std::uint32_t sinks = optional_vector(call, 6, {heads}, "list of sinks");
  const std::uint32_t tilt = alibi == 0 ? MEKIK_NONE : slopes(alibi, number(call, 10, 1), heads);
  const std::uint32_t kv = state({groups, d + dv}, static_cast<std::uint64_t>(window), call.at());
  emit(call.at(), op_kv_append, {k.index, v.index, kv}, {});
  Datum out = new_rows(q.first, {heads, dv}, "attention");
  out.size_labels = {q.size_labels[0], v.size_labels[1]};
  emit(call.at(), op_attention, {q.index, kv, sinks, tilt}, {out.index}, {dv, 1, window}, {scale, softcap});
  return out;
}

Datum Emitter::attention_full(Call& call) {
  const Datum &q = rows(call, 0, 2), &k = rows(call, 1, 2), &v = rows(call, 2, 2);
  full_ = true;
  for (const std::size_t arg : {std::size_t{4}, std::size_t{5}, std::size_t{6}, std::size_t{9}})
    if (!absent(call, arg) && !(call.args[arg].number() && call.args[arg].as_real() == 0))
      wrong(call.at(arg), "attention with causal = false has no window, softcap, sinks or alibi" + where());
  if (const std::string within = word(call, 8, "segments"); within != "segments")
    wrong(call.at(8), "attention within " + mekik::quoted(within) + " is known only in programs for images, which are not built yet");
  const double scale = number(call, 3, 1 / std::sqrt(static_cast<double>(q.shape[1])));
  Datum out = new_rows(q.first, {q.shape[0], v.shape[1]}, "attention_full");
  emit(call.at(), op_attention_full, {q.index, k.index, v.index, input("segments", MEKIK_DIM_TOKENS)}, {out.index}, {}, {scale});
  return out;
}

// Keys and values stay in the latent; the projections are operands, so a backend absorbs or expands them.
Datum Emitter::mla_attention(Call& call) {
  const Datum &q_nope = rows(call, 0, 2), &q_rot = rows(call, 1, 2), &c = rows(call, 2, 1), &k_rot = rows(call, 3, 1);
  const WeightValue &k_b = weight(call, 4, 3), &v_b = weight(call, 5, 3);
  const std::int64_t heads = q_nope.shape[0], n = q_nope.shape[1], r = q_rot.shape[1], rank = c.shape[0];
  if (q_rot.shape[0] != heads || k_rot.shape[0] != r)
    wrong(call.at(), "mla_attention: q_nope " + shape_text(q_nope.shape) + ", q_rot " + shape_text(q_rot.shape) + ", k_rot " +
                         shape_text(k_rot.shape) + " do not go together" + where());
  if (k_b.shape != std::vector<std::int64_t>{heads, rank, n})
    wrong(call.at(4), "mla_attention: " + weight_text(call.args[4]) + " must be " + shape_text({heads, rank, n}) + where());
  if (v_b.shape[0] != heads || v_b.shape[2] != rank)
    wrong(call.at(5), "mla_attention: " + weight_text(call.args[5]) + " must be [" + std::to_string(heads) + ", v, " +
                          std::to_string(rank) + "]" + where());
  if (full_) wrong(call.at(), "state: attention in a program with causal = false and kv" + where());
  stateful_ = true;
  const std::int64_t v_dim = v_b.shape[1];
  const double scale = number(call, 6, kNeeded);
  const std::uint32_t kv = state({1, rank + r}, 0, call.at());
  emit(call.at(), op_mla_append, {c.index, k_rot.index, kv}, {});
  Datum out = new_rows(q_nope.first, {heads, v_dim}, "mla_attention");
  const std::uint32_t kb = weight_tensor(call.args[4].index, WeightUse::experts),
                      vb = weight_tensor(call.args[5].index, WeightUse::experts);
  emit(call.at(), op_mla_attention, {q_nope.index, q_rot.index, kb, vb, kv}, {out.index}, {rank, r, 0}, {scale});
  return out;
}

Datum Emitter::conv(Call& call) {
  const Datum& x = rows(call, 0, 1);
  const WeightValue& w = weight(call, 1, 2);
  if (w.shape[0] != x.shape[0] || w.shape[1] < 2)
    wrong(call.at(1),
          "conv: " + rows_text(x) + " does not meet " + weight_text(call.args[1]) + ", which must be [channels, taps]" + where());
  const std::uint32_t b = optional_vector(call, 2, x.shape, "bias");
  const std::uint32_t tail = slot({x.shape[0], w.shape[1] - 1}, "tail");
  return emit_rows(call.at(), op_conv_state, x, {x.index, weight_tensor(call.args[1].index, WeightUse::matrix), b, tail},
                   {kind(call, 3, false)});
}

Datum Emitter::ssm_scan(Call& call) {
  const Datum &x = rows(call, 0, 2), &dt = rows(call, 1, 1), &b = rows(call, 3, 2), &c = rows(call, 4, 2);
  const WeightValue& a = weight(call, 2, 2);
  const std::int64_t h = x.shape[0], groups = b.shape[0], n = b.shape[1];
  if (dt.shape[0] != h || b.shape != c.shape || h % groups != 0 || a.shape[0] != h || (a.shape[1] != 1 && a.shape[1] != n))
    wrong(call.at(), "ssm_scan: x " + shape_text(x.shape) + ", dt " + shape_text(dt.shape) + ", A " + shape_text(a.shape) + ", B " +
                         shape_text(b.shape) + ", C " + shape_text(c.shape) + " do not go together" + where());
  const std::uint32_t d = optional_vector(call, 5, {h}, "skip weight");
  if (d == MEKIK_NONE) wrong(call.at(5), "ssm_scan needs a weight D" + where());
  const std::uint32_t kept = slot({h, x.shape[1], n}, "recurrent");
  return emit_rows(call.at(), op_ssm_scan, x,
                   {x.index, dt.index, weight_tensor(call.args[2].index, WeightUse::matrix), b.index, c.index, d, kept});
}

Datum Emitter::gated_delta(Call& call) {
  const Datum &q = rows(call, 0, 2), &k = rows(call, 1, 2), &v = rows(call, 2, 2), &decay = rows(call, 3, 1), &beta = rows(call, 4, 1);
  const std::int64_t hv = v.shape[0];
  if (q.shape != k.shape || hv % k.shape[0] != 0 || decay.shape[0] != hv || beta.shape[0] != hv)
    wrong(call.at(), "gated_delta: q " + shape_text(q.shape) + ", k " + shape_text(k.shape) + ", v " + shape_text(v.shape) + ", decay " +
                         shape_text(decay.shape) + ", beta " + shape_text(beta.shape) + " do not go together" + where());
  const double scale = number(call, 5, kNeeded);
  const std::string spread = word(call, 6, "grouped");
  if (spread != "grouped" && spread != "tiled") wrong(call.at(6), "spread is one of 'grouped', 'tiled'" + where());
  const std::uint32_t kept = slot({hv, k.shape[1], v.shape[1]}, "recurrent");
  return emit_rows(call.at(), op_gated_delta, v, {q.index, k.index, v.index, decay.index, beta.index, kept}, {spread == "tiled" ? 1 : 0},
                   {scale});
}

// moe_route(logits, top, score, bias, groups, top_groups, group_score, normalize, scale)
Datum Emitter::moe_route(Call& call) {
  const Datum& logits = rows(call, 0, 1);
  const std::int64_t experts = logits.shape[0], top = integer(call, 1, 0, 1), groups = integer(call, 4, 1, 0),
                     top_groups = integer(call, 5, 1, 0);
  if (top > experts) wrong(call.at(1), "moe_route: " + std::to_string(top) + " of " + std::to_string(experts) + " experts" + where());
  const std::string score = word(call, 2, "softmax"), group_score = word(call, 6, "top2");
  const std::int64_t code = score == "softmax" ? 0 : score == "sigmoid" ? 1 : score == "softmax_top" ? 2 : -1;
  if (code < 0) wrong(call.at(2), "score is one of 'softmax', 'sigmoid', 'softmax_top'" + where());
  if (group_score != "top2" && group_score != "max") wrong(call.at(6), "group_score is one of 'top2', 'max'" + where());
  const bool grouped = groups > 1;
  if (grouped && (experts % groups != 0 || top_groups < 1 || top_groups > groups || top > experts / groups * top_groups))
    wrong(call.at(4), "moe_route: " + std::to_string(top_groups) + " of " + std::to_string(groups) + " groups of " +
                          std::to_string(experts) + " experts cannot give " + std::to_string(top) + where());
  const std::uint32_t bias = optional_vector(call, 3, {experts}, "bias");
  Datum out = new_rows(logits.first, {top}, "ids");
  out_.tensors[out.index].scheme = "i32";
  const Datum weights = new_rows(logits.first, {top}, "weights");
  emit(call.at(), op_moe_route, {logits.index, bias}, {out.index, weights.index},
       {top, code, grouped ? groups : 1, grouped ? top_groups : 1, group_score == "max" ? 1 : 0, boolean(call, 7, false) ? 1 : 0},
       {number(call, 8, 1)});
  out.type = Datum::Type::route;
  out.weights = weights.index;
  out.shape = {top, experts};
  return out;
}

Datum Emitter::moe_linear(Call& call) {
  const Datum& x = rows(call, 0);
  const WeightValue& w = weight(call, 1, 3);
  const Datum& route = call.args[2];
  if (route.type != Datum::Type::route)
    wrong(call.at(2), std::string{"moe_linear needs a route here, not "} + type_name(route.type) + where());
  same_first(call, x, route);
  const bool one_each = x.shape.size() == 2;
  if (x.shape.back() != w.shape[2] || (one_each && x.shape[0] != route.shape[0]))
    wrong(call.at(), "moe_linear: " + rows_text(x) + " does not meet " + weight_text(call.args[1]) + " (input size " +
                         std::to_string(w.shape[2]) + ")" + where());
  if (w.shape[0] != route.shape[1])
    wrong(call.at(1),
          "moe_linear: the route chooses among " + std::to_string(route.shape[1]) + " experts; " + weight_text(call.args[1]) + where());
  const std::uint32_t bias = optional_vector(call, 3, {w.shape[0], w.shape[1]}, "bias of each expert");
  Datum out = new_rows(x.first, {route.shape[0], w.shape[1]}, "moe_linear");
  emit(call.at(), op_moe_linear, {x.index, weight_tensor(call.args[1].index, WeightUse::experts), route.index, bias}, {out.index});
  return out;
}

Datum Emitter::moe_combine(Call& call) {
  const Datum& y = rows(call, 0, 2);
  const Datum& route = call.args[1];
  if (route.type != Datum::Type::route)
    wrong(call.at(1), std::string{"moe_combine needs a route here, not "} + type_name(route.type) + where());
  same_first(call, y, route);
  if (y.shape[0] != route.shape[0])
    wrong(call.at(), "moe_combine: " + rows_text(y) + " are not " + std::to_string(route.shape[0]) + " rows of experts" + where());
  Datum out = new_rows(y.first, {y.shape[1]}, "moe_combine");
  emit(call.at(), op_moe_combine, {y.index, route.weights}, {out.index});
  return out;
}

}  // namespace mekik::program
