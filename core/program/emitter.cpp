// Tensors, views, operations and the checking of arguments.
#include "program/emitter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.hpp"

namespace mekik::program {

namespace {

constexpr std::size_t kMaxOps = 1000000;

}  // namespace

config::Origin Call::at(std::size_t arg) const { return expression.at(arg < node.args.size() ? node.args[arg] : node); }

Emitter::Emitter(const PageSpec& page, const ModelMeta& meta, const BuildOptions& options, config::Diagnostics& diagnostics)
    : ModelReader{page, meta, options}, diagnostics_{diagnostics} {
  out_.page = page.name;
}

std::string Emitter::fresh(const std::string& base) {
  const std::string name = layer_ ? "L" + std::to_string(*layer_) + "." + base : base;
  const int count = ++name_counts_[name];
  return count == 1 ? name : name + "." + std::to_string(count);
}

std::uint32_t Emitter::add_tensor(Tensor tensor) {
  out_.tensors.push_back(std::move(tensor));
  return static_cast<std::uint32_t>(out_.tensors.size() - 1);
}

std::uint32_t Emitter::input(const std::string& name, std::int64_t first) {
  const auto found = inputs_.find(name);
  if (found != inputs_.end()) return found->second;
  Tensor tensor;
  tensor.name = name;
  tensor.role = MEKIK_ROLE_INPUT;
  tensor.shape = {first};
  tensor.scheme = "i32";
  return inputs_[name] = add_tensor(std::move(tensor));
}

// The name of a temporary is that of its operation until a line assigns it to one of its own.
Datum Emitter::new_rows(std::int64_t first, std::vector<std::int64_t> shape, const std::string& base) {
  Datum out;
  out.type = Datum::Type::rows;
  out.first = first;
  out.shape = shape;
  out.size_labels.resize(shape.size());
  Tensor tensor;
  tensor.name = base;
  shape.insert(shape.begin(), first);
  tensor.shape = std::move(shape);
  out.index = add_tensor(std::move(tensor));
  return out;
}

Datum Emitter::view_of(const Datum& x, std::uint64_t column, std::vector<std::int64_t> shape) {
  if (column == 0 && shape == x.shape) return x;
  const Tensor source = out_.tensors[x.index];
  const std::uint32_t base = source.view_of != 0 ? source.view_of - 1 : x.index;
  Datum out = x;
  out.shape = shape;
  out.size_labels.assign(shape.size(), {});
  if (base != x.index && column + source.column == 0) {
    std::vector<std::int64_t> whole(out_.tensors[base].shape.begin() + 1, out_.tensors[base].shape.end());
    if (whole == shape) {  // back to what the buffer is
      out.index = base;
      return out;
    }
  }
  Tensor tensor;
  tensor.name = "view";
  shape.insert(shape.begin(), x.first);
  tensor.shape = std::move(shape);
  tensor.scheme = source.scheme;
  tensor.view_of = base + 1;
  tensor.column = source.column + column;
  out.index = add_tensor(std::move(tensor));
  return out;
}

std::uint32_t Emitter::weight_tensor(std::uint32_t index, WeightUse use) {
  WeightValue& value = weights_[index];
  const auto found = value.tensors.find(static_cast<int>(use));
  if (found != value.tensors.end()) return found->second;
  for (const Piece& piece : value.pieces)
    for (const std::uint32_t source : piece.sources) used_[source] = true;
  Tensor tensor;
  std::string note;
  tensor.role = MEKIK_ROLE_WEIGHT;
  WeightRecipe recipe = make_recipe(value, use, meta_, tensor.scheme, note);
  if (!note.empty()) notes_.push_back(note);
  tensor.name = value.layer >= 0 ? "L" + std::to_string(value.layer) + "." + value.symbol : value.symbol;
  const auto n = static_cast<std::int64_t>(recipe.n), k = static_cast<std::int64_t>(recipe.k);
  if (use == WeightUse::vector) tensor.shape = {k};
  else if (use == WeightUse::matrix) tensor.shape = {n, k};
  else tensor.shape = {static_cast<std::int64_t>(recipe.experts), n, k};
  tensor.weight = static_cast<std::int32_t>(out_.weights.size());
  out_.weights.push_back(std::move(recipe));
  return value.tensors[static_cast<int>(use)] = add_tensor(std::move(tensor));
}

std::uint32_t Emitter::table_tensor(std::uint32_t index) {
  TableValue& table = tables_[index];
  if (table.tensor) return *table.tensor;
  Tensor tensor;
  tensor.name = "rope:" + table.name;
  tensor.role = MEKIK_ROLE_WEIGHT;
  tensor.shape = {2, table.dim / 2};
  tensor.weight = static_cast<std::int32_t>(out_.weights.size());
  WeightRecipe recipe;
  recipe.symbol = table.name;
  recipe.n = 2;
  recipe.k = static_cast<std::uint64_t>(table.dim / 2);
  recipe.host = table.numbers;
  if (table.divisors) recipe.host_divisors = 1 + *table.divisors;
  out_.weights.push_back(std::move(recipe));
  table.tensor = add_tensor(std::move(tensor));
  return *table.tensor;
}

void Emitter::emit(const config::Origin& at, std::uint32_t code, std::vector<std::uint32_t> in, std::vector<std::uint32_t> out,
                   std::vector<std::int64_t> ints, std::vector<double> reals) {
  if (out_.ops.size() >= kMaxOps) wrong(at, "a program may have at most 1000000 operations");
  Op op;
  op.code = code;
  op.layer = op_layer_;
  op.in = std::move(in);
  op.out = std::move(out);
  op.ints = std::move(ints);
  op.reals = std::move(reals);
  op.origin = at;
  out_.ops.push_back(std::move(op));
}

Datum Emitter::emit_rows(const config::Origin& at, std::uint32_t code, const Datum& like, std::vector<std::uint32_t> in,
                         std::vector<std::int64_t> ints, std::vector<double> reals) {
  Datum out = new_rows(like.first, like.shape, op_info(code)->name);
  out.size_labels = like.size_labels;
  emit(at, code, std::move(in), {out.index}, std::move(ints), std::move(reals));
  return out;
}

// A STATE tensor: its layers share a block table with those of the same window.
std::uint32_t Emitter::state(std::vector<std::int64_t> shape, std::uint64_t window, const config::Origin& at) {
  std::uint32_t group = 0;
  while (group < out_.groups.size() && out_.groups[group].window != window) ++group;
  if (group == out_.groups.size()) {
    if (group == MEKIK_MAX_GROUPS) wrong(at, "attention has more than " + std::to_string(MEKIK_MAX_GROUPS) + " different windows");
    out_.groups.push_back({window});
  }
  Tensor tensor;
  tensor.name = fresh("kv");
  tensor.role = MEKIK_ROLE_STATE;
  shape.insert(shape.begin(), MEKIK_DIM_TOKENS);
  tensor.shape = std::move(shape);
  tensor.scheme = options_.kv;
  tensor.group = group;
  return add_tensor(std::move(tensor));
}

std::uint32_t Emitter::slot(std::vector<std::int64_t> shape, const char* base) {
  Tensor tensor;
  tensor.name = fresh(base);
  tensor.role = MEKIK_ROLE_SLOT;
  tensor.shape = std::move(shape);
  return add_tensor(std::move(tensor));
}

std::string Emitter::where() const { return layer_ ? " (layer " + std::to_string(*layer_) + ")" : std::string{}; }

std::string Emitter::weight_text(const Datum& weight) const {
  return "weight " + mekik::quoted(value_of(weight).symbol) + " " + shape_text(value_of(weight).shape);
}

std::string Emitter::rows_text(const Datum& rows) const {
  std::string out = "row shape " + shape_text(rows.shape);
  return rows.first == MEKIK_DIM_ROWS ? out + " (of output rows)" : out;
}

const Datum& Emitter::rows(const Call& call, std::size_t arg, std::size_t rank) const {
  const Datum& value = call.args[arg];
  if (value.type != Datum::Type::rows || value.shape.empty())
    wrong(call.at(arg), call.node.text + " needs rows here, not " +
                            (value.type == Datum::Type::rows ? "a list of ids" : type_name(value.type)) + where());
  if (rank != 0 && value.shape.size() != rank)
    wrong(call.at(arg), call.node.text + " needs a row shape of " + (rank == 1 ? "one size" : "two sizes") + " here, not " +
                            shape_text(value.shape) + where());
  return value;
}

const Datum& Emitter::ids(const Call& call, std::size_t arg) const {
  const Datum& value = call.args[arg];
  if (value.type != Datum::Type::rows || !value.shape.empty())
    wrong(call.at(arg),
          call.node.text + " needs a list of ids here (tokens, positions, token_types), not " + type_name(value.type) + where());
  return value;
}

const WeightValue& Emitter::weight(const Call& call, std::size_t arg, std::size_t rank) const {
  const Datum& value = call.args[arg];
  if (value.type != Datum::Type::weight)
    wrong(call.at(arg), call.node.text + " needs a weight here, not " + type_name(value.type) + where());
  const WeightValue& out = value_of(value);
  if (rank != 0 && out.shape.size() != rank)
    wrong(call.at(arg), call.node.text + " needs a weight of " + std::to_string(rank) + " sizes here; " + weight_text(value) + where());
  return out;
}

// A bias or the like: absent, or a weight of exactly that shape.
std::uint32_t Emitter::optional_vector(const Call& call, std::size_t arg, const std::vector<std::int64_t>& shape, const char* what) {
  if (absent(call, arg)) return MEKIK_NONE;
  if (weight(call, arg).shape != shape)
    wrong(call.at(arg), call.node.text + ": " + weight_text(call.args[arg]) + " is no " + what + " of " + shape_text(shape) + where(),
          "the weight is described at " + source_place(value_of(call.args[arg]).origin));
  return weight_tensor(call.args[arg].index,
                       shape.size() == 2 && std::string_view{what} == "bias of each expert" ? WeightUse::matrix : WeightUse::vector);
}

double Emitter::number(const Call& call, std::size_t arg, double otherwise) const {
  const Datum& value = call.args[arg];
  if (value.type == Datum::Type::none) {
    if (std::isnan(otherwise)) wrong(call.at(arg), call.node.text + " needs a number here, not none" + where());
    return otherwise;
  }
  if (!value.number()) wrong(call.at(arg), call.node.text + " needs a number here, not " + type_name(value.type) + where());
  if (!std::isfinite(value.as_real())) wrong(call.at(arg), call.node.text + " needs a finite number here" + where());
  return value.as_real();
}

double Emitter::epsilon(const Call& call, std::size_t arg) const {
  const double value = number(call, arg, std::numeric_limits<double>::quiet_NaN());
  if (value < 0)
    wrong(call.at(arg), call.node.text + " needs a number of at least 0 here, not " + to_text(call.args[arg]) + said_by(call.node));
  return value;
}

double Emitter::bound(const Call& call, std::size_t arg) const {
  const Datum& value = call.args[arg];
  if (!value.number() || std::isnan(value.as_real()))
    wrong(call.at(arg),
          call.node.text + " needs a number here, not " + (value.number() ? to_text(value) : type_name(value.type)) + where());
  return value.as_real();
}

std::int64_t Emitter::integer(const Call& call, std::size_t arg, std::int64_t otherwise, std::int64_t least) const {
  const Datum& value = call.args[arg];
  if (value.type == Datum::Type::none) return otherwise;
  if (value.type != Datum::Type::integer || value.integer < least || value.integer > std::numeric_limits<std::int32_t>::max())
    wrong(call.at(arg),
          call.node.text + " needs a whole number of at least " + std::to_string(least) + " here, not " + to_text(value) + where());
  return value.integer;
}

bool Emitter::boolean(const Call& call, std::size_t arg, bool otherwise) const {
  bool out = otherwise;
  if (!absent(call, arg))
    if (const std::string why = truth(call.args[arg], out); !why.empty()) wrong(call.at(arg), why + where());
  return out;
}

std::string Emitter::word(const Call& call, std::size_t arg, const char* otherwise) const {
  const Datum& value = call.args[arg];
  if (value.type == Datum::Type::none) return otherwise;
  if (value.type != Datum::Type::text) wrong(call.at(arg), call.node.text + " needs a text here, not " + type_name(value.type) + where());
  return value.text;
}

std::int64_t Emitter::kind(const Call& call, std::size_t arg, bool glu) const {
  const std::string name = word(call, arg, "none");
  const std::int64_t out = activation_kind(name, glu);
  if (out < 0) {
    const auto near = closest(name, activation_names());
    wrong(call.at(arg), "unknown activation " + mekik::quoted(name) + where(), near ? "did you mean '" + *near + "'?" : "");
  }
  return out;
}

void Emitter::same_first(const Call& call, const Datum& a, const Datum& b) const {
  if (a.first != b.first) wrong(call.at(), call.node.text + ": rows of all tokens and output rows do not go together" + where());
}

const Datum& Emitter::route(const Call& call, std::size_t arg) const {
  const Datum& value = call.args[arg];
  if (value.type != Datum::Type::route) wrong(call.at(arg), call.node.text + " needs a route here, not " + type_name(value.type) + where());
  return value;
}

// A norm's weight covers the last size, or the whole row.
std::uint32_t Emitter::norm_weight(const Call& call, std::size_t arg, const Datum& x) {
  if (absent(call, arg)) return MEKIK_NONE;
  const WeightValue& w = weight(call, arg);
  if (w.shape != x.shape && w.shape != std::vector<std::int64_t>{x.shape.back()}) {
    const std::string last = x.size_labels.empty() || x.size_labels.back().empty() ? "" : x.size_labels.back() + " = ";
    wrong(call.at(arg), "norm over " + shape_text(x.shape) + ": weight " + mekik::quoted(w.symbol) + " has " + shape_text(w.shape) +
                            "; the last size is " + last + std::to_string(x.shape.back()) + where());
  }
  return weight_tensor(call.args[arg].index, WeightUse::vector);
}

Datum Emitter::operand_name(const Expression& e, const Expr& node, const Scope& scope) {
  Datum out;
  if (page_.weight(node.text) != nullptr) {
    const auto index = weight(node.text, scope.layer, e.at(node));
    if (scope.layer) note_presence(node.text, *scope.layer, index && weights_[*index].symbol == node.text);
    if (!index) return out;
    out.type = Datum::Type::weight;
    out.index = *index;
    return out;
  }
  if (page_.rope(node.text) != nullptr) {
    out.type = Datum::Type::table;
    out.index = table(node.text, e.at(node));
    return out;
  }
  for (const char* name : {"tokens", "positions", "token_types", "image_rows", "segments"})
    if (node.text == name) {
      out.type = Datum::Type::rows;
      out.first = MEKIK_DIM_TOKENS;
      out.index = input(name, MEKIK_DIM_TOKENS);
      return out;
    }
  for (const ProgramSpec& other : page_.programs)
    for (const std::string& output : other.outputs)
      if (node.text == output || node.text + "[]" == output) {
        out.boolean = true;  // what another program would give is not there
        return out;
      }
  std::vector<std::string> names{"tokens", "positions"};
  for (const auto& [symbol, row] : page_.hparams) names.push_back(symbol);
  for (const auto& [symbol, row] : page_.weights) names.push_back(symbol);
  for (const auto& [symbol, row] : page_.ropes) names.push_back(symbol);
  if (scope.locals != nullptr)
    for (const auto& [symbol, value] : *scope.locals) names.push_back(symbol);
  const auto near = closest(node.text, names);
  wrong(e.at(node), "unknown symbol " + mekik::quoted(node.text), near ? "did you mean \"" + *near + "\"?" : "");
}

Datum Emitter::operand_call(const Expression& e, const Expr& node, std::vector<Datum>& args, const Scope&) {
  const auto& rows_of = functions();
  const auto found = std::find_if(rows_of.begin(), rows_of.end(), [&](const FunctionRow& row) { return node.text == row.name; });
  if (found == rows_of.end()) {
    std::vector<std::string> names = constant_functions();
    for (const FunctionRow& row : rows_of) names.emplace_back(row.name);
    for (const char* name : {"choose", "has", "dim", "by_layer"}) names.emplace_back(name);
    const auto near = closest(node.text, names);
    wrong(e.at(node), "unknown function " + mekik::quoted(node.text), near ? "did you mean \"" + *near + "\"?" : "");
  }
  std::vector<std::string> parameters = mekik::split(found->parameters, ' ');
  const bool open = parameters.back() == "*";
  if (open) parameters.pop_back();
  Call call{e, node, {}, {}};
  call.args.resize(open ? std::max(parameters.size(), args.size()) : parameters.size());
  call.given.resize(call.args.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::size_t slot_at = i;
    if (!node.names[i].empty())
      for (slot_at = 0; slot_at < parameters.size(); ++slot_at)
        if (parameters[slot_at] == node.names[i] || parameters[slot_at] == node.names[i] + "?") break;
    if (slot_at >= call.args.size() || (!node.names[i].empty() && slot_at == parameters.size()))
      wrong(e.at(node.args[i]), node.names[i].empty()
                                    ? node.text + " takes at most " + std::to_string(parameters.size()) + " arguments: " + found->parameters
                                    : node.text + " has no argument " + mekik::quoted(node.names[i]) + ": " + found->parameters);
    if (call.given[slot_at]) wrong(e.at(node.args[i]), node.text + ": this argument is given twice");
    call.given[slot_at] = true;
    call.args[slot_at] = std::move(args[i]);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!call.given[i] && parameters[i].back() != '?')
      wrong(e.at(node), node.text + " needs an argument " + mekik::quoted(parameters[i]) + ": " + found->parameters);
  return (this->*found->run)(call);
}

}  // namespace mekik::program
