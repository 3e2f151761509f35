// From TOML to formats.
#include <algorithm>

#include "base/files.hpp"
#include "base/text.hpp"
#include "config/folder.hpp"
#include "text/answer/format.hpp"

namespace mekik::text {

namespace {

namespace fs = std::filesystem;
using config::Kind;
using config::Value;

class Reader {
 public:
  explicit Reader(config::Diagnostics& diagnostics) : diagnostics_{diagnostics} {}

  AnswerFormat format(const Value& page) {
    AnswerFormat out;
    known_keys(page, {"format", "part", "history"});
    if (const Value* table = page.find("format"); table != nullptr && table->kind == Kind::table) {
      known_keys(*table, {"name", "marks", "turns"});
      if (const Value* name = table->find("name")) out.name = text(*name);
      if (const Value* marks = table->find("marks")) out.marks = texts(*marks);
      if (const Value* turns = table->find("turns")) out.turns = texts(*turns);
    }
    if (out.name.empty()) diagnostics_.error(page.origin, "a format needs [format] with a name");
    if (const Value* table = page.find("history")) out.history = history(*table);
    const Value* parts = page.find("part");
    if (parts == nullptr || parts->kind != Kind::list) diagnostics_.error(page.origin, "a format needs a [[part]]");
    else
      for (const Value& part : parts->list) out.parts.push_back(this->part(part));
    return out;
  }

 private:
  void known_keys(const Value& table, std::initializer_list<const char*> known) {
    for (const auto& [key, value] : table.table) {
      if (std::any_of(known.begin(), known.end(), [&, k = std::string_view{key}](const char* name) { return k == name; })) continue;
      const auto near = closest(key, std::vector<std::string>(known.begin(), known.end()));
      diagnostics_.error(value.key_origin, "unknown key " + mekik::quoted(key), near ? "did you mean \"" + *near + "\"?" : std::string{});
    }
  }
  bool is(const Value& value, Kind kind) {
    if (value.kind == kind) return true;
    diagnostics_.error(value.origin, std::string{"must be "} + config::kind_name(kind) + ", not " + config::kind_name(value.kind));
    return false;
  }
  std::string text(const Value& value) { return is(value, Kind::text) ? value.text : std::string{}; }
  std::vector<std::string> texts(const Value& value) {
    std::vector<std::string> out;
    if (is(value, Kind::list))
      for (const Value& item : value.list) out.push_back(text(item));
    return out;
  }
  bool flag(const Value& table, const char* key) {
    const Value* value = table.find(key);
    return value != nullptr && is(*value, Kind::boolean) && value->boolean;
  }
  Pattern pattern(const Value& value) {
    auto parsed = parse_pattern(text(value));
    if (!parsed) diagnostics_.error(value.origin, parsed.status().text);
    return parsed ? std::move(*parsed) : Pattern{};
  }

  CallHistory history(const Value& table) {
    CallHistory out;
    if (!is(table, Kind::table)) return out;
    known_keys(table, {"calls", "call", "between"});
    for (const auto& [key, to] : {std::pair{"calls", &out.calls}, {"call", &out.call}, {"between", &out.between}})
      if (const Value* value = table.find(key)) *to = text(*value);
    const bool whole = out.calls.find("{calls}") != std::string::npos;
    const bool named = std::any_of(std::begin(kHistorySlots) + 1, std::end(kHistorySlots),
                                   [&](std::string_view slot) { return slot != "{id}" && out.call.find(slot) != std::string::npos; });
    if (!whole || !named) diagnostics_.error(table.origin, "[history] needs calls with {calls} in it, and a call that says its name");
    return out;
  }

  AnswerPart part(const Value& table) {
    AnswerPart out;
    if (!is(table, Kind::table)) return out;
    known_keys(table, {"kind", "pattern", "ends", "field", "nested", "cdata", "start", "known", "inside", "name", "arguments",
                       "name_is_key", "quote"});
    const std::vector<std::string> kinds{"reasoning", "content", "section", "call"};
    const Value *kind = table.find("kind"), *pattern = table.find("pattern");
    const auto at = kind == nullptr ? kinds.end() : std::find(kinds.begin(), kinds.end(), text(*kind));
    if (at == kinds.end()) diagnostics_.error(kind == nullptr ? table.origin : kind->origin, "a part needs a kind: " + join(kinds, ", "));
    else out.kind = static_cast<PartKind>(at - kinds.begin());
    if (pattern == nullptr) diagnostics_.error(table.origin, "a part needs a pattern");
    else out.pattern = this->pattern(*pattern);
    if (const Value* ends = table.find("ends")) out.ends = texts(*ends);
    if (const Value* name = table.find("name")) out.keys.name = texts(*name);
    if (const Value* arguments = table.find("arguments")) out.keys.arguments = texts(*arguments);
    if (const Value* quote = table.find("quote")) out.quote = text(*quote);
    out.keys.name_is_key = flag(table, "name_is_key");
    out.at_start = flag(table, "start");
    out.known = flag(table, "known");
    out.inside = flag(table, "inside");
    read_field(table, out);
    check(table, out);
    return out;
  }

  void read_field(const Value& table, AnswerPart& out) {
    if (const Value* field = table.find("field")) {
      out.field.pattern = pattern(*field);
      const std::string_view spelled = field->text;
      // The break in the tail is not part of the mark: it may stand in the value, too.
      if (std::vector<Piece>& tail = out.field.pattern.tail; !tail.empty()) tail[0].text.erase(0, skip_space(tail[0].text, 0));
      out.field.newline_before = spelled.find("\n{value}") != std::string_view::npos;
      out.field.newline_after = spelled.find("{value}\n") != std::string_view::npos;
      if (out.field.pattern.body != Slot::value) diagnostics_.error(field->origin, "a field needs a {value}");
    }
    if (const Value* nested = table.find("nested")) out.field.nested = text(*nested);
    out.field.cdata = flag(table, "cdata");
  }

  // The body that a kind can have, and what a body needs.
  void check(const Value& table, const AnswerPart& part) {
    const Slot body = part.pattern.body;
    const bool texts = part.kind == PartKind::reasoning || part.kind == PartKind::content;
    if (texts != (body == Slot::text) || (part.kind == PartKind::section) != (body == Slot::calls) || body == Slot::value)
      diagnostics_.error(table.origin, "the body does not go with the kind: {text} is reasoning or content, {calls} a section");
    if (body == Slot::fields && part.field.pattern.body != Slot::value) diagnostics_.error(table.origin, "{fields} needs a field");
    const bool named = std::any_of(part.pattern.head.begin(), part.pattern.head.end(), [](const Piece& p) { return p.slot == Slot::name; });
    if ((body == Slot::json || body == Slot::fields || body == Slot::dict) && !named)
      diagnostics_.error(table.origin, "{json}, {fields} and {dict} need a {name} before them");
    if (body == Slot::dict && part.quote.empty()) diagnostics_.error(table.origin, "{dict} needs a quote");
    const bool marked = !part.pattern.head.empty() && part.pattern.head.front().slot == Slot::literal;
    if (!marked && !part.at_start && !part.inside) diagnostics_.error(table.origin, "a part begins with a literal, or only at the start");
  }

  config::Diagnostics& diagnostics_;
};

}  // namespace

bool AnswerFormat::has(PartKind kind) const {
  return std::any_of(parts.begin(), parts.end(), [kind](const AnswerPart& part) { return part.kind == kind; });
}

AnswerFormats AnswerFormats::read(std::string_view toml, config::Diagnostics& diagnostics) {
  AnswerFormats out;
  Value page;
  if (config::parse_toml(toml, "format", page, diagnostics)) out.formats_.push_back(Reader{diagnostics}.format(page));
  return out;
}

AnswerFormats AnswerFormats::load(const fs::path& directory, config::Diagnostics& diagnostics) {
  AnswerFormats out;
  for (const fs::path& file : config::toml_files(directory, "the formats of answers", diagnostics)) {
    Value page;
    if (config::parse_toml_file(file.string(), page, diagnostics)) out.formats_.push_back(Reader{diagnostics}.format(page));
  }
  // The more of its marks a format names, the surer it is: those with the longest come first.
  const auto certainty = [](const AnswerFormat& format) {
    std::size_t sum = 0;
    for (const std::string& mark : format.marks) sum += mark.size();
    return sum;
  };
  std::stable_sort(out.formats_.begin(), out.formats_.end(),
                   [&](const AnswerFormat& a, const AnswerFormat& b) { return certainty(a) > certainty(b); });
  return out;
}

}  // namespace mekik::text
