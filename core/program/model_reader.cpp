// Evaluation of expressions and hyperparameters.
#include "program/model_reader.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "base/text.hpp"

namespace mekik::program {

namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;

Datum poison() {
  Datum out;
  out.type = Datum::Type::poison;
  return out;
}

}  // namespace

Datum ModelReader::operand_name(const Expression& e, const Expr& node, const Scope&) {
  wrong(e.at(node), mekik::quoted(node.text) + " is known only to lines of a program; constants are needed here");
}
Datum ModelReader::operand_call(const Expression& e, const Expr& node, std::vector<Datum>&, const Scope&) {
  wrong(e.at(node), node.text + " works on rows; constants are needed here");
}
Datum ModelReader::operand_binary(const Expression& e, const Expr& node, const Datum&, const Datum&) {
  wrong(e.at(node), "constants are needed on both sides of " + node.text);
}
std::vector<std::string> ModelReader::more_names(const Scope&) const { return {}; }

std::string ModelReader::without_prefix(const std::string& name) {
  return name.compare(0, 1, "{") == 0 ? name.substr(name.find('}') + 1) : name;
}

bool ModelReader::condition(const Expression& e, const Scope& scope) {
  const Datum value = evaluate(e, scope);
  bool out = false;
  if (value.type == Datum::Type::poison) throw Poisoned{};
  if (const std::string why = truth(value, out); !why.empty()) wrong(e.at(e.root), why);
  return out;
}

std::int64_t ModelReader::whole(const Expression& e, const Expr& node, const Scope& scope, std::int64_t least, std::string_view what) {
  const Datum value = evaluate(e, node, scope);
  if (value.type == Datum::Type::poison) throw Poisoned{};
  if (value.type != Datum::Type::integer)
    wrong(e.at(node),
          std::string{what} + " must be a whole number, not " + (value.number() ? to_text(value) : type_name(value.type)) + said_by(node));
  if (value.integer < least || value.integer > kMaxSize)
    wrong(e.at(node), std::string{what} + " must be at least " + std::to_string(least) + ", not " + to_text(value) + said_by(node));
  return value.integer;
}

Datum ModelReader::evaluate(const Expression& e, const Expr& node, const Scope& scope) {
  Datum out;
  std::string why;
  switch (node.kind) {
    case Expr::Kind::none:
      return out;
    case Expr::Kind::boolean:
      return Datum::of(node.boolean);
    case Expr::Kind::integer:
      return Datum::of(node.integer);
    case Expr::Kind::real:
      return Datum::of(node.real);
    case Expr::Kind::text:
      return Datum::of(node.text);
    case Expr::Kind::name:
      return name(e, node, scope);
    case Expr::Kind::call:
      return call(e, node, scope);
    case Expr::Kind::binary:
      return binary(e, node, scope);
    case Expr::Kind::list: {
      std::vector<Datum> items;
      for (const Expr& arg : node.args) items.push_back(evaluate(e, arg, scope));
      return Datum::of(std::move(items));
    }
    case Expr::Kind::index: {
      const Datum what = evaluate(e, node.args[0], scope), at = evaluate(e, node.args[1], scope);
      if (what.type == Datum::Type::poison || at.type == Datum::Type::poison) return poison();
      if (what.type == Datum::Type::none && what.boolean) return what;  // an output of a program that is not there
      why = apply_index(what, at, out);
      break;
    }
    case Expr::Kind::negate: {
      const Datum a = evaluate(e, node.args[0], scope);
      if (a.type == Datum::Type::poison) return a;
      if (!a.constant()) return operand_binary(e, node, a, Datum::of(std::int64_t{-1}));
      why = apply_negate(a, out);
      break;
    }
    case Expr::Kind::logical_not: {
      const Datum a = evaluate(e, node.args[0], scope);
      bool set = false;
      if (a.type == Datum::Type::poison) return a;
      why = truth(a, set);
      out = Datum::of(!set);
      break;
    }
  }
  if (!why.empty()) wrong(e.at(node), why);
  return out;
}

Datum ModelReader::binary(const Expression& e, const Expr& node, const Scope& scope) {
  const Datum a = evaluate(e, node.args[0], scope);
  Datum out;
  if (node.text == "and" || node.text == "or") {
    if (a.type == Datum::Type::poison) return a;
    bool left = false, right = false;
    if (const std::string why = truth(a, left); !why.empty()) wrong(e.at(node.args[0]), why);
    if (left == (node.text == "or")) return Datum::of(left);
    const Datum b = evaluate(e, node.args[1], scope);
    if (b.type == Datum::Type::poison) return b;
    if (const std::string why = truth(b, right); !why.empty()) wrong(e.at(node.args[1]), why);
    return Datum::of(right);
  }
  const Datum b = evaluate(e, node.args[1], scope);
  if (a.type == Datum::Type::poison) return a;
  if (b.type == Datum::Type::poison) return b;
  if (!a.constant() || !b.constant()) return operand_binary(e, node, a, b);
  if (const std::string why = apply_binary(node.text, a, b, out); !why.empty()) wrong(e.at(node), why + said_by(node));
  return out;
}

Datum ModelReader::call(const Expression& e, const Expr& node, const Scope& scope) {
  const auto takes = [&](std::size_t n) {
    if (node.args.size() != n)
      wrong(e.at(node), node.text + " takes " + std::to_string(n) + " arguments, not " + std::to_string(node.args.size()));
  };
  if (node.text == "choose") {
    takes(3);
    const Datum c = evaluate(e, node.args[0], scope);
    bool set = false;
    if (c.type == Datum::Type::poison) return c;
    if (const std::string why = truth(c, set); !why.empty()) wrong(e.at(node.args[0]), why);
    return evaluate(e, node.args[set ? 1 : 2], scope);
  }
  if (node.text == "by_layer") {
    takes(1);
    std::vector<Datum> items;
    Scope one{std::nullopt, nullptr, scope.stored};
    for (std::int64_t layer = 0, count = hparam("layers", e.at(node)).integer; layer < count; ++layer) {
      one.layer = layer;
      items.push_back(evaluate(e, node.args[0], one));
    }
    return Datum::of(std::move(items));
  }
  if (node.text == "has" || node.text == "dim") {
    takes(node.text == "has" ? 1 : 2);
    const Expr& symbol = node.args[0];
    if (symbol.kind != Expr::Kind::name || page_.weight(symbol.text) == nullptr)
      wrong(e.at(symbol), node.text + " needs the name of a weight");
    if (node.text == "dim") return size_in_file(e, node, scope);
    const bool there = weight(symbol.text, scope.layer ? *scope.layer : 0, e.at(symbol), false).has_value();
    if (scope.layer) note_presence(symbol.text, *scope.layer, there);
    return Datum::of(there);
  }
  std::vector<Datum> args;
  bool constants = true;
  for (const Expr& arg : node.args) {
    args.push_back(evaluate(e, arg, scope));
    constants = constants && args.back().constant();
  }
  for (const Datum& arg : args)  // after all of them, so that each may say what is wrong with it
    if (arg.type == Datum::Type::poison) return arg;
  if (!constant_function(node.text)) return operand_call(e, node, args, scope);
  if (!constants) wrong(e.at(node), node.text + " works on constants only");
  for (const std::string& named : node.names)
    if (!named.empty()) wrong(e.at(node), node.text + " takes no named arguments");
  Datum out;
  if (const std::string why = apply_function(node.text, args, out); !why.empty()) wrong(e.at(node), node.text + " " + why);
  return out;
}

Datum ModelReader::name(const Expression& e, const Expr& node, const Scope& scope) {
  if (scope.locals != nullptr)
    if (const auto found = scope.locals->find(node.text); found != scope.locals->end()) return found->second;
  if (node.text == "l" && scope.layer) return Datum::of(*scope.layer);
  if (node.text == "v" && scope.stored != nullptr) return *scope.stored;
  if (node.text == "i" && scope.place != nullptr) return *scope.place;
  if (page_.hparam(node.text) != nullptr) return hparam(node.text, e.at(node));
  if (scope.locals != nullptr) return operand_name(e, node, scope);
  std::vector<std::string> names;
  for (const auto& [symbol, row] : page_.hparams) names.push_back(symbol);
  const auto near = closest(node.text, names);
  const bool of_layer = node.text == "l";
  wrong(e.at(node),
        of_layer ? std::string{"there is no layer here; by_layer(..) gives a list of a value for each, taken in lines as NAME[l]"}
                 : "unknown symbol " + mekik::quoted(node.text),
        near && !of_layer ? "did you mean \"" + *near + "\"?" : "");
}

// dim(weight, axis): the size of the tensor as it is stored, where the metadata does not say it.
Datum ModelReader::size_in_file(const Expression& e, const Expr& node, const Scope& scope) {
  const std::string& symbol = node.args[0].text;
  const std::int64_t axis = whole(e, node.args[1], scope, 0, "the axis");
  for (const WeightSource& source : page_.weight(symbol)->sources[format_])
    for (const std::string& spelled : spell(source.from, scope.layer ? *scope.layer : 0, "0")) {
      const auto index = tensor_index(spelled);
      if (!index) continue;
      const std::vector<std::int64_t>& shape = meta_.tensors[*index].shape;
      if (static_cast<std::size_t>(axis) >= shape.size())
        wrong(e.at(node), mekik::quoted(spelled) + " has " + std::to_string(shape.size()) + " sizes");
      return Datum::of(shape[static_cast<std::size_t>(axis)]);
    }
  wrong(e.at(node), "dim: no tensor of weight " + mekik::quoted(symbol) + " is in the file");
}

Datum ModelReader::hparam(const std::string& symbol, const config::Origin& used_at) {
  if (const auto found = hparams_.find(symbol); found != hparams_.end()) {
    if (found->second.type == Datum::Type::poison) throw Poisoned{};
    return found->second;
  }
  const HparamRow* row = page_.hparam(symbol);
  if (row == nullptr) wrong(used_at, "unknown hyperparameter " + mekik::quoted(symbol));
  if (const auto again = std::find(in_progress_.begin(), in_progress_.end(), symbol); again != in_progress_.end()) {
    std::string chain;
    for (auto at = again; at != in_progress_.end(); ++at) chain += *at + " -> ";
    wrong(row->origin, "hparams: cycle " + chain + symbol);
  }
  in_progress_.push_back(symbol);
  Datum value;
  try {
    value = hparam_value(symbol, *row, used_at);
  } catch (...) {
    in_progress_.pop_back();
    hparams_[symbol] = poison();
    throw;
  }
  in_progress_.pop_back();
  hparams_[symbol] = value;
  return value;
}

bool ModelReader::stored(const std::string& symbol) {
  const HparamRow* row = page_.hparam(symbol);
  if (row == nullptr) return false;
  bool of_others = false;
  if (row->direct) for_each_name(row->direct->root, [&](const Expr& name) { of_others = of_others || stored(name.text); });
  if (of_others) return true;
  for (const NameText& name : row->names[format_])
    for (const std::string& spelled : spell(name, std::nullopt))
      if (config_value(spelled) != nullptr) return true;
  return false;
}

std::string ModelReader::said_by(const std::string& symbol) const {
  const auto found = said_.find(symbol);
  return found == said_.end() ? std::string{} : found->second;
}

std::string ModelReader::said_by(const Expr& node) const {
  std::vector<std::string> all;
  std::set<std::string> seen;
  const std::function<void(const Expr&)> collect = [&](const Expr& of) {
    for_each_name(of, [&](const Expr& name) {
      if (!seen.insert(name.text).second) return;
      if (const std::string said = said_by(name.text); !said.empty()) all.push_back(said);
      if (const HparamRow* row = page_.hparam(name.text); row != nullptr && row->direct) collect(row->direct->root);
    });
  };
  collect(node);
  return all.empty() ? std::string{} : "; the file says: " + join(all, ", ");
}

// What the metadata says, or what its leaving all of the row's keys out means. A key that is null is not left out.
std::optional<Datum> ModelReader::told(const std::string& symbol, const HparamRow& row) {
  bool null = false;
  for (const NameText& name : row.names[format_])
    for (const std::string& spelled : spell(name, std::nullopt)) {
      const json::value* found = config_node(spelled);
      null = null || found != nullptr;
      if (found == nullptr || found->is_null()) continue;
      const std::string text = json::serialize(*found);
      said_[symbol] = mekik::quoted(spelled) + " is " + (text.size() > 60 ? text.substr(0, 60) + "..." : text);
      Datum value;
      if (const std::string why = from_json(*found, value); !why.empty())
        wrong(row.origin, "metadata key " + mekik::quoted(spelled) + " " + why);
      return value;
    }
  std::optional<Datum> out = null ? std::nullopt : omitted(row, format_);
  if (out) assumed_.push_back(symbol + " = " + to_text(*out) + " (config.json leaves it out)");
  return out;
}

std::optional<Datum> ModelReader::omitted(const HparamRow& row, std::size_t format) const {
  if (kFormats[format] != std::string_view{"hf"}) return std::nullopt;
  for (const NameText& name : row.names[format])
    for (const auto& [key, meaning] : page_.omitted)
      if (key.find('.') == std::string::npos && key == without_prefix(name.text)) return meaning;
  return std::nullopt;
}

Datum ModelReader::hparam_value(const std::string& symbol, const HparamRow& row, const config::Origin& used_at) {
  if (symbol == "pooling")
    if (const std::string mode = pooling_module(!options_.pooling.empty()); !mode.empty()) return Datum::of(mode);
  if (row.direct) return evaluate(*row.direct, {});
  if (std::optional<Datum> value = told(symbol, row)) {
    const std::string stored = to_text(*value);
    for (const auto& [from, meaning] : row.map)
      if (from == stored) {
        value = meaning;
        break;
      }
    const Expression* after = row.value.get(format_);
    if (after == nullptr) return *value;
    Scope scope;
    scope.stored = &*value;
    return evaluate(*after, scope);
  }
  if (const Expression* otherwise = row.fallback.get(format_)) {
    Datum value = evaluate(*otherwise, {});
    const bool says_nothing = value.type == Datum::Type::list && value.list.empty();
    if (row.names[format_].empty() && !says_nothing)
      assumed_.push_back(symbol + " = " + to_text(value) + " (" + meta_.format + " does not store it)");
    return value;
  }
  if (row.optional) return {};
  missing_hparam(symbol, row, used_at);
}

void ModelReader::missing_hparam(const std::string& symbol, const HparamRow& row, const config::Origin& used_at) {
  std::string names;
  for (const NameText& name : row.names[format_])
    for (const std::string& spelled : spell(name, std::nullopt)) names += (names.empty() ? "no " : " or ") + mekik::quoted(spelled);
  names += names.empty() ? "the page names no " + meta_.format + " key for it" : std::string{" in the metadata"};
  wrong(row.origin, "hyperparameter " + mekik::quoted(symbol) + ": " + names + ", no default; first used at " + source_place(used_at));
}

}  // namespace mekik::program
