// Functions of the language that work row by row, and what they lower to.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.hpp"
#include "program/emitter.hpp"

namespace mekik::program {

namespace {

constexpr double kNeeded = std::numeric_limits<double>::quiet_NaN();  // for number(): there is no default

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  std::int64_t out = 1;
  for (const std::int64_t size : sizes) out *= size;
  return out;
}

}  // namespace

const std::vector<Emitter::FunctionRow>& Emitter::functions() {
  static const std::vector<FunctionRow> rows{
      {"embedding", "ids w", &Emitter::embedding},
      {"embedding_mix", "ids mix w", &Emitter::embedding_mix},
      {"linear", "x w b?", &Emitter::linear},
      {"rms_norm", "x w eps", &Emitter::rms_norm},
      {"layer_norm", "x w b eps", &Emitter::layer_norm},
      {"l2_norm", "x eps", &Emitter::l2_norm},
      {"mean", "x", &Emitter::mean},
      {"concat", "a b", &Emitter::concat},
      {"softmax", "x", &Emitter::softmax},
      {"act", "x kind", &Emitter::act},
      {"silu", "x", &Emitter::named_act},
      {"gelu", "x", &Emitter::named_act},
      {"gelu_tanh", "x", &Emitter::named_act},
      {"quick_gelu", "x", &Emitter::named_act},
      {"relu", "x", &Emitter::named_act},
      {"relu2", "x", &Emitter::named_act},
      {"sigmoid", "x", &Emitter::named_act},
      {"tanh", "x", &Emitter::named_act},
      {"softplus", "x", &Emitter::named_act},
      {"glu", "g u kind? limit? alpha?", &Emitter::glu},
      {"softcap", "x c", &Emitter::softcap},
      {"clamp", "x c high?", &Emitter::clamp},
      {"rope", "x table", &Emitter::rope},
      {"position_scale", "x every factor shift?", &Emitter::position_scale},
      {"attention", "q k? v? scale? window? softcap? sinks? causal? within? alibi? alibi_scale? chunk? from?", &Emitter::attention},
      {"mla_attention", "q_nope q_rot c k_rot k_b v_b scale", &Emitter::mla_attention},
      {"conv", "x w b? kind?", &Emitter::conv},
      {"ssm_scan", "x dt A B C D", &Emitter::ssm_scan},
      {"gated_delta", "q k v decay beta scale spread?", &Emitter::gated_delta},
      {"moe_route", "logits top score? bias? groups? top_groups? group_score? normalize? scale?", &Emitter::moe_route},
      {"moe_linear", "x w route b?", &Emitter::moe_linear},
      {"moe_combine", "y route?", &Emitter::moe_combine},
      {"moe_route_mixer", "logits top width", &Emitter::moe_route_mixer},
      {"moe_scale", "route s", &Emitter::moe_scale},
      {"moe_spread", "x route", &Emitter::moe_spread},
      {"take_rows", "x rows?", &Emitter::take_rows},
      {"put_rows", "x y rows add?", &Emitter::put_rows},
      {"pool", "x kind", &Emitter::pool},
      {"split", "x a b *", &Emitter::split},
      {"part", "x start count", &Emitter::part},
      {"view", "x a b?", &Emitter::view},
      {"fold_rows", "x n", &Emitter::fold_rows},
  };
  return rows;
}

Datum Emitter::embedding(Call& call) {
  const Datum& list = ids(call, 0);
  const WeightValue& w = weight(call, 1, 2);
  Datum out = new_rows(list.first, {w.shape[1]}, "embed");
  out.size_labels = {w.size_labels[1]};
  emit(call.at(), op_embed, {list.index, weight_tensor(call.args[1].index, WeightUse::matrix)}, {out.index});
  return out;
}

Datum Emitter::embedding_mix(Call& call) {
  wrong(call.at(), "embedding_mix needs place_ids and place_mix, which only programs for images have; those are not built yet");
}

Datum Emitter::linear(Call& call) {
  const Datum& x = rows(call, 0);
  const WeightValue& w = weight(call, 1);
  const std::int64_t k = w.shape.back();
  if (w.shape.size() < 2) wrong(call.at(1), "linear needs a weight of two or three sizes; " + weight_text(call.args[1]) + where());
  if (product(x.shape) != k)
    wrong(call.at(),
          "linear: " + rows_text(x) + " does not meet " + weight_text(call.args[1]) + " (input size " + std::to_string(k) + ")" + where(),
          "the weight is described at " + source_place(w.origin) + ", the rows are " + mekik::quoted(out_.tensors[x.index].name));
  std::vector<std::int64_t> shape(w.shape.begin(), w.shape.end() - 1);
  Datum out = new_rows(x.first, shape, "linear");
  out.size_labels.assign(w.size_labels.begin(), w.size_labels.end() - 1);
  const std::uint32_t bias = optional_vector(call, 2, shape, "bias");
  emit(call.at(), op_linear, {x.index, weight_tensor(call.args[1].index, WeightUse::matrix), bias}, {out.index});
  return out;
}

Datum Emitter::rms_norm(Call& call) {
  const Datum& x = rows(call, 0);
  const std::uint32_t w = norm_weight(call, 1, x);
  return emit_rows(call.at(), op_rms_norm, x, {x.index, w}, {}, {epsilon(call, 2)});
}

Datum Emitter::layer_norm(Call& call) {
  const Datum& x = rows(call, 0);
  const std::uint32_t w = norm_weight(call, 1, x), b = norm_weight(call, 2, x);
  return emit_rows(call.at(), op_layer_norm, x, {x.index, w, b}, {}, {epsilon(call, 3)});
}

Datum Emitter::l2_norm(Call& call) {
  const Datum& x = rows(call, 0);
  return emit_rows(call.at(), op_l2_norm, x, {x.index}, {}, {epsilon(call, 1)});
}

Datum Emitter::concat(Call& call) {
  const Datum &a = rows(call, 0), &b = rows(call, 1);
  same_first(call, a, b);
  std::vector<std::int64_t> shape = a.shape;
  shape.back() += b.shape.back();
  if (a.shape.size() != b.shape.size() || (shape.size() == 2 && a.shape[0] != b.shape[0]))
    wrong(call.at(), "concat: " + rows_text(a) + " and " + shape_text(b.shape) + " differ before the last size" + where());
  Datum out = new_rows(a.first, shape, "concat");
  emit(call.at(), op_concat, {a.index, b.index}, {out.index});
  return out;
}

Datum Emitter::mean(Call& call) {
  const Datum& x = rows(call, 0);
  std::vector<std::int64_t> shape = x.shape;
  shape.back() = 1;
  Datum out = new_rows(x.first, shape, "mean");
  emit(call.at(), op_mean, {x.index}, {out.index});
  return out;
}

Datum Emitter::softmax(Call& call) {
  const Datum& x = rows(call, 0);
  return emit_rows(call.at(), op_softmax, x, {x.index});
}

Datum Emitter::act(Call& call) {
  const Datum& x = rows(call, 0);
  const std::int64_t code = kind(call, 1, false);
  return code == 0 ? x : emit_rows(call.at(), op_act, x, {x.index}, {code});
}

Datum Emitter::named_act(Call& call) {
  const Datum& x = rows(call, 0);
  return emit_rows(call.at(), op_act, x, {x.index}, {activation_kind(call.node.text, false)});
}

Datum Emitter::glu(Call& call) {
  const Datum &g = rows(call, 0), &u = rows(call, 1);
  same_first(call, g, u);
  if (g.shape != u.shape) wrong(call.at(), "glu: row shapes " + shape_text(g.shape) + " and " + shape_text(u.shape) + " differ" + where());
  const std::int64_t code = absent(call, 2) ? 1 : kind(call, 2, true);
  const bool clamped = code == 16;
  if (!clamped && (!absent(call, 3) || !absent(call, 4)))
    wrong(call.at(), "glu: limit and alpha belong to the kind 'swiglu_clamped'" + where());
  const double limit = clamped ? number(call, 3, kNeeded) : 0, alpha = clamped ? number(call, 4, kNeeded) : 0;
  return emit_rows(call.at(), op_glu, g, {g.index, u.index}, {code}, {limit, alpha});
}

Datum Emitter::softcap(Call& call) {
  const Datum& x = rows(call, 0);
  const double c = number(call, 1, 0);
  return c == 0 ? x : emit_rows(call.at(), op_softcap, x, {x.index}, {}, {c});
}

Datum Emitter::clamp(Call& call) {
  const Datum& x = rows(call, 0);
  if (!absent(call, 2)) {  // from low to high; either may be infinite
    const double low = bound(call, 1), high = bound(call, 2);
    if (low > high) wrong(call.at(1), "clamp: from " + to_text(call.args[1]) + " to " + to_text(call.args[2]) + where());
    return std::isinf(low) && std::isinf(high) ? x : emit_rows(call.at(), op_clamp, x, {x.index}, {}, {low, high});
  }
  const double c = number(call, 1, 0);
  return c == 0 ? x : emit_rows(call.at(), op_clamp, x, {x.index}, {}, {-c, c});
}

Datum Emitter::rope(Call& call) {
  const Datum& x = rows(call, 0);
  if (call.args[1].type != Datum::Type::table)
    wrong(call.at(1), std::string{"rope needs a rotary table here, not "} + type_name(call.args[1].type) + where());
  const TableValue& table = tables_[call.args[1].index];
  if (x.first != MEKIK_DIM_TOKENS) wrong(call.at(0), "rope works on rows of all tokens" + where());
  if (table.dim > x.shape.back())
    wrong(call.at(0), "rope: table " + mekik::quoted(table.name) + " turns " + std::to_string(table.dim) + " columns of a last size of " +
                          std::to_string(x.shape.back()) + where());
  // The operation turns each head of a row; a row of one size is one head.
  const Datum heads = x.shape.size() == 1 ? view_of(x, 0, {1, x.shape[0]}) : x;
  Datum out = emit_rows(call.at(), op_rope, heads, {heads.index, table_tensor(call.args[1].index), input("positions", MEKIK_DIM_TOKENS)},
                        {table.dim, table.pairs}, {table.magnitude});
  return x.shape.size() == 1 ? view_of(out, 0, x.shape) : out;
}

// x * (1 + factor * ln(1 + floor((position + shift) / every)))
Datum Emitter::position_scale(Call& call) {
  const Datum& x = rows(call, 0);
  const double every = number(call, 1, kNeeded), factor = number(call, 2, kNeeded);
  const std::int64_t shift = integer(call, 3, 0, 0);
  if (x.first != MEKIK_DIM_TOKENS) wrong(call.at(0), "position_scale works on rows of all tokens" + where());
  if (!(every > 0) || shift > 1) wrong(call.at(1), "position_scale: every must be positive, shift 0 or 1" + where());
  return factor == 0
             ? x
             : emit_rows(call.at(), op_position_scale, x, {x.index, input("positions", MEKIK_DIM_TOKENS)}, {shift}, {every, factor});
}

Datum Emitter::take_rows(Call& call) {
  const Datum& x = rows(call, 0);
  if (!absent(call, 1))
    wrong(call.at(1), "take_rows by another list than the output rows is known only in programs for images, which are not built yet");
  if (x.first == MEKIK_DIM_ROWS) return x;
  if (x.first != MEKIK_DIM_TOKENS) wrong(call.at(0), "take_rows works on rows of all tokens");
  Datum out = new_rows(MEKIK_DIM_ROWS, x.shape, "take_rows");
  out.size_labels = x.size_labels;
  emit(call.at(), op_take_rows, {x.index, input("rows", MEKIK_DIM_ROWS)}, {out.index});
  return out;
}

Datum Emitter::put_rows(Call& call) {
  const Datum& x = rows(call, 0);
  if (absent(call, 1)) return x;
  const Datum& y = rows(call, 1);
  const Datum& list = ids(call, 2);
  if (x.shape != y.shape)
    wrong(call.at(1), "put_rows: row shapes " + shape_text(x.shape) + " and " + shape_text(y.shape) + " differ" + where());
  return emit_rows(call.at(), op_put_rows, x, {x.index, y.index, list.index}, {boolean(call, 3, false) ? 1 : 0});
}

Datum Emitter::split(Call& call) {
  const Datum& x = rows(call, 0, 1);
  std::vector<Datum> parts;
  std::vector<std::int64_t> sizes;
  std::string sum;
  std::int64_t total = 0;
  for (std::size_t i = 1; i < call.args.size(); ++i) {
    sizes.push_back(integer(call, i, 0, 1));
    total += sizes.back();
    sum += (i == 1 ? "" : " + ") + std::to_string(sizes.back());
  }
  if (total != x.shape[0]) wrong(call.at(), "split: " + sum + " of a row of " + std::to_string(x.shape[0]) + where());
  std::uint64_t column = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(view_of(x, column, {size}));
    column += static_cast<std::uint64_t>(size);
  }
  return Datum::of(std::move(parts));
}

Datum Emitter::part(Call& call) {
  const Datum& x = rows(call, 0, 1);
  const std::int64_t start = integer(call, 1, 0, 0), count = integer(call, 2, 0, 1);
  if (start + count > x.shape[0])
    wrong(call.at(), "part: columns " + std::to_string(start) + " to " + std::to_string(start + count) + " of a row of " +
                         std::to_string(x.shape[0]) + where());
  return view_of(x, static_cast<std::uint64_t>(start), {count});
}

Datum Emitter::view(Call& call) {
  const Datum& x = rows(call, 0);
  std::vector<std::int64_t> shape{integer(call, 1, 0, 1)};
  if (!absent(call, 2)) shape.push_back(integer(call, 2, 0, 1));
  if (product(shape) != product(x.shape)) wrong(call.at(), "view: " + rows_text(x) + " cannot be seen as " + shape_text(shape) + where());
  return view_of(x, 0, shape);
}

Datum Emitter::fold_rows(Call& call) { wrong(call.at(), "fold_rows is known only in programs for images, which are not built yet"); }

const std::vector<std::string>& poolings() {
  static const std::vector<std::string> kinds{"mean", "cls", "last", "max", "weightedmean", "mean_sqrt_len"};
  return kinds;
}

Datum Emitter::pool(Call& call) {
  const Datum& x = rows(call, 0);
  const std::string how = word(call, 1, "none");
  if (how == "none") return x;
  const std::vector<std::string>& kinds = poolings();
  const auto found = std::find(kinds.begin(), kinds.end(), how);
  if (found == kinds.end())
    wrong(call.at(1), "unknown pooling " + mekik::quoted(how) + "; known are " + join(kinds, ", ") + ", none" + said_by(call.node));
  if (x.first != MEKIK_DIM_TOKENS) wrong(call.at(0), "pool works on rows of all tokens");
  Datum out = new_rows(MEKIK_DIM_SEQS, x.shape, "pool");
  emit(call.at(), op_pool, {x.index}, {out.index}, {found - kinds.begin()});
  return out;
}

}  // namespace mekik::program
