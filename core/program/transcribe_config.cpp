// Hyperparameters turned around: from the page's symbols to the keys of the other format.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "program/transcriber.hpp"

namespace mekik::program {

namespace {

// Equal as constants of a page, up to the rounding of a number to F32, in which GGUF stores reals.
bool same(const Datum& a, const Datum& b) {
  if (a.number() && b.number()) return a.as_real() == b.as_real() || std::fabs(a.as_real() - b.as_real()) <= 1e-6 * std::fabs(a.as_real());
  if (a.type == Datum::Type::list && b.type == Datum::Type::list)
    return a.list.size() == b.list.size() && std::equal(a.list.begin(), a.list.end(), b.list.begin(), same);
  return equal(a, b);
}

// A number that came out of 32 bits is written with the digits that those need: 1e-05, not 9.999999747378752e-06.
double shortest(double value) {
  const auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value || !std::isfinite(value)) return value;
  char digits[32];
  double out = value;
  std::from_chars(digits, std::to_chars(digits, digits + sizeof digits, narrow).ptr, out);
  return out;
}

json::value to_json(const Datum& value) {
  switch (value.type) {
    case Datum::Type::boolean:
      return value.boolean;
    case Datum::Type::integer:
      return value.integer;
    case Datum::Type::real:
      return shortest(value.real);
    case Datum::Type::text:
      return json::value(value.text);
    case Datum::Type::list: {
      json::array out;
      for (const Datum& item : value.list) out.push_back(to_json(item));
      return out;
    }
    default:
      return nullptr;
  }
}

bool uses_stored(const Expr& node) {
  bool out = false;
  for_each_name(node, [&](const Expr& name) { out = out || name.text == "v"; });
  return out;
}

}  // namespace

Transcriber::Transcriber(const PageSpec& page, const ModelMeta& meta, const BuildOptions& options, config::Diagnostics& diagnostics,
                         std::size_t target, const ReadVector& read)
    : Emitter{page, meta, options, diagnostics}, target_{target}, read_{read} {}

void Transcriber::fold() {
  unfolded_ = std::make_unique<ModelReader>(page_, meta_, options_);
  for (const auto& [symbol, expression] : page_.fold[target_].symbols) {
    if (page_.hparam(symbol) == nullptr) wrong(expression.origin, "unknown hyperparameter " + mekik::quoted(symbol));
    assume(symbol, unfolded_->evaluate(expression, {}));
  }
}

Transcript Transcriber::transcribe(Program program) {
  if (page_.matches[target_].empty() && page_.written[target_].empty())
    wrong(page_.origin, "page " + page_.name + " knows no models of format " + kFormats[target_]);
  Transcript out;
  out.program = std::move(program);
  out.page = page_.name;
  out.architecture = page_.written[target_].empty() ? page_.matches[target_][0] : page_.written[target_];
  out.notes = out.program.notes;
  std::size_t unused = 0, first = 0;
  for (std::size_t i = used_.size(); i-- > 0;)
    if (!used_[i]) {
      ++unused;
      first = i;
    }
  if (unused != 0)
    out.notes.push_back("left out, since the page does not use them: " + std::to_string(unused) +
                        (unused == 1 ? " tensor, " : " tensors, ") + mekik::quoted(meta_.tensors[first].name) +
                        (unused == 1 ? "" : " and so on"));
  weights(out);
  config(out);
  return out;
}

// What `node` gives for the stored value that is returned is `value`; nothing where it is not simple.
std::optional<Datum> Transcriber::invert(const Expression& e, const Expr& node, Datum value) {
  if (node.kind == Expr::Kind::name) return value;
  if (node.kind == Expr::Kind::call && (node.text == "int" || node.text == "largest") && node.args.size() == 1)
    return invert(e, node.args[0], std::move(value));
  if (!value.number()) return std::nullopt;
  if (node.kind == Expr::Kind::negate) return invert(e, node.args[0], Datum::of(-value.as_real()));
  if (node.kind != Expr::Kind::binary) return std::nullopt;
  const bool left = uses_stored(node.args[0]);
  if (left == uses_stored(node.args[1])) return std::nullopt;
  const Datum other = evaluate(e, node.args[left ? 1 : 0], {});
  if (!other.number()) return std::nullopt;
  Datum out;
  std::string why = "?";
  if (node.text == "+") why = apply_binary("-", value, other, out);
  else if (node.text == "-") why = left ? apply_binary("+", value, other, out) : apply_binary("-", other, value, out);
  else if (node.text == "*" && other.as_real() != 0) why = apply_binary("/", value, other, out);
  else if (node.text == "/") why = left ? apply_binary("*", value, other, out) : apply_binary("/", other, value, out);
  if (!why.empty()) return std::nullopt;
  return invert(e, node.args[left ? 0 : 1], std::move(out));
}

std::optional<Datum> Transcriber::stored_value(const HparamRow& row, const Datum& value) {
  Datum stored = value;
  if (const Expression* after = row.value.get(target_)) {
    auto before = invert(*after, after->root, value);
    if (!before) return std::nullopt;
    Scope scope;
    scope.stored = &*before;
    if (!same(evaluate(*after, scope), value)) return std::nullopt;
    stored = *before;
  }
  for (const auto& [text, meaning] : row.map) {
    if (!same(meaning, stored)) continue;
    std::int64_t number = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
    return end.ec == std::errc{} && end.ptr == text.data() + text.size() ? Datum::of(number) : Datum::of(text);
  }
  return stored;
}

void Transcriber::put(json::object& config, const std::string& name, const Datum& value) {
  json::object* at = &config;
  std::string key = name;
  if (kFormats[target_] == std::string_view{"hf"})
    for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.')) {
      json::value& inner = (*at)[key.substr(0, dot)];
      if (!inner.is_object()) inner = json::object{};
      at = &inner.get_object();
      key = key.substr(dot + 1);
    }
  (*at)[key] = to_json(value);
}

// Whether the symbol's value found a place.
bool Transcriber::write_hparam(const std::string& symbol, const HparamRow& row, json::object& config) {
  if (row.names[target_].empty()) return false;
  const NameText& name = row.names[target_][0];
  if (name.text.find(':') != std::string::npos) return false;  // of another file
  const Datum value = hparam(symbol, row.origin);
  if (value.type == Datum::Type::none || !value.constant()) return false;
  const auto stored = stored_value(row, value);
  const std::string spelled = spell_in(target_, name, std::nullopt, {});
  if (!stored || explicit_.count(spelled) != 0) return false;
  // What transformers would assume of a missing key is taken back by null, where that means nothing.
  const Expression* otherwise = row.fallback.get(target_);
  const bool nothing = value.number() && value.as_real() == 0 && otherwise != nullptr && same(evaluate(*otherwise, {}), value);
  put(config, spelled, nothing && omitted(row, target_) ? Datum{} : *stored);
  return true;
}

void Transcriber::extra_keys(Transcript& out) {
  for (const auto& [key, expression] : page_.convert[target_]) {
    const Datum value = evaluate(expression, {});
    if (value.type == Datum::Type::none) continue;
    const bool nothing = value.type == Datum::Type::list && value.list.empty();  // null, where transformers has a default
    const std::string spelled = spell_in(target_, {key, expression.origin, false}, std::nullopt, {});
    explicit_.insert(spelled);
    if (const auto colon = spelled.find(".json:"); colon != std::string::npos)
      put(out.files[spelled.substr(0, colon + 5)], spelled.substr(colon + 6), nothing ? Datum{} : value);
    else put(out.config, spelled, nothing ? Datum{} : value);
  }
}

// First what the source says, then what the target's own defaults would get wrong.
void Transcriber::config(Transcript& out) {
  const bool hf = kFormats[target_] == std::string_view{"hf"};
  if (hf) {
    out.config["architectures"] = json::array{json::value(out.architecture)};
    out.config["model_type"] = page_.name;
    for (const auto& [symbol, row] : page_.weights)
      if (!row.fallback.empty() && !row.shape.empty() && row.shape[0].root.text == "vocab") {
        const auto found = static_cast<ModelReader&>(*this).weight(symbol, std::nullopt, row.origin, false);
        if (found) out.config["tie_word_embeddings"] = weights_[*found].symbol != symbol;
      }
  } else {
    out.config["general.architecture"] = out.architecture;
  }
  const auto quietly = [](auto&& run) {  // a row that this model does not use may not be there at all
    try {
      run();
    } catch (const Mistake&) {
    } catch (const Poisoned&) {}
  };
  for (const auto& [symbol, row] : page_.hparams) {
    bool stored = false;
    quietly([&, &row_ = row] {
      for (const NameText& name : row_.names[format_])
        for (const std::string& spelled : spell(name, std::nullopt)) stored = stored || config_value(spelled) != nullptr;
    });
    if (stored) quietly([&, &symbol_ = symbol, &row_ = row] { write_hparam(symbol_, row_, out.config); });
  }
  extra_keys(out);
  ropes(out);
  ModelMeta meta;
  meta.format = kFormats[target_];
  meta.config = out.config;
  meta.file = [&](const std::string& name) {
    const auto found = out.files.find(name);
    return found == out.files.end() ? json::value() : json::value(found->second);
  };
  for (const Transcript::Tensor& tensor : out.tensors) meta.tensors.push_back({tensor.name, "", MEKIK_F32, tensor.shape, 0});
  ModelReader written{page_, meta, options_};
  for (const auto& [symbol, row] : page_.hparams)
    quietly([&, &symbol_ = symbol, &row_ = row] {
      const Datum here = hparam(symbol_, row_.origin);
      bool agrees = false;
      quietly([&] { agrees = same(here, written.hparam(symbol_, row_.origin)); });
      if (!agrees) write_hparam(symbol_, row_, out.config);
    });
}

}  // namespace mekik::program
