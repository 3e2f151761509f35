#include "base/json.hpp"

#include <algorithm>
#include <boost/version.hpp>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace mekik::json {

namespace {

// "line 2, column 7" of a byte, both from 1, columns in bytes.
std::string place_of(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::size_t line = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
  return "line " + std::to_string(line) + ", column " + std::to_string(at - start + 1);
}

// Boost.JSON keeps the last of two equal keys; here a scan over the text finds them, since silently dropping one is not allowed.
// It is only asked for texts that already parsed, so strings are well formed.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(std::string_view text) : text_{text} {}
  // The first key that occurs twice in one object, or nothing.
  std::string find() {
    std::vector<std::vector<std::string>> open;
    std::string found;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '{') open.emplace_back();
      if (c == '[') open.emplace_back(1, std::string{});
      if (c == '}' || c == ']') {
        if (c == '}' && !sorted_unique(open.back(), found)) return found;
        open.pop_back();
      }
      if (c != '"') continue;
      const std::size_t begin = i + 1;
      for (++i; text_[i] != '"'; ++i)
        if (text_[i] == '\\') ++i;
      std::size_t after = i + 1;
      while (after < text_.size() && (text_[after] == ' ' || text_[after] == '\t' || text_[after] == '\n' || text_[after] == '\r')) ++after;
      if (after < text_.size() && text_[after] == ':') open.back().emplace_back(text_.substr(begin, i - begin));
    }
    return {};
  }

 private:
  static bool sorted_unique(std::vector<std::string>& keys, std::string& found) {
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice == keys.end()) return true;
    found = *twice;
    return false;
  }
  std::string_view text_;
};

// Debian's Boost.JSON knows no bare Infinity or NaN. A number too large for a double reads as infinity, so it stands in; NaN,
// which no hyperparameter means, becomes null.
std::string spell_infinity(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\' && i + 1 < text.size()) out += text[i++];
    else if (text[i] == '"') in_string = !in_string;
    else if (!in_string && text.substr(i, 8) == "Infinity") {
      out += "1e999";
      i += 7;
      continue;
    } else if (!in_string && text.substr(i, 3) == "NaN") {
      out += "null";
      i += 2;
      continue;
    }
    out += text[i];
  }
  return out;
}

}  // namespace

Result<value> parse(std::string_view text, const ParseLimits& limits) {
  if (text.size() > limits.bytes)
    return invalid("the JSON text has " + std::to_string(text.size()) + " bytes; at most " + std::to_string(limits.bytes) + " are read");
  boost::json::parse_options options;
  options.max_depth = limits.depth;
#if BOOST_VERSION >= 108700
  options.allow_infinity_and_nan = limits.bare_infinity;
  std::string_view source = text;
#else
  const std::string spelled = limits.bare_infinity ? spell_infinity(text) : std::string{};
  const std::string_view source = limits.bare_infinity ? std::string_view{spelled} : text;
#endif
  boost::json::error_code error;
  boost::json::stream_parser parser{boost::json::storage_ptr{}, options};
  const std::size_t used = parser.write_some(source.data(), source.size(), error);
  if (error) return invalid("not valid JSON at " + place_of(source, used) + ": " + error.message());
  parser.finish(error);
  if (error) return invalid("not valid JSON: it ends early, after " + std::to_string(used) + " bytes");
  if (source.find_first_not_of(" \t\r\n", used) != std::string_view::npos)
    return invalid("not valid JSON: more text after the value, at " + place_of(source, used));
  value parsed = parser.release();
  if (!limits.duplicate_keys)
    if (const std::string twice = DuplicateKeys{source}.find(); !twice.empty())
      return invalid("the JSON key " + quoted(twice) + " occurs twice in one object");
  return parsed;
}

const value* find(const value& of, std::string_view key) {
  const object* members = of.if_object();
  if (members == nullptr) return nullptr;
  const auto it = members->find(key);
  return it == members->end() ? nullptr : &it->value();
}

}  // namespace mekik::json
