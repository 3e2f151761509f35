// Weight rows: which stored tensors a weight of a layer is made of, and how.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "program/model_reader.hpp"

namespace mekik::program {

namespace {

constexpr std::int64_t kMaxNumbers = std::int64_t{1} << 48;
constexpr std::int64_t kMaxMade = std::int64_t{1} << 16;  // numbers that a page computes one by one

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  std::int64_t out = 1;
  for (const std::int64_t size : sizes) {
    if (size < 0 || (size > 0 && out > kMaxNumbers / size)) return -1;
    out *= size;
  }
  return out;
}

// Whether one shape can be seen as the other without regrouping columns: the sizes of one split or join those of the other.
bool refines(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  const auto tails = [](const std::vector<std::int64_t>& sizes) {
    std::vector<std::int64_t> out;
    std::int64_t tail = 1;
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
      if (*size == 1) continue;
      out.push_back(tail *= *size);
    }
    return out;
  };
  const auto ta = tails(a), tb = tails(b);
  const auto in = [](const std::vector<std::int64_t>& few, const std::vector<std::int64_t>& many) {
    return std::all_of(few.begin(), few.end(), [&](std::int64_t x) { return std::find(many.begin(), many.end(), x) != many.end(); });
  };
  return in(ta, tb) || in(tb, ta);
}

std::string named_shape(const WeightValue& of) {
  std::string out = "[";
  for (std::size_t i = 0; i < of.shape.size(); ++i) {
    if (i != 0) out += ", ";
    if (!of.size_labels[i].empty()) out += of.size_labels[i] + " = ";
    out += std::to_string(of.shape[i]);
  }
  return out + "]";
}

// Whether two layers name the same tensors: layers that share a block share its weights.
bool one_weight(const WeightValue& a, const WeightValue& b) {
  const auto piece = [](const Piece& p, const Piece& q) {
    return p.sources == q.sources && p.offset == q.offset && p.sizes == q.sizes && p.strides == q.strides;
  };
  const auto step = [](const ValueStep& s, const ValueStep& t) { return s.what == t.what && s.constant == t.constant; };
  return a.symbol == b.symbol && a.shape == b.shape && a.join_axis == b.join_axis && a.numbers.empty() && b.numbers.empty() &&
         std::equal(a.pieces.begin(), a.pieces.end(), b.pieces.begin(), b.pieces.end(), piece) &&
         std::equal(a.value.begin(), a.value.end(), b.value.begin(), b.value.end(), step);
}

}  // namespace

std::string ModelReader::label(const WeightValue& of) {
  return "weight " + mekik::quoted(of.symbol) + (of.layer >= 0 ? ", layer " + std::to_string(of.layer) : std::string{});
}

std::optional<std::uint32_t> ModelReader::weight(const std::string& symbol, std::optional<std::int64_t> layer,
                                                 const config::Origin& used_at, bool must) {
  const WeightRow* row = page_.weight(symbol);
  if (row == nullptr) wrong(used_at, "unknown weight " + mekik::quoted(symbol));
  // A row that does not mention the layer is one weight for all of them.
  const auto mentions = [](const NameText& name) {
    for (std::size_t at = name.text.find('{'); at != std::string::npos; at = name.text.find('{', at + 1)) {
      const std::string inside = name.text.substr(at + 1, name.text.find('}', at) - at - 1);
      for (std::size_t i = 0; i < inside.size(); ++i)
        if (inside[i] == 'l' && (i == 0 || std::isalnum(static_cast<unsigned char>(inside[i - 1])) == 0) &&
            (i + 1 == inside.size() || std::isalnum(static_cast<unsigned char>(inside[i + 1])) == 0))
          return true;
    }
    return false;
  };
  bool of_layer = false;
  for (const WeightSource& source : row->sources[format_]) {
    of_layer = of_layer || mentions(source.from);
    for (const WeightSource& part : source.join) of_layer = of_layer || mentions(part.from);
  }
  if (row->numbers) for_each_name(row->numbers->root, [&](const Expr& name) { of_layer = of_layer || name.text == "l"; });
  const std::int64_t at = of_layer && layer ? *layer : -1;
  const auto key = std::make_pair(symbol, at);
  if (const auto found = weight_cache_.find(key); found != weight_cache_.end()) return found->second;
  WeightValue out;
  out.symbol = symbol;
  out.layer = static_cast<std::int32_t>(at);
  out.origin = row->origin;
  if (row->numbers) return weight_cache_[key] = made_of_numbers(*row, std::move(out));
  bool found = false;
  for (const WeightSource& source : row->sources[format_])
    if ((found = fetch(source, out))) break;
  const std::optional<bool> due = presence(symbol, *row, out.layer);
  if (due && *due != found) misplaced_weight(symbol, *row, out, found);
  if (!found && !row->fallback.empty()) {
    if (row->fallback == symbol) wrong(row->fallback_origin, "weight " + mekik::quoted(symbol) + " has itself as its default");
    return weight_cache_[key] = weight(row->fallback, layer, used_at, must);
  }
  if (!found) {
    if (!must) return std::nullopt;
    if (row->optional || row->present.get(format_) != nullptr) return weight_cache_[key] = std::nullopt;
    missing_weight(symbol, *row, out);
  }
  check_shape(*row, out);
  if (const Expression* value = row->value.get(format_)) {
    for (const Piece& piece : out.pieces)
      for (const std::uint32_t source : piece.sources)
        if (!meta_.tensors[source].scheme.empty())
          wrong(row->origin, label(out) + ": a value is computed from float tensors only, " + mekik::quoted(meta_.tensors[source].name) +
                                 " is " + meta_.tensors[source].scheme);
    compile_value(*value, value->root, out, out.value);
  }
  const auto same = std::find_if(weights_.begin(), weights_.end(), [&](const WeightValue& other) { return one_weight(out, other); });
  if (same != weights_.end()) return weight_cache_[key] = static_cast<std::uint32_t>(same - weights_.begin());
  weights_.push_back(std::move(out));
  return weight_cache_[key] = static_cast<std::uint32_t>(weights_.size() - 1);
}

bool ModelReader::fetch(const WeightSource& source, WeightValue& out) {
  out.pieces.clear();
  out.join_axis.reset();
  if (source.join.empty()) return fetch_one(source, out);
  for (const WeightSource& part : source.join)
    if (!fetch_one(part, out)) return false;
  out.join_axis = source.axis;
  return true;
}

bool ModelReader::stored_as(const WeightSource& source, std::uint32_t tensor) const {
  if (source.scheme.empty()) return true;
  const TensorInfo& info = meta_.tensors[tensor];
  if (!info.scheme.empty()) return info.scheme == source.scheme;
  return source.scheme == (info.num == MEKIK_F32 ? "f32" : info.num == MEKIK_F16 ? "f16" : info.num == MEKIK_BF16 ? "bf16" : "float");
}

// Finds the tensor, or all of a stack. `stored`: the shape they have together.
bool ModelReader::find_sources(const WeightSource& source, const WeightValue& out, Piece& piece, std::vector<std::int64_t>& stored) {
  const std::optional<std::int64_t> layer = out.layer >= 0 ? std::optional<std::int64_t>{out.layer} : std::nullopt;
  const bool stacked = source.from.text.find("{e}") != std::string::npos;
  if (stacked != source.stack.has_value()) wrong(source.origin, "{e} in a name and stack belong together");
  const std::vector<std::string> first = spell(source.from, layer, "0");
  for (std::size_t s = 0; s < first.size(); ++s) {
    const auto index = tensor_index(first[s]);
    if (!index || !stored_as(source, *index)) continue;
    piece.sources = {*index};
    stored = meta_.tensors[*index].shape;
    if (!stacked) return true;
    Scope scope;
    scope.layer = layer;
    const std::int64_t count = whole(*source.stack, scope, 1, "stack");
    if (count > 65536) wrong(source.origin, "stack may be at most 65536");
    for (std::int64_t e = 1; e < count; ++e) {
      const std::string name = spell(source.from, layer, std::to_string(e))[s];
      const auto next = tensor_index(name);
      if (!next) wrong(source.origin, label(out) + ": " + mekik::quoted(first[s]) + " is in the file, " + mekik::quoted(name) + " is not");
      if (meta_.tensors[*next].shape != stored)
        wrong(source.origin, label(out) + ": " + mekik::quoted(name) + " has another shape than " + mekik::quoted(first[s]));
      piece.sources.push_back(*next);
    }
    stored.insert(stored.begin(), count);
    return true;
  }
  return false;
}

bool ModelReader::fetch_one(const WeightSource& source, WeightValue& out) {
  Piece piece;
  std::vector<std::int64_t> stored;
  if (!find_sources(source, out, piece, stored)) return false;
  if (product(stored) <= 0)
    wrong(source.origin, label(out) + ": " + mekik::quoted(meta_.tensors[piece.sources[0]].name) + " has shape " + shape_text(stored));
  apply_steps(source, out, std::move(stored), piece);
  out.pieces.push_back(std::move(piece));
  return true;
}

void ModelReader::apply_steps(const WeightSource& source, const WeightValue& of, std::vector<std::int64_t> stored, Piece& piece) {
  Scope scope;
  if (of.layer >= 0) scope.layer = of.layer;
  const std::string& tensor = meta_.tensors[piece.sources[0]].name;
  if (!source.view.empty()) {
    std::vector<std::int64_t> view;
    for (const Expression& size : source.view) view.push_back(whole(size, scope, 1, "a size of view"));
    if (product(view) != product(stored) || !refines(view, stored))
      wrong(source.origin, label(of) + ": view says " + shape_text(view) + ", " + tensor + " has " + shape_text(stored));
    stored = view;
    piece.steps.push_back({AxisStep::What::view, view});
  }
  piece.sizes = stored;
  piece.strides.assign(stored.size(), 1);
  for (std::size_t i = stored.size(); i-- > 1;) piece.strides[i - 1] = piece.strides[i] * stored[i];
  if (!source.take.empty()) {
    const std::int64_t axis = whole(source.take[0], scope, 0, "the axis of take"),
                       start = whole(source.take[1], scope, 0, "the start of take"),
                       count = whole(source.take[2], scope, 1, "the count of take");
    if (axis >= static_cast<std::int64_t>(piece.sizes.size()) || start + count > piece.sizes[static_cast<std::size_t>(axis)])
      wrong(source.origin, label(of) + ": take [" + std::to_string(axis) + ", " + std::to_string(start) + ", " + std::to_string(count) +
                               "] of " + tensor + " " + shape_text(piece.sizes));
    const auto a = static_cast<std::size_t>(axis);
    piece.offset += static_cast<std::uint64_t>(start * piece.strides[a]);
    piece.sizes[a] = count;
    piece.steps.push_back({AxisStep::What::take, {axis, start, count}});
  }
  if (source.order.empty()) return;
  std::vector<std::int64_t> sizes, strides;
  std::vector<bool> seen(piece.sizes.size());
  for (const std::int64_t axis : source.order) {
    if (source.order.size() != seen.size() || axis < 0 || axis >= static_cast<std::int64_t>(seen.size()) ||
        seen[static_cast<std::size_t>(axis)])
      wrong(source.origin, label(of) + ": order must name each of the " + std::to_string(seen.size()) + " axes once");
    seen[static_cast<std::size_t>(axis)] = true;
    sizes.push_back(piece.sizes[static_cast<std::size_t>(axis)]);
    strides.push_back(piece.strides[static_cast<std::size_t>(axis)]);
  }
  piece.sizes = std::move(sizes);
  piece.strides = std::move(strides);
  piece.steps.push_back({AxisStep::What::order, source.order});
}

void ModelReader::read_shape(const WeightRow& row, WeightValue& out) {
  Scope scope;
  if (out.layer >= 0) scope.layer = out.layer;
  for (const Expression& size : row.shape) {
    out.shape.push_back(whole(size, scope, 1, "a size of weight " + mekik::quoted(out.symbol)));
    out.size_labels.push_back(size.root.kind == Expr::Kind::name ? size.root.text : std::string{});
  }
}

// numbers = "..": constants of the model that no file holds, such as the decay of a head.
std::uint32_t ModelReader::made_of_numbers(const WeightRow& row, WeightValue out) {
  read_shape(row, out);
  const std::int64_t count = product(out.shape);
  if (count < 0 || count > kMaxMade) wrong(out.origin, label(out) + ": a page makes at most " + std::to_string(kMaxMade) + " numbers");
  Scope scope;
  if (out.layer >= 0) scope.layer = out.layer;
  for (std::int64_t i = 0; i < count; ++i) {
    const Datum place = Datum::of(i);
    scope.place = &place;
    const Datum value = evaluate(*row.numbers, scope);
    if (!value.number()) wrong(row.numbers->origin, label(out) + " is made of numbers, not " + type_name(value.type));
    if (!std::isfinite(value.as_real())) wrong(row.numbers->origin, label(out) + ": number " + std::to_string(i) + " is not finite");
    out.numbers.push_back(static_cast<float>(value.as_real()));
  }
  weights_.push_back(std::move(out));
  return static_cast<std::uint32_t>(weights_.size() - 1);
}

void ModelReader::check_shape(const WeightRow& row, WeightValue& out) {
  read_shape(row, out);
  std::int64_t total = 0;
  for (const Piece& piece : out.pieces) total += product(piece.sizes);
  const Piece& first = out.pieces[0];
  const bool plain = out.pieces.size() == 1 && first.steps.empty();
  if (product(out.shape) == total && (!plain || refines(out.shape, first.sizes))) return;
  const std::string tensor = meta_.tensors[first.sources[0]].name;
  std::vector<std::int64_t> stored = meta_.tensors[first.sources[0]].shape;
  if (first.sources.size() > 1) stored.insert(stored.begin(), static_cast<std::int64_t>(first.sources.size()));
  wrong(out.origin, label(out) + ": page says " + named_shape(out) + ", " + tensor + " has " + shape_text(stored) +
                        (plain ? std::string{} : ", " + std::to_string(total) + " numbers after its steps"));
}

// value = "1 + w" as postfix steps. Parts without w are constants.
void ModelReader::compile_value(const Expression& e, const Expr& node, const WeightValue& of, std::vector<ValueStep>& out) {
  bool uses_weight = false;
  for_each_name(node, [&](const Expr& name) { uses_weight = uses_weight || name.text == "w"; });
  if (!uses_weight) {
    Scope scope;
    if (of.layer >= 0) scope.layer = of.layer;
    const Datum value = evaluate(e, node, scope);
    if (!value.number()) wrong(e.at(node), std::string{"a value is made of w and numbers, not "} + type_name(value.type));
    out.push_back({ValueStep::What::constant, value.as_real()});
    return;
  }
  using What = ValueStep::What;
  if (node.kind == Expr::Kind::name) {
    out.push_back({What::weight, 0});
  } else if (node.kind == Expr::Kind::negate) {
    compile_value(e, node.args[0], of, out);
    out.push_back({What::negate, 0});
  } else if (node.kind == Expr::Kind::call && (node.text == "exp" || node.text == "log") && node.args.size() == 1) {
    compile_value(e, node.args[0], of, out);
    out.push_back({node.text == "exp" ? What::exponential : What::logarithm, 0});
  } else if (node.kind == Expr::Kind::binary && (node.text == "+" || node.text == "-" || node.text == "*")) {
    compile_value(e, node.args[0], of, out);
    compile_value(e, node.args[1], of, out);
    out.push_back({node.text == "+" ? What::add : node.text == "-" ? What::subtract : What::multiply, 0});
  } else {
    wrong(e.at(node), "a value is made of w, numbers, + - *, exp and log");
  }
}

}  // namespace mekik::program
