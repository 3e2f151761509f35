// Functions that keep state from step to step.
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

// attention(q, k, v, scale, window, softcap, sinks, causal, within, alibi, alibi_scale, chunk, from)
Datum Emitter::attention(Call& call) {
  if (!absent(call, 12)) return attention_from(call);
  const Datum &q = rows(call, 0, 2), &k = rows(call, 1, 2), &v = rows(call, 2, 2);
  KeptState kept;
  kept.heads = k.shape[0];
  kept.d = k.shape[1];
  kept.dv = v.shape[1];
  kept.v_label = v.size_labels[1];
  if (q.shape[1] != kept.d || v.shape[0] != kept.heads || q.shape[0] % kept.heads != 0)
    wrong(call.at(), "attention: q " + shape_text(q.shape) + ", k " + shape_text(k.shape) + ", v " + shape_text(v.shape) +
                         " do not go together: q and k share the last size, k and v the first, which divides that of q" + where());
  same_first(call, q, k);
  same_first(call, q, v);
  const bool causal = boolean(call, 7, true);
  if (causal ? full_ : stateful_) wrong(call.at(), "state: attention in a program with causal = false and kv" + where());
  if (!causal) return attention_full(call);
  stateful_ = true;
  kept.window = integer(call, 4, 0, 0);
  kept.chunk = integer(call, 11, 0, 0);
  if (kept.window != 0 && kept.chunk != 0) wrong(call.at(11), "attention: a window or a chunk, not both" + where());
  if (const std::uint64_t context = page_number("context"); context != 0) {  // what no sequence can leave hides nothing
    if (static_cast<std::uint64_t>(kept.window) >= context) kept.window = 0;
    if (static_cast<std::uint64_t>(kept.chunk) >= context) kept.chunk = 0;
  }
  kept.tensor = state({kept.heads, kept.d + kept.dv}, static_cast<std::uint64_t>(kept.window + kept.chunk), call.at());
  emit(call.at(), op_kv_append, {k.index, v.index, kept.tensor}, {});
  if (layer_) kept_states_[*layer_].push_back(kept);
  return attend(call, q, kept);
}

// Attention over keys and values that an earlier layer stored: it appends none of its own.
Datum Emitter::attention_from(Call& call) {
  const Datum& q = rows(call, 0, 2);
  for (const std::size_t arg : {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{11}})
    if (!absent(call, arg)) wrong(call.at(arg), "attention from another layer has its keys and values, and its window" + where());
  if (!boolean(call, 7, true)) wrong(call.at(7), "attention from another layer is causal" + where());
  const std::int64_t layer = integer(call, 12, 0, 0);
  const auto found = kept_states_.find(layer);
  if (found == kept_states_.end() || (layer_ && layer >= *layer_))
    wrong(call.at(12), "attention: layer " + std::to_string(layer) + " has stored no keys and values before" + where());
  if (found->second.size() != 1)
    wrong(call.at(12), "attention: layer " + std::to_string(layer) + " has several attentions; from cannot tell which" + where());
  const KeptState& kept = found->second[0];
  if (q.shape[1] != kept.d || q.shape[0] % kept.heads != 0)
    wrong(call.at(), "attention: q " + shape_text(q.shape) + " does not go with the keys of layer " + std::to_string(layer) + ", " +
                         shape_text({kept.heads, kept.d}) + where());
  return attend(call, q, kept);
}

Datum Emitter::attend(Call& call, const Datum& q, const KeptState& from) {
  const std::int64_t heads = q.shape[0];
  if (q.first != MEKIK_DIM_TOKENS) wrong(call.at(), "attention works on rows of all tokens" + where());
  if (!absent(call, 8)) wrong(call.at(8), "attention: within belongs to causal = false" + where());
  const double scale = number(call, 3, 1 / std::sqrt(static_cast<double>(from.d))), softcap = number(call, 5, 0),
               alibi = number(call, 9, 0);
  const std::uint32_t sinks = optional_vector(call, 6, {heads}, "list of sinks");
  const std::uint32_t tilt = alibi == 0 ? MEKIK_NONE : slopes(alibi, number(call, 10, 1), heads);
  Datum out = new_rows(q.first, {heads, from.dv}, "attention");
  out.size_labels = {q.size_labels[0], from.v_label};
  const bool chunks = from.chunk != 0;
  emit(call.at(), chunks ? op_attention_chunk : op_attention, {q.index, from.tensor, sinks, tilt}, {out.index},
       {from.dv, 1, chunks ? from.chunk : from.window}, {scale, softcap});
  return out;
}

// Both ways, inside the segments of the batch; no state.
Datum Emitter::attention_full(Call& call) {
  const Datum &q = rows(call, 0, 2), &k = rows(call, 1, 2), &v = rows(call, 2, 2);
  full_ = true;
  if (q.first != MEKIK_DIM_TOKENS) wrong(call.at(), "attention works on rows of all tokens" + where());
  if (!absent(call, 11)) wrong(call.at(11), "attention with causal = false has no chunks" + where());
  if (const std::string within = word(call, 8, "segments"); within != "segments")
    wrong(call.at(8), "attention within " + mekik::quoted(within) + " is known only in programs for images, which are not built yet");
  const std::int64_t heads = q.shape[0], window = integer(call, 4, 0, 0);
  const double scale = number(call, 3, 1 / std::sqrt(static_cast<double>(q.shape[1]))), softcap = number(call, 5, 0),
               alibi = number(call, 9, 0);
  const std::uint32_t sinks = optional_vector(call, 6, {heads}, "list of sinks");
  const std::uint32_t tilt = alibi == 0 ? MEKIK_NONE : slopes(alibi, number(call, 10, 1), heads);
  const std::uint32_t segments = input("segments", MEKIK_DIM_TOKENS);
  const bool near = window != 0 || softcap != 0 || sinks != MEKIK_NONE || tilt != MEKIK_NONE;
  Datum out = new_rows(q.first, {heads, v.shape[1]}, near ? "attention_near" : "attention_full");
  if (near) emit(call.at(), op_attention_near, {q.index, k.index, v.index, segments, sinks, tilt}, {out.index}, {window}, {scale, softcap});
  else emit(call.at(), op_attention_full, {q.index, k.index, v.index, segments}, {out.index}, {}, {scale});
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
  const Datum &q = rows(call, 0, 2), &k = rows(call, 1, 2), &v = rows(call, 2, 2), &decay = rows(call, 3), &beta = rows(call, 4, 1);
  const std::int64_t hv = v.shape[0];
  const bool one_each = decay.shape == std::vector<std::int64_t>{hv} || decay.shape == std::vector<std::int64_t>{hv, k.shape[1]};
  if (q.shape != k.shape || hv % k.shape[0] != 0 || !one_each || beta.shape[0] != hv)
    wrong(call.at(), "gated_delta: q " + shape_text(q.shape) + ", k " + shape_text(k.shape) + ", v " + shape_text(v.shape) + ", decay " +
                         shape_text(decay.shape) + ", beta " + shape_text(beta.shape) + " do not go together" + where());
  const double scale = number(call, 5, kNeeded);
  const std::string spread = word(call, 6, "grouped");
  if (spread != "grouped" && spread != "tiled") wrong(call.at(6), "spread is one of 'grouped', 'tiled'" + where());
  const std::uint32_t kept = slot({hv, k.shape[1], v.shape[1]}, "recurrent");
  return emit_rows(call.at(), op_gated_delta, v, {q.index, k.index, v.index, decay.index, beta.index, kept}, {spread == "tiled" ? 1 : 0},
                   {scale});
}

}  // namespace mekik::program
