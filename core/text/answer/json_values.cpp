// Values of other notations as JSON.
#include <algorithm>

#include "base/text.hpp"
#include "text/answer/body.hpp"

namespace mekik::text {

JsonScan::State JsonScan::take(char c) {
  if (text_) {
    if (escaped_) escaped_ = false;
    else if (c == '\\') escaped_ = true;
    else if (c == '"') text_ = false;
    return !text_ && depth_ == 0 ? last : inside;
  }
  const bool closes = c == '}' || c == ']';
  // Outside of texts JSON has no such bytes: whatever this is, the value is over.
  if (c == '<' || c == '`' || c == '|' || static_cast<unsigned char>(c) >= 0x80) return behind;
  if (depth_ == 0 && begun_ && (closes || c == ',' || is_space(c))) return behind;
  begun_ = begun_ || !is_space(c);
  if (c == '"') text_ = true;
  if (c == '{' || c == '[') ++depth_;
  if (closes) return --depth_ <= 0 ? last : inside;
  return inside;
}

std::string json_escaped(std::string_view text) {
  std::string quoted = json_text(text);
  return quoted.substr(1, quoted.size() - 2);
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += {'\\', c};
    else if (c == '\n') out += "\\n";
    else if (c == '\r') out += "\\r";
    else if (c == '\t') out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr const char* digits = "0123456789abcdef";
      out += {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
    } else {
      out += c;
    }
  }
  return out + '"';
}

namespace {

constexpr int kMaxNesting = 32;

class Python {
 public:
  explicit Python(std::string_view text) : text_{text} {}

  // Nothing: it is no literal of Python's.
  std::optional<std::string> all() {
    std::string out;
    if (!value(out, 0) || skip_space(text_, at_) != text_.size()) return std::nullopt;
    return out;
  }

 private:
  char peek() {
    at_ = skip_space(text_, at_);
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool value(std::string& out, int depth) {
    if (depth > kMaxNesting) return false;
    const char c = peek();
    if (c == '"' || c == '\'') return text(out);
    if (c == '[' || c == '(') return list(out, c == '[' ? ']' : ')', depth);
    if (c == '{') return dict(out, depth);
    return word(out);
  }
  bool text(std::string& out) {
    std::string value;
    // Texts side by side are one.
    for (char quote = peek(); quote == '"' || quote == '\''; quote = peek()) {
      const std::string triple(3, quote);
      const std::size_t width = text_.substr(at_, 3) == triple ? 3 : 1;
      at_ += width;
      while (at_ < text_.size() && text_.substr(at_, width) != std::string_view{triple}.substr(0, width)) {
        if (text_[at_] == '\\' && at_ + 1 < text_.size()) escape(value);
        else value += text_[at_++];
      }
      if (at_ >= text_.size()) return false;
      at_ += width;
    }
    out += json_text(value);
    return true;
  }
  void escape(std::string& value) {
    const char c = text_[at_ + 1];
    at_ += 2;
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
      char32_t code = 0;
      std::size_t n = 0;
      for (; n < digits && at_ < text_.size() && std::isxdigit(static_cast<unsigned char>(text_[at_])); ++n, ++at_) {
        const char d = text_[at_];
        code = code * 16 + static_cast<char32_t>(d <= '9' ? d - '0' : (d | 32) - 'a' + 10);
      }
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
      append_utf8(value, code);
      return;
    }
    if (c == '\n') return;  // a line that goes on
    constexpr std::string_view from = "nrtbfav0\\'\"", to{"\n\r\t\b\f\a\v\0\\'\"", 11};
    const std::size_t known = from.find(c);
    if (known == std::string_view::npos) value += {'\\', c};
    else value += to[known];
  }
  bool list(std::string& out, char close, int depth) {
    ++at_;
    out += '[';
    for (bool first = true; peek() != close; first = false) {
      if (!first) {
        if (peek() != ',') return false;
        ++at_;
        if (peek() == close) break;
        out += ", ";
      }
      if (!value(out, depth + 1)) return false;
    }
    ++at_;
    out += ']';
    return true;
  }
  bool dict(std::string& out, int depth) {
    ++at_;
    out += '{';
    for (bool first = true; peek() != '}'; first = false) {
      if (!first) {
        if (peek() != ',') return false;
        ++at_;
        if (peek() == '}') break;
        out += ", ";
      }
      if (peek() != '"' && peek() != '\'') return false;
      if (!text(out) || peek() != ':') return false;
      ++at_;
      out += ": ";
      if (!value(out, depth + 1)) return false;
    }
    ++at_;
    out += '}';
    return true;
  }
  bool word(std::string& out) {
    std::size_t end = at_;
    while (end < text_.size() && std::string_view{",)]}: \n\t\r"}.find(text_[end]) == std::string_view::npos) ++end;
    std::string word{text_.substr(at_, end - at_)};
    at_ = end;
    if (word == "True" || word == "true") word = "true";
    else if (word == "False" || word == "false") word = "false";
    else if (word == "None" || word == "null") word = "null";
    else {
      word.erase(std::remove(word.begin(), word.end(), '_'), word.end());  // 1_000
      if (!word.empty() && word[0] == '+') word.erase(0, 1);
      if (word.starts_with(".")) word.insert(0, "0");
      if (word.ends_with(".")) word += '0';
      const auto parsed = json::parse(word);
      if (!parsed || !parsed->is_number()) return false;
    }
    out += word;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string json_of_python(std::string_view value) {
  if (auto out = Python{value}.all()) return *out;
  // Quotes that were not escaped inside of quotes.
  if (value.size() >= 2 && (value.front() == '\'' || value.front() == '"') && value.back() == value.front())
    return json_text(value.substr(1, value.size() - 2));
  return json_text(value);
}

std::string json_of_value(std::string_view value, const std::optional<ParameterType>& type) {
  if (type && type->nothing && value == "null") return "null";
  if (type && type->text && !type->other) return json_text(value);
  const auto parsed = json::parse(value);
  // What may be a text, too, is one when it is not an object, an array, a number or a truth value.
  if (parsed && !(type && type->text && parsed->is_string())) return std::string{value};
  if (!(type && type->text))
    if (auto out = Python{value}.all(); out && (*out)[0] != '"') return *out;
  return json_text(value);
}

}  // namespace mekik::text
