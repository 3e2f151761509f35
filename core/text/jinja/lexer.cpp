#include "text/jinja/lexer.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.hpp"

namespace mekik::text::jinja {

namespace {

constexpr std::size_t kMaxName = 1024;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

class Lexer {
 public:
  explicit Lexer(std::string_view source) {
    source_.reserve(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {  // as Jinja: every kind of line end is one \n
      if (source[i] == '\r') {
        source_ += '\n';
        if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      } else {
        source_ += source[i];
      }
    }
    if (!source_.empty() && source_.back() == '\n') source_.pop_back();  // keep_trailing_newline is off
    for (std::size_t i = 0; i < source_.size(); ++i)
      if (source_[i] == '\n') line_starts_.push_back(i + 1);
  }

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const std::size_t tag = next_tag();
      const char kind = tag < source_.size() ? source_[tag + 1] : '\0';
      data(tag, kind);
      if (kind == '\0') break;
      if (kind == '#') comment(tag);
      else if (kind == '{') expression(tag, TokenKind::variable_begin, TokenKind::variable_end, "}}");
      else if (!raw(tag)) expression(tag, TokenKind::block_begin, TokenKind::block_end, "%}");
    }
    emit(TokenKind::end, "end of the template", source_.size());
    return std::move(tokens_);
  }

 private:
  Place place(std::size_t at) const {
    const auto line = std::upper_bound(line_starts_.begin(), line_starts_.end(), at) - line_starts_.begin();
    return {static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(at - line_starts_[static_cast<std::size_t>(line - 1)] + 1)};
  }
  [[noreturn]] void fail(const std::string& message, std::size_t at) const { throw TemplateError{message, place(at)}; }
  void emit(TokenKind kind, std::string text, std::size_t at) { tokens_.push_back({kind, std::move(text), place(at)}); }

  std::size_t next_tag() const {
    for (std::size_t i = at_; i + 1 < source_.size(); ++i)
      if (source_[i] == '{' && (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#')) return i;
    return source_.size();
  }

  // The text before a tag, with what the tag's sign and lstrip_blocks take off its end.
  void data(std::size_t tag, char kind) {
    std::size_t end = tag;
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    if (kind != '\0' && sign == '-') {
      while (end > at_ && is_space(source_[end - 1])) --end;
    } else if ((kind == '%' || kind == '#') && sign != '+') {
      std::size_t line = end;
      while (line > at_ && source_[line - 1] != '\n' && is_space(source_[line - 1])) --line;
      const bool starts_line = line > at_ ? source_[line - 1] == '\n' : at_ == 0 || source_[at_ - 1] == '\n';
      if (starts_line) end = line;
    }
    if (end > at_) emit(TokenKind::data, source_.substr(at_, end - at_), at_);
    at_ = tag;
  }

  // Steps over what follows a tag that ended at at_: all white space after "-", else one line end (trim_blocks).
  void after_tag(bool minus, bool plus, bool trims) {
    if (minus) {
      while (at_ < source_.size() && is_space(source_[at_])) ++at_;
    } else if (trims && !plus && at_ < source_.size() && source_[at_] == '\n') {
      ++at_;
    }
  }

  void comment(std::size_t tag) {
    const std::size_t end = source_.find("#}", tag + 2);
    if (end == std::string::npos) fail("this comment has no end: \"#}\" is missing", tag);
    at_ = end + 2;
    after_tag(end > tag + 2 && source_[end - 1] == '-', end > tag + 2 && source_[end - 1] == '+', true);
  }

  // "% raw %" at the tag: everything up to "{% endraw %}" is data.
  bool raw(std::size_t tag) {
    std::size_t i = tag + 2;
    const auto word = [&](std::string_view expected) {
      if (i < source_.size() && (source_[i] == '-' || source_[i] == '+')) ++i;
      while (i < source_.size() && is_space(source_[i])) ++i;
      if (source_.compare(i, expected.size(), expected) != 0) return false;
      i += expected.size();
      while (i < source_.size() && is_space(source_[i])) ++i;
      return i < source_.size();
    };
    const auto close = [&](bool& minus, bool& plus) {
      minus = source_[i] == '-';
      plus = source_[i] == '+';
      if (minus || plus) ++i;
      if (source_.compare(i, 2, "%}") != 0) return false;
      i += 2;
      return true;
    };
    bool minus = false, plus = false;
    if (!word("raw") || !close(minus, plus)) return false;
    at_ = i;
    after_tag(minus, plus, true);
    for (std::size_t end = source_.find("{%", at_); end != std::string::npos; end = source_.find("{%", end + 2)) {
      i = end + 2;
      const bool strips = i < source_.size() && source_[i] == '-';
      if (!word("endraw") || !close(minus, plus)) continue;
      std::size_t stop = end;
      while (strips && stop > at_ && is_space(source_[stop - 1])) --stop;
      if (stop > at_) emit(TokenKind::data, source_.substr(at_, stop - at_), at_);
      at_ = i;
      after_tag(minus, plus, true);
      return true;
    }
    fail("this raw block has no end: \"{% endraw %}\" is missing", tag);
  }

  void expression(std::size_t tag, TokenKind begin, TokenKind end, std::string_view close) {
    emit(begin, source_.substr(tag, 2), tag);
    at_ = tag + 2;
    if (at_ < source_.size() && (source_[at_] == '-' || source_[at_] == '+')) ++at_;
    std::vector<char> open;  // brackets: "}}" inside a dict is no end
    for (;;) {
      while (at_ < source_.size() && is_space(source_[at_])) ++at_;
      if (at_ >= source_.size()) fail("this tag has no end: \"" + std::string{close} + "\" is missing", tag);
      const char c = source_[at_];
      const bool sign = (c == '-' || c == '+') && source_.compare(at_ + 1, 2, close) == 0;
      if (open.empty() && (sign || source_.compare(at_, 2, close) == 0)) {
        emit(end, std::string{close}, at_);
        at_ += sign ? 3 : 2;
        after_tag(sign && c == '-', sign && c == '+', end == TokenKind::block_end);
        return;
      }
      if (is_name_start(c)) name();
      else if (is_digit(c)) number();
      else if (c == '"' || c == '\'') text(c);
      else op(open);
    }
  }

  void name() {
    const std::size_t begin = at_;
    while (at_ < source_.size() && is_name_part(source_[at_])) ++at_;
    // Names are looked up at every use, and are in messages.
    if (at_ - begin > kMaxName) fail("this name has more than " + std::to_string(kMaxName) + " bytes", begin);
    emit(TokenKind::name, source_.substr(begin, at_ - begin), begin);
  }

  void number() {
    const std::size_t begin = at_;
    std::string digits;
    const auto take_digits = [&] {
      for (; at_ < source_.size() && (is_digit(source_[at_]) || (source_[at_] == '_' && is_digit(source_[at_ + 1]))); ++at_)
        if (source_[at_] != '_') digits += source_[at_];
    };
    take_digits();
    TokenKind kind = TokenKind::integer;
    if (at_ + 1 < source_.size() && source_[at_] == '.' && is_digit(source_[at_ + 1])) {
      kind = TokenKind::real;
      digits += source_[at_++];
      take_digits();
    }
    if (at_ + 1 < source_.size() && (source_[at_] == 'e' || source_[at_] == 'E')) {
      std::size_t after = at_ + 1;
      if (source_[after] == '+' || source_[after] == '-') ++after;
      if (after < source_.size() && is_digit(source_[after])) {
        kind = TokenKind::real;
        digits.append(source_, at_, after - at_);
        at_ = after;
        take_digits();
      }
    }
    emit(kind, std::move(digits), begin);
  }

  void text(char quote) {
    const std::size_t begin = at_++;
    std::string out;
    for (;; ++at_) {
      if (at_ >= source_.size()) fail("this text has no closing quote", begin);
      if (source_[at_] == quote) break;
      if (source_[at_] == '\\' && at_ + 1 < source_.size()) escape(out);
      else out += source_[at_];
    }
    ++at_;
    emit(TokenKind::text, std::move(out), begin);
  }

  // Python's escapes; at_ is left on the last character of the escape.
  void escape(std::string& out) {
    static constexpr std::string_view kFrom = "abfnrtv\\'\"", kTo = "\a\b\f\n\r\t\v\\'\"";
    const char c = source_[++at_];
    if (const std::size_t i = kFrom.find(c); i != std::string_view::npos) {
      out += kTo[i];
    } else if (c == '\n') {
      return;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t count = c == 'x' ? 2u : c == 'u' ? 4u : 8u;
      char32_t code = hex(count);
      if (code >= 0xD800 && code < 0xDC00 && source_.compare(at_ + 1, 2, "\\u") == 0) {  // a surrogate pair
        at_ += 2;
        code = 0x10000 + ((code - 0xD800) << 10) + (hex(4) - 0xDC00);
      }
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) fail("this escape is no character", at_);
      append_utf8(out, code);
    } else if (c >= '0' && c <= '7') {
      char32_t code = 0;
      for (int digits = 0; digits < 3 && source_[at_] >= '0' && source_[at_] <= '7'; ++digits)
        code = code * 8 + static_cast<char32_t>(source_[at_++] - '0');
      --at_;
      append_utf8(out, code);
    } else {
      out += '\\';
      out += c;
    }
  }

  char32_t hex(std::size_t count) {
    char32_t code = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const char c = at_ + 1 < source_.size() ? source_[at_ + 1] : '\0';
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0)
        fail("this escape needs " + std::to_string(count) + " hexadecimal digits", at_);
      code = code * 16 + static_cast<char32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
      ++at_;
    }
    return code;
  }

  void op(std::vector<char>& open) {
    static constexpr std::array<std::string_view, 28> kOps{"//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">",
                                                           "=",  "(",  ")",  "[",  "]",  "{",  "}", ",", ".", ":", "|", ";", "&", "^"};
    for (const std::string_view candidate : kOps) {
      if (source_.compare(at_, candidate.size(), candidate) != 0) continue;
      const char c = candidate[0];
      if (c == '(' || c == '[' || c == '{') open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
      if (c == ')' || c == ']' || c == '}') {
        if (open.empty() || open.back() != c) fail(std::string{"unexpected \""} + c + "\"", at_);
        open.pop_back();
      }
      emit(TokenKind::op, std::string{candidate}, at_);
      at_ += candidate.size();
      return;
    }
    fail("unexpected character " + quoted(source_.substr(at_, 1)), at_);
  }

  std::string source_;
  std::vector<std::size_t> line_starts_{0};
  std::size_t at_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer{source}.run(); }

}  // namespace mekik::text::jinja
