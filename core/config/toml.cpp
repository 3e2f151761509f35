// The one place that includes toml++.
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/files.hpp"
#include "base/text.hpp"
#include "config/value.hpp"

namespace mekik::config {

namespace {

// More than any configuration needs. toml++ and every visitor of its tree recurse once per level.
constexpr std::size_t kMaxBrackets = 64;
constexpr std::size_t kMaxKeyParts = 32;

// Where nesting would become too deep, or npos. A linear scan that knows strings and comments and nothing else of TOML; what it
// misreads is not valid TOML and gets its error from the parser.
class DepthScan {
 public:
  explicit DepthScan(std::string_view text) : text_{text} {}
  std::size_t find() {
    std::size_t brackets = 0, dots = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (c == '#') at_ = std::min(text_.find('\n', at_), text_.size() - 1);
      if (c == '[' || c == '{') ++brackets;
      if ((c == ']' || c == '}') && brackets > 0) --brackets;
      if (c == '.') ++dots;
      else if (c == '=' || c == ',' || c == '\n' || c == '[' || c == ']' || c == '{' || c == '}' || c == '#') dots = 0;
      if (brackets > kMaxBrackets || dots >= kMaxKeyParts) return at_;
    }
    return std::string_view::npos;
  }

 private:
  // Leaves at_ on the last character of the string.
  void skip_string(char quote) {
    const std::string three(3, quote);
    const bool lines = text_.substr(at_, 3) == three;
    at_ += lines ? 3 : 1;
    for (; at_ < text_.size(); ++at_) {
      if (quote == '"' && text_[at_] == '\\') ++at_;
      else if (!lines && (text_[at_] == quote || text_[at_] == '\n')) return;
      else if (lines && text_.substr(at_, 3) == three) {
        at_ += 2;
        return;
      }
    }
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

// toml++ counts columns in code points, Origin in bytes.
class Places {
 public:
  explicit Places(std::shared_ptr<const Source> source) : source_{std::move(source)} {
    for (std::size_t at = 0; at < source_->text.size(); ++at)
      if (source_->text[at] == '\n') starts_.push_back(at + 1);
  }
  Origin origin(const toml::source_position& position) const {
    if (position.line == 0 || position.line > starts_.size()) return {source_, 0, 0};
    std::size_t at = starts_[position.line - 1];
    for (std::uint32_t column = 1; column < position.column && at < source_->text.size(); ++column) {
      ++at;
      while (at < source_->text.size() && (static_cast<unsigned char>(source_->text[at]) & 0xC0) == 0x80) ++at;
    }
    return {source_, position.line, static_cast<std::uint32_t>(at - starts_[position.line - 1] + 1)};
  }
  Origin at_byte(std::size_t byte) const {
    const auto next = std::upper_bound(starts_.begin(), starts_.end(), byte);
    return {source_, static_cast<std::uint32_t>(next - starts_.begin()), static_cast<std::uint32_t>(byte - *(next - 1) + 1)};
  }
  std::size_t byte_of(const Origin& origin) const { return starts_[origin.line - 1] + origin.column - 1; }
  const Source& source() const { return *source_; }

 private:
  std::shared_ptr<const Source> source_;
  std::vector<std::size_t> starts_{0};  // of each line
};

class Converter {
 public:
  explicit Converter(const Places& places) : places_{places} {}

  Value convert(const toml::node& node) const {
    Value value;
    value.origin = places_.origin(node.source().begin);
    switch (node.type()) {
      case toml::node_type::boolean:
        value.kind = Kind::boolean;
        value.boolean = node.as_boolean()->get();
        break;
      case toml::node_type::integer:
        value.kind = Kind::integer;
        value.integer = node.as_integer()->get();
        break;
      case toml::node_type::floating_point:
        value.kind = Kind::real;
        value.real = node.as_floating_point()->get();
        break;
      case toml::node_type::string:
        value.kind = Kind::text;
        value.text = node.as_string()->get();
        value.plain_text = is_plain(value);
        break;
      case toml::node_type::array:
        value.kind = Kind::list;
        for (const toml::node& element : *node.as_array()) value.list.push_back(convert(element));
        break;
      case toml::node_type::table:
        value.kind = Kind::table;
        members(*node.as_table(), value);
        break;
      default:
        value.kind = Kind::date;
        value.text = date_text(node);
    }
    return value;
  }

 private:
  // toml++ keeps tables sorted by key; people read files from top to bottom.
  void members(const toml::table& table, Value& value) const {
    for (const auto& [key, node] : table) {
      value.table.emplace_back(std::string{key.str()}, convert(node));
      value.table.back().second.key_origin = places_.origin(key.source().begin);
    }
    std::stable_sort(value.table.begin(), value.table.end(), [](const auto& a, const auto& b) {
      const Origin &x = a.second.key_origin, &y = b.second.key_origin;
      return std::pair{x.line, x.column} < std::pair{y.line, y.column};
    });
  }
  bool is_plain(const Value& value) const {
    if (value.origin.line == 0) return false;
    const std::string_view rest = std::string_view{places_.source().text}.substr(places_.byte_of(value.origin));
    const std::string_view text = value.text;
    return rest.size() >= text.size() + 2 && (rest[0] == '"' || rest[0] == '\'') && rest[text.size() + 1] == rest[0] &&
           rest.substr(1, text.size()) == text && text.find('\n') == std::string_view::npos;
  }
  static std::string date_text(const toml::node& node) {
    std::ostringstream out;
    node.visit([&](const auto& typed) {
      using T = std::decay_t<decltype(typed)>;
      if constexpr (toml::is_date<T> || toml::is_time<T> || toml::is_date_time<T>) out << typed.get();
    });
    return std::move(out).str();
  }
  const Places& places_;
};

// "Error while parsing inline table: expected ..." as a sentence of ours, with the way out where the mistake is a common one.
void complain(std::string_view description, const Origin& at, const Places& places, Diagnostics& diagnostics) {
  static constexpr std::string_view kPrefix = "Error while parsing ";
  std::string what;
  if (description.substr(0, kPrefix.size()) == kPrefix) {
    description.remove_prefix(kPrefix.size());
    const std::size_t colon = description.find(": ");
    what = std::string{description.substr(0, colon)};
    description.remove_prefix(colon == std::string_view::npos ? 0 : colon + 2);
  }
  if (description.find("cannot redefine existing") == 0) {
    const std::size_t open = std::min(description.find('\''), description.size());
    const std::string key{description.substr(open, description.rfind('\'') - open + 1)};
    return diagnostics.error(at, key + " is defined twice", "a key or a [table] may be written once");
  }
  std::string reason;  // it quotes the file, line breaks and all
  for (const char c : description)
    reason += c == '\n' ? std::string{"\\n"} : std::string(1, static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  std::string hint;
  const std::size_t byte = at.line == 0 ? std::string::npos : places.byte_of(at);
  const std::string& text = places.source().text;
  if (what == "inline table" && byte < text.size() && (text[byte] == '\n' || text[byte] == '\r'))
    return diagnostics.error(at, "TOML 1.0 forbids a line break inside an inline table",
                             "write { ... } in one line, or a [table] of its own");
  if (what == "value" || what == "boolean" || what == "floating-point" || what == "decimal integer") hint = "a text needs quotes";
  if (what == "string" && reason.find("control characters") != std::string::npos) hint = "is the closing quote missing?";
  diagnostics.error(at, "not valid TOML: " + reason + (what.empty() ? "" : " (in " + what + ")"), hint);
}

}  // namespace

bool parse_toml(std::string_view text, std::string name, Value& out, Diagnostics& diagnostics) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  const auto source = std::make_shared<const Source>(Source{std::move(name), std::string{text}});
  const Places places{source};
  if (!is_utf8(text)) {
    const std::string valid = utf8_replace_invalid(text);
    const auto at = static_cast<std::size_t>(std::mismatch(text.begin(), text.end(), valid.begin(), valid.end()).first - text.begin());
    diagnostics.error(places.at_byte(at), "not UTF-8: TOML files are UTF-8 text");
    return false;
  }
  if (const std::size_t deep = DepthScan{text}.find(); deep != std::string_view::npos) {
    diagnostics.error(places.at_byte(deep), "nested too deeply: at most " + std::to_string(kMaxBrackets) + " brackets and " +
                                                std::to_string(kMaxKeyParts) + " parts of a dotted key");
    return false;
  }
  try {
    const toml::table parsed = toml::parse(std::string_view{source->text}, std::string_view{source->name});
    out = Converter{places}.convert(parsed);
    out.origin = {source, 0, 0};
    return true;
  } catch (const toml::parse_error& error) {
    complain(error.description(), places.origin(error.source().begin), places, diagnostics);
    return false;
  }
}

bool parse_toml_file(const std::string& path, Value& out, Diagnostics& diagnostics, std::size_t limit) {
  const Result<std::string> text = read_file(path, limit);
  if (!text.ok()) {
    diagnostics.error({}, text.status().text);
    return false;
  }
  return parse_toml(*text, path, out, diagnostics);
}

}  // namespace mekik::config
