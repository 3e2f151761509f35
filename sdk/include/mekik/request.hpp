// mekik/request.hpp - what a sampler is told by a request: its fields go before the pipeline's options of the same name.
//
//   Mine(mekik::Config config, const mekik_vocab&, std::string_view json) : size_{mekik::Request{config, json}.i64("my_size")} {}
#pragma once
#include <mekik/base.hpp>

#include <algorithm>
#include <charconv>
#include <map>

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {
#endif

// Reads request_json: one JSON object, made by the host, whose values have passed the option rows. Throws MEKIK_E_INVALID for what is no
// such object. A list or table in it is kept as JSON text.
class Request {
 public:
  Request(Config config, std::string_view json) : config_{config}, rest_{json} {
    expect('{');
    skip();
    if (peek() == '}') return;
    for (;;) {
      skip();
      const std::string key = string();
      expect(':');
      skip();
      fields_[key] = value();
      skip();
      if (peek() != ',') break;
      rest_.remove_prefix(1);
    }
    expect('}');
  }
  bool has(std::string_view key) const { return fields_.find(key) != fields_.end(); }  // by the request
  double f64(const char* key) const { return has(key) ? number(key) : config_.f64(key); }
  std::int64_t i64(const char* key) const { return has(key) ? static_cast<std::int64_t>(number(key)) : config_.i64(key); }
  bool boolean(const char* key) const { return has(key) ? of(key) == "true" : config_.boolean(key); }
  std::string text(const char* key) const { return has(key) ? of(key) : std::string{config_.text(key)}; }  // also a choice

 private:
  [[noreturn]] static void bad() { throw Error{MEKIK_E_INVALID, "the request's fields are no JSON object"}; }
  const std::string& of(std::string_view key) const { return fields_.find(key)->second; }
  double number(std::string_view key) const {
    const std::string& text = of(key);
    double out = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (code != std::errc{} || end != text.data() + text.size()) throw Error{MEKIK_E_INVALID, std::string{key} + " must be a number"};
    return out;
  }
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }
  void skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  void expect(char c) {
    skip();
    if (peek() != c) bad();
    rest_.remove_prefix(1);
  }
  // A string's text, or what stands there up to its end.
  std::string value() {
    if (peek() == '"') return string();
    std::size_t depth = 0, n = 0;
    for (bool quoted = false; n < rest_.size(); ++n) {
      const char c = rest_[n];
      if (quoted && c == '\\') ++n;
      else if (c == '"') quoted = !quoted;
      else if (!quoted && (c == '[' || c == '{')) ++depth;
      else if (!quoted && depth == 0 && (c == ',' || c == '}' || c == ' ')) break;
      else if (!quoted && (c == ']' || c == '}')) --depth;
    }
    if (n == 0 || n > rest_.size()) bad();
    std::string out{rest_.substr(0, n)};
    rest_.remove_prefix(n);
    return out;
  }
  std::string string() {
    expect('"');
    std::string out;
    while (peek() != '"') {
      if (rest_.empty()) bad();
      const char c = peek();
      rest_.remove_prefix(1);
      if (c != '\\') out += c;
      else escape(out);
    }
    rest_.remove_prefix(1);
    return out;
  }
  void escape(std::string& out) {
    constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    const char c = peek();
    if (!rest_.empty()) rest_.remove_prefix(1);
    if (const auto at = from.find(c); at != from.npos) out += to[at];
    else if (c == 'u') append(out, code_point());
    else bad();
  }
  std::uint32_t unit() {
    std::uint32_t out = 0;
    const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + std::min<std::size_t>(rest_.size(), 4), out, 16);
    if (code != std::errc{} || end != rest_.data() + 4) bad();
    rest_.remove_prefix(4);
    return out;
  }
  std::uint32_t code_point() {
    const std::uint32_t first = unit();
    if (first < 0xD800 || first > 0xDBFF || !rest_.starts_with("\\u")) return first;
    rest_.remove_prefix(2);
    return 0x10000 + ((first - 0xD800) << 10) + (unit() - 0xDC00);
  }
  static void append(std::string& out, std::uint32_t c) {
    const auto more = [&](int shift) { out += static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
    if (c < 0x80) return void(out += static_cast<char>(c));
    if (c < 0x800) return out += static_cast<char>(0xC0 | (c >> 6)), more(0);
    if (c < 0x10000) return out += static_cast<char>(0xE0 | (c >> 12)), more(6), more(0);
    out += static_cast<char>(0xF0 | (c >> 18)), more(12), more(6), more(0);
  }

  Config config_;
  std::string_view rest_;
  std::map<std::string, std::string, std::less<>> fields_;
};

#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
