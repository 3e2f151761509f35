// Which weights a model has: what the page and the configuration say, and that layers of one kind agree.
#include <algorithm>

#include "base/text.hpp"
#include "program/model_reader.hpp"

namespace mekik::program {

namespace {

std::string not_there(const std::vector<std::string>& names) {
  if (names.size() == 1) return mekik::quoted(names[0]) + " is not in the file";
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + mekik::quoted(name);
  return "none of " + all + " is in the file";
}

}  // namespace

// Whether the page says that the weight is there; nothing where it leaves that to the file.
std::optional<bool> ModelReader::presence(const std::string& symbol, const WeightRow& row, std::int32_t layer) {
  const Expression* says = row.present.get(format_);
  if (says == nullptr) return std::nullopt;
  const std::string mark = "present of " + symbol;
  if (std::find(in_progress_.begin(), in_progress_.end(), mark) != in_progress_.end())
    wrong(says->origin, "weight " + mekik::quoted(symbol) + ": whether it is present depends on itself");
  Scope scope;
  if (layer >= 0) scope.layer = layer;
  in_progress_.push_back(mark);
  Datum value;
  try {
    value = evaluate(*says, scope);
  } catch (...) {
    in_progress_.pop_back();
    throw;
  }
  in_progress_.pop_back();
  if (value.type == Datum::Type::poison) throw Poisoned{};
  if (value.type == Datum::Type::none) return std::nullopt;
  bool out = false;
  if (const std::string why = truth(value, out); !why.empty()) wrong(says->at(says->root), why);
  return out;
}

// All names that the row knows for a layer's tensor.
std::vector<std::string> ModelReader::tensor_names(const WeightRow& row, std::int32_t layer) {
  std::vector<std::string> out;
  const auto add = [&](const WeightSource& source) {
    for (std::string& name : spell(source.from, layer >= 0 ? std::optional<std::int64_t>{layer} : std::nullopt, "0"))
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(std::move(name));
  };
  for (const WeightSource& source : row.sources[format_]) {
    if (source.join.empty()) add(source);
    for (const WeightSource& part : source.join) add(part);
  }
  return out;
}

// What in the configuration, and which other weights, an expression goes by.
void ModelReader::reasons(const Expression& e, std::vector<std::string>& out, int depth) {
  const auto add = [&](std::string reason) {
    if (std::find(out.begin(), out.end(), reason) == out.end()) out.push_back(std::move(reason));
  };
  for_each_name(e.root, [&](const Expr& name) {
    if (page_.weight(name.text) != nullptr) add("weight " + mekik::quoted(name.text));
    const HparamRow* row = page_.hparam(name.text);
    if (row == nullptr || depth > 8) return;
    if (row->direct) return reasons(*row->direct, out, depth + 1);
    for (const NameText& text : row->names[format_])
      for (const std::string& spelled : spell(text, std::nullopt))
        if (const json::value* value = config_value(spelled)) {
          Datum datum;
          const bool plain = from_json(*value, datum).empty() && datum.type != Datum::Type::list;
          return add(spelled + (plain ? " = " + to_text(datum) : std::string{}));
        }
    if (const Expression* otherwise = row->fallback.get(format_)) reasons(*otherwise, out, depth + 1);
  });
}

void ModelReader::misplaced_weight(const std::string& symbol, const WeightRow& row, const WeightValue& of, bool found) {
  WeightValue named = of;
  named.symbol = symbol;
  const std::vector<std::string> names = tensor_names(row, of.layer);
  if (!found && names.empty()) missing_weight(symbol, row, of);
  std::vector<std::string> why;
  reasons(*row.present.get(format_), why, 0);
  const std::string what = found ? mekik::quoted(meta_.tensors[of.pieces[0].sources[0]].name) + " is in the file" : not_there(names);
  throw Mistake{row.origin,
                label(named) + ": " + what + ", which " +
                    (why.empty() ? "page " + page_.name + (found ? " has no place for" : " needs") : "contradicts " + join(why, ", ")),
                {},
                !found};
}

void ModelReader::missing_weight(const std::string& symbol, const WeightRow& row, const WeightValue& of) {
  WeightValue named = of;
  named.symbol = symbol;
  const std::vector<std::string> names = tensor_names(row, of.layer);
  if (names.empty()) wrong(row.origin, label(named) + ": the page names no " + meta_.format + " tensor for it");
  std::string close;
  for (const std::string& name : names)
    if (close.empty()) close = close_tensor(name);
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + mekik::quoted(name);
  throw Mistake{row.origin, label(named) + ": none of " + all + " is in the file" + (close.empty() ? "" : "; " + close), {}, true};
}

void ModelReader::note_presence(const std::string& symbol, std::int64_t layer, bool found) {
  const WeightRow* row = page_.weight(symbol);
  const bool may_lack = row->optional || row->present.get(format_) != nullptr || !row->fallback.empty();
  if (row->numbers || !may_lack || presence(symbol, *row, static_cast<std::int32_t>(layer))) return;
  layers_[symbol][found ? 1 : 0].insert(layer);
}

// An optional weight is there in every layer whose lines ask for it, or in none.
std::vector<Mistake> ModelReader::uneven() {
  std::vector<Mistake> out;
  for (const auto& [symbol, layers] : layers_) {
    if (layers[0].empty() || layers[1].empty()) continue;
    const WeightRow& row = *page_.weight(symbol);
    WeightValue named;
    named.symbol = symbol;
    named.layer = static_cast<std::int32_t>(*layers[0].begin());
    const std::int64_t with = *layers[1].begin();
    out.push_back({row.origin,
                   label(named) + ": " + not_there(tensor_names(row, named.layer)) + ", though layer " + std::to_string(with) + " has it",
                   {},
                   true});
  }
  return out;
}

}  // namespace mekik::program
