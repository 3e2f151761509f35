// Mixtures of experts.
#include <cmath>
#include <limits>

#include "base/text.hpp"
#include "program/emitter.hpp"

namespace mekik::program {

namespace {

constexpr double kNeeded = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Datum Emitter::new_route(const Datum& logits, std::int64_t top) {
  Datum out = new_rows(logits.first, {top}, "ids");
  out_.tensors[out.index].scheme = "i32";
  out.weights = new_rows(logits.first, {top}, "weights").index;
  out.type = Datum::Type::route;
  out.shape = {top, logits.shape[0]};
  return out;
}

// moe_route(logits, top, score, bias, groups, top_groups, group_score, normalize, scale)
Datum Emitter::moe_route(Call& call) {
  const Datum& logits = rows(call, 0, 1);
  const std::int64_t experts = logits.shape[0], top = integer(call, 1, 0, 1), groups = integer(call, 4, 1, 0),
                     top_groups = integer(call, 5, 1, 0);
  if (top > experts) wrong(call.at(1), "moe_route: " + std::to_string(top) + " of " + std::to_string(experts) + " experts" + where());
  const std::string score = word(call, 2, "softmax"), group_score = word(call, 6, "top2");
  const std::int64_t code = score == "softmax"         ? 0
                            : score == "sigmoid"       ? 1
                            : score == "softmax_top"   ? 2
                            : score == "sqrt_softplus" ? 3
                                                       : -1;
  if (code < 0) wrong(call.at(2), "score is one of 'softmax', 'sigmoid', 'softmax_top', 'sqrt_softplus'" + where());
  if (group_score != "top2" && group_score != "max") wrong(call.at(6), "group_score is one of 'top2', 'max'" + where());
  const bool grouped = groups > 1;
  if (grouped && (experts % groups != 0 || top_groups < 1 || top_groups > groups || top > experts / groups * top_groups))
    wrong(call.at(4), "moe_route: " + std::to_string(top_groups) + " of " + std::to_string(groups) + " groups of " +
                          std::to_string(experts) + " experts cannot give " + std::to_string(top) + where());
  const std::uint32_t bias = optional_vector(call, 3, {experts}, "bias");
  Datum out = new_route(logits, top);
  emit(call.at(), op_moe_route, {logits.index, bias}, {out.index, out.weights},
       {top, code, grouped ? groups : 1, grouped ? top_groups : 1, group_score == "max" ? 1 : 0, boolean(call, 7, false) ? 1 : 0},
       {number(call, 8, 1)});
  return out;
}

// SparseMixer (Liu et al. 2023): each rank's softmax is over the logits near its own.
Datum Emitter::moe_route_mixer(Call& call) {
  const Datum& logits = rows(call, 0, 1);
  const std::int64_t top = integer(call, 1, 0, 1);
  const double width = number(call, 2, kNeeded);
  if (top > logits.shape[0])
    wrong(call.at(1), "moe_route_mixer: " + std::to_string(top) + " of " + std::to_string(logits.shape[0]) + " experts" + where());
  if (width < 0) wrong(call.at(2), "moe_route_mixer: a width below 0" + where());
  Datum out = new_route(logits, top);
  emit(call.at(), op_moe_route_mixer, {logits.index}, {out.index, out.weights}, {top}, {width});
  return out;
}

// The same experts, each weight times a number of its expert.
Datum Emitter::moe_scale(Call& call) {
  Datum out = route(call, 0);
  const std::uint32_t s = optional_vector(call, 1, {out.shape[1]}, "number for each expert");
  if (s == MEKIK_NONE) return out;
  const Datum weights = new_rows(out.first, {out.shape[0]}, "weights");
  emit(call.at(), op_moe_scale, {out.weights, out.index, s}, {weights.index});
  out.weights = weights.index;
  return out;
}

// x once for each chosen expert, times its weight.
Datum Emitter::moe_spread(Call& call) {
  const Datum& x = rows(call, 0, 1);
  const Datum& route = this->route(call, 1);
  same_first(call, x, route);
  Datum out = new_rows(x.first, {route.shape[0], x.shape[0]}, "moe_spread");
  emit(call.at(), op_moe_spread, {x.index, route.weights}, {out.index});
  return out;
}

Datum Emitter::moe_linear(Call& call) {
  const Datum& x = rows(call, 0);
  const WeightValue& w = weight(call, 1, 3);
  const Datum& route = this->route(call, 2);
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
  std::uint32_t weights = MEKIK_NONE;
  if (!absent(call, 1)) {
    const Datum& route = this->route(call, 1);
    same_first(call, y, route);
    if (y.shape[0] != route.shape[0])
      wrong(call.at(), "moe_combine: " + rows_text(y) + " are not " + std::to_string(route.shape[0]) + " rows of experts" + where());
    weights = route.weights;
  }
  Datum out = new_rows(y.first, {y.shape[1]}, "moe_combine");
  emit(call.at(), op_moe_combine, {y.index, weights}, {out.index});
  return out;
}

}  // namespace mekik::program
