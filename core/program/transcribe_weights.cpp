// Weight rows turned around: from the page's order to the tensors of the other format.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "program/transcriber.hpp"

namespace mekik::program {

namespace {

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  std::int64_t out = 1;
  for (const std::int64_t size : sizes) out *= size;
  return out;
}

std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return strides;
}

// The sizes with neighbours joined until `rank` are left: all in one, rows and the last, or the first, those between and the last.
std::vector<std::int64_t> joined(const std::vector<std::int64_t>& sizes, std::size_t rank) {
  if (sizes.size() <= rank) return sizes;
  if (rank <= 1) return {product(sizes)};
  std::vector<std::int64_t> out;
  if (rank == 3) out.push_back(sizes.front());
  out.push_back(product({sizes.begin() + static_cast<std::ptrdiff_t>(rank - 2), sizes.end() - 1}));
  out.push_back(sizes.back());
  return out;
}

bool mentions_weight(const Expr& node) {
  bool out = false;
  for_each_name(node, [&](const Expr& name) { out = out || name.text == "w"; });
  return out;
}

}  // namespace

// What takes `node`, a value computed from w, back to w.
std::vector<Undo> Transcriber::undo_of(const WeightValue& value, const Expression& e, const Expr& node) {
  Scope scope;
  if (value.layer >= 0) scope.layer = value.layer;
  const auto constant = [&](const Expr& of) {
    const Datum found = evaluate(e, of, scope);
    if (!found.number()) wrong(e.at(of), std::string{"a value is made of w and numbers, not "} + type_name(found.type));
    return found.as_real();
  };
  std::vector<Undo> out;
  const auto then = [&](const Expr& inner) {
    const std::vector<Undo> more = undo_of(value, e, inner);
    out.insert(out.end(), more.begin(), more.end());
    return out;
  };
  if (node.kind == Expr::Kind::name) return out;
  if (node.kind == Expr::Kind::negate) {
    out.push_back({Undo::What::multiply, -1});
    return then(node.args[0]);
  }
  if (node.kind == Expr::Kind::call && (node.text == "exp" || node.text == "log")) {
    out.push_back({node.text == "exp" ? Undo::What::logarithm : Undo::What::exponential, 0});
    return then(node.args[0]);
  }
  const bool left = node.kind == Expr::Kind::binary && mentions_weight(node.args[0]);
  if (node.kind != Expr::Kind::binary || left == mentions_weight(node.args[1]))
    wrong(e.at(node), label(value) + ": its value cannot be undone, so it cannot be written in this format");
  const double c = constant(node.args[left ? 1 : 0]);
  if (node.text == "+") {
    out.push_back({Undo::What::add, -c});
  } else if (node.text == "-") {
    if (!left) out.push_back({Undo::What::multiply, -1});
    out.push_back({Undo::What::add, c});
  } else if (c == 0) {
    wrong(e.at(node), label(value) + ": its value cannot be undone, for w is multiplied by 0");
  } else {
    out.push_back({Undo::What::multiply, 1 / c});
  }
  return then(node.args[left ? 0 : 1]);
}

// `natural`: the sizes that the values have where the page says nothing else. `rank`: of the tensor as it is stored.
Transcriber::Slot Transcriber::steps(const WeightValue& value, const WeightSource& source, std::vector<std::int64_t> natural,
                                     std::size_t rank) {
  Scope scope;
  if (value.layer >= 0) scope.layer = value.layer;
  Slot out;
  out.rank = rank;
  out.where = label(value);
  const std::vector<std::int64_t> plain = joined(natural, rank);
  out.order = source.order;
  for (const Expression& size : source.split) out.split.push_back(whole(size, scope, 1, "a size of split"));
  const std::size_t seen = source.view.empty() ? plain.size() : source.view.size();
  const std::size_t axes = out.split.empty() ? seen : out.split.size();
  for (std::size_t i = 0; i < axes && source.order.empty(); ++i) out.order.push_back(static_cast<std::int64_t>(i));
  std::vector<bool> named(axes, false);
  for (const std::int64_t axis : out.order)
    if (axis >= 0 && static_cast<std::size_t>(axis) < axes) named[static_cast<std::size_t>(axis)] = true;
  if (out.order.size() != axes || std::find(named.begin(), named.end(), false) != named.end())
    wrong(source.origin, label(value) + ": order must name each axis once");
  std::vector<std::int64_t> taken(seen);
  out.viewed = !source.view.empty();
  if (!out.split.empty() && !out.viewed) wrong(source.origin, label(value) + ": split needs a view");
  for (std::size_t i = 0; i < seen; ++i) {
    if (out.viewed) taken[i] = whole(source.view[i], scope, 1, "a size of view");
    else taken[static_cast<std::size_t>(out.order[i])] = plain[i];  // what is written is turned back
  }
  out.view = taken;
  if (!source.take.empty()) {
    out.axis = whole(source.take[0], scope, 0, "the axis of take");
    out.start = whole(source.take[1], scope, 0, "the start of take");
    const std::int64_t count = whole(source.take[2], scope, 1, "the count of take");
    const auto axis = static_cast<std::size_t>(out.axis);
    if (axis >= seen || (out.viewed && out.start + count > taken[axis]) || (!out.viewed && count != taken[axis]))
      wrong(source.origin, label(value) + ": its take does not fit it");
    taken[axis] = count;
  }
  if (!out.split.empty()) {
    if (out.axis > 0 || product(out.split) != product(taken)) wrong(source.origin, label(value) + ": its split does not fit it");
    taken = out.split;
  }
  for (const std::int64_t axis : out.order) out.part.sizes.push_back(taken[static_cast<std::size_t>(axis)]);
  for (const Expression& size : source.stored) out.stored.push_back(whole(size, scope, 1, "a size of stored"));
  return out;
}

// One source of a row: `begun` has what the parts of a join share. Stacks become one tensor each.
void Transcriber::place_part(const WeightValue& value, const WeightSource& source, const Slot& begun,
                             std::vector<std::pair<std::string, Slot>>& out) {
  const std::optional<std::int64_t> layer = value.layer >= 0 ? std::optional<std::int64_t>{value.layer} : std::nullopt;
  if (!source.stack) {
    out.emplace_back(spell_in(target_, source.from, layer, {}), begun);
    return;
  }
  if (begun.viewed || begun.axis >= 0 || !source.order.empty())
    wrong(source.origin, label(value) + ": a stack whose tensors are cut or turned cannot be written");
  Slot one = begun;
  const std::int64_t count = begun.part.sizes[0], step = begun.part.from_strides[0];
  one.part.sizes.erase(one.part.sizes.begin());
  one.part.from_strides.erase(one.part.from_strides.begin());
  one.view = one.part.sizes;
  one.order.clear();
  for (std::size_t i = 0; i < one.view.size(); ++i) one.order.push_back(static_cast<std::int64_t>(i));
  for (std::int64_t e = 0; e < count; ++e) {
    out.emplace_back(spell_in(target_, source.from, layer, std::to_string(e)), one);
    one.part.from += step;
  }
}

void Transcriber::place(const WeightValue& value, const WeightSource& source, const Transcript::Part& begun,
                        std::vector<std::pair<std::string, Slot>>& out) {
  const auto use = static_cast<WeightUse>(value.tensors.begin()->first);
  const std::size_t rank = use == WeightUse::vector ? 1 : use == WeightUse::matrix ? 2 : 3;
  const auto begin = [&](Slot& slot) {
    slot.part.weight = begun.weight;
    slot.part.factors = begun.factors;
    slot.part.undo = begun.undo;
  };
  if (source.join.empty()) {
    Slot slot = steps(value, source, value.shape, source.stack && rank < 3 ? std::min<std::size_t>(rank + 1, value.shape.size()) : rank);
    if (product(slot.part.sizes) != product(value.shape))
      wrong(source.origin, label(value) + " has " + shape_text(value.shape) + ", its place " + shape_text(slot.part.sizes));
    slot.part.from_strides = row_major(slot.part.sizes);
    begin(slot);
    return place_part(value, source, slot, out);
  }
  std::vector<Slot> parts;
  std::int64_t along = 0, total = 0;
  const auto axis = static_cast<std::size_t>(source.axis.value_or(0));
  for (const WeightSource& part : source.join) {
    if (part.view.empty())
      wrong(part.origin, label(value) + ": it is joined from tensors whose sizes the page does not say, so it cannot be cut into them");
    parts.push_back(steps(value, part, value.shape, rank));
    if (axis >= parts.back().part.sizes.size()) wrong(part.origin, label(value) + ": it has no axis " + std::to_string(axis));
    along += parts.back().part.sizes[axis];
    total += product(parts.back().part.sizes);
  }
  if (total != product(value.shape)) wrong(source.origin, label(value) + ": the parts of its join have other sizes than itself");
  std::int64_t before = 0, elements = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Slot& slot = parts[i];
    std::vector<std::int64_t> whole = slot.part.sizes;
    if (source.axis) whole[axis] = along;
    slot.part.from_strides = row_major(whole);
    slot.part.from = source.axis ? before * slot.part.from_strides[axis] : elements;
    before += slot.part.sizes[axis];
    elements += product(slot.part.sizes);
    begin(slot);
    place_part(value, source.join[i], slot, out);
  }
}

// What [fold] multiplies the weight's rows by.
std::vector<float> Transcriber::factors_of(const WeightValue& value) {
  Scope scope;
  if (value.layer >= 0) scope.layer = value.layer;
  const auto rows = static_cast<std::size_t>(value.shape.size() == 1 ? value.shape[0] : product(value.shape) / value.shape.back());
  std::vector<float> out;
  for (const auto& [symbol, expression] : page_.fold[target_].times) {
    if (symbol != value.symbol) continue;
    const Datum factor = unfolded_->evaluate(expression, scope);
    if (factor.number()) out.assign(rows, static_cast<float>(factor.as_real()));
    for (const Datum& run : factor.list) {
      if (run.list.size() != 2 || run.list[0].type != Datum::Type::integer || !run.list[1].number())
        wrong(expression.origin, "times is a number, or a list of [rows, number]");
      out.insert(out.end(), static_cast<std::size_t>(run.list[0].integer), static_cast<float>(run.list[1].as_real()));
    }
    if (out.size() != rows)
      wrong(expression.origin, label(value) + " has " + std::to_string(rows) + " rows, its factors " + std::to_string(out.size()));
  }
  if (std::all_of(out.begin(), out.end(), [](float f) { return f == 1; })) out.clear();
  return out;
}

// The first of the row's sources that turns around; what is wrong with the first is what is said.
void Transcriber::weight_row(const WeightValue& value, const WeightRow& row, Transcript& out) {
  std::optional<std::uint32_t> weight;
  for (std::uint32_t i = 0; i < out.program.weights.size() && !weight; ++i) {
    const WeightRecipe& recipe = out.program.weights[i];
    if (recipe.host.empty() && recipe.symbol == value.symbol && recipe.layer == value.layer) weight = i;
  }
  if (!weight) return;  // nobody reads it, or a rotary table does
  Transcript::Part begun;
  begun.weight = *weight;
  begun.factors = factors_of(value);
  if (const Expression* computed = row.value.get(target_)) begun.undo = undo_of(value, *computed, computed->root);
  std::optional<Mistake> first;
  std::vector<WeightSource> sources = row.sources[target_];
  for (const auto& [symbol, source] : page_.fold[target_].weights)
    if (symbol == value.symbol) sources = {source};
  for (const WeightSource& source : sources) {
    if (!source.scheme.empty()) continue;  // a tensor that somebody else quantized
    try {
      std::vector<std::pair<std::string, Slot>> placed;
      place(value, source, begun, placed);
      for (auto& [name, slot] : placed) {
        std::vector<Slot>& slots = slots_[name];
        if (slots.empty()) order_.push_back(name);
        slots.push_back(std::move(slot));
      }
      return;
    } catch (const Mistake& mistake) {
      if (!first) first = mistake;
    }
  }
  if (first) throw *first;
  wrong(row.origin, label(value) + " has no place in " + kFormats[target_] + ": page " + page_.name + " names no tensor for it there");
}

void Transcriber::weights(Transcript& out) {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const WeightValue value = weights_[i];  // expressions of its row may resolve further weights
    if (const WeightRow* row = page_.weight(value.symbol); row != nullptr && !value.tensors.empty()) weight_row(value, *row, out);
  }
  finish(out);
}

// All parts of a tensor are known: its sizes are, too.
void Transcriber::finish(Transcript& out) {
  for (const std::string& name : order_) {
    std::vector<Slot>& slots = slots_[name];
    Slot& first = slots[0];
    std::vector<std::int64_t> view = first.view;
    for (const Slot& slot : slots) {
      if (slot.axis < 0 || slot.viewed) continue;
      auto& size = view[static_cast<std::size_t>(slot.axis)];
      size = std::max(
          size,
          slot.start +
              slot.part.sizes[static_cast<std::size_t>(std::find(slot.order.begin(), slot.order.end(), slot.axis) - slot.order.begin())]);
    }
    Transcript::Tensor tensor;
    tensor.name = name;
    tensor.shape = first.stored.empty() ? joined(view, first.rank) : first.stored;
    tensor.small = tensor.shape.size() == 1;
    std::int64_t covered = 0;
    for (Slot& slot : slots) {
      if (!slot.viewed) slot.view = view;
      const std::vector<std::int64_t> strides = row_major(slot.view);
      if (product(slot.view) != product(view))
        wrong(page_.origin, slot.where + ": what shares tensor " + mekik::quoted(name) + " with it sees it differently");
      const std::vector<std::int64_t> own = slot.split.empty() ? strides : row_major(slot.split);
      for (const std::int64_t axis : slot.order) slot.part.to_strides.push_back(own[static_cast<std::size_t>(axis)]);
      if (slot.axis >= 0) slot.part.to = slot.start * strides[static_cast<std::size_t>(slot.axis)];
      covered += product(slot.part.sizes);
      tensor.parts.push_back(std::move(slot.part));
    }
    if (covered != product(view) || product(tensor.shape) != product(view))
      wrong(page_.origin, first.where + ": only " + std::to_string(covered) + " of the " + std::to_string(product(view)) +
                              " numbers of tensor " + mekik::quoted(name) + " are known");
    out.tensors.push_back(std::move(tensor));
  }
}

}  // namespace mekik::program
