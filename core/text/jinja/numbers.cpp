// The filters int and float: numbers out of texts, as Python's int() and float() read them.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "text/jinja/list_filters.hpp"

namespace mekik::text::jinja {

namespace {

constexpr std::size_t kMostDigits = 4300;  // Python's int() reads no more from a text either

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Without white space around it, a plus in front and underscores between digits (`letters` may be some); nothing: an underscore is
// where none may be.
std::optional<std::string> bare_number(const Value& v, bool letters, Budget& budget) {
  const std::string text = strip(v.as_text(), nullptr, true, true, budget).bytes;
  const auto joins = [letters](char c) { return is_digit(c) || (letters && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))); };
  std::string out;
  for (std::size_t i = text.starts_with('+') ? 1 : 0; i < text.size(); ++i) {
    const bool inside = i > 0 && i + 1 < text.size() && joins(text[i - 1]) && joins(text[i + 1]);
    if (text[i] == '_' && !inside) return std::nullopt;
    if (text[i] != '_') out += text[i];
  }
  if (out.empty() || (text.starts_with('+') && out[0] == '-')) return std::nullopt;
  return out;
}

// 10 to the power that `digits`, the text of a number that does not fit a double, would begin at.
std::int64_t magnitude(std::string_view digits) {
  std::int64_t exponent = 0, at = 0, point = 0;
  bool seen = false, fraction = false;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const char c = digits[i];
    if (c == 'e' || c == 'E') {
      const std::size_t number = i + (i + 1 < digits.size() && digits[i + 1] == '+' ? 2 : 1);
      if (std::from_chars(digits.data() + number, digits.data() + digits.size(), exponent).ec != std::errc{})
        exponent = digits[number] == '-' ? -1'000'000'000 : 1'000'000'000;
      break;
    }
    fraction = fraction || c == '.';
    if (!is_digit(c)) continue;
    if (!seen && c != '0') {
      seen = true;
      point = at;
    }
    at += fraction ? 0 : 1;
    if (fraction && !seen) --point;
  }
  return exponent + (point < 0 ? point : at - point);
}

std::optional<double> real_of(std::string_view digits) {
  const std::string_view unsigned_digits = digits.substr(digits.starts_with('-') ? 1 : 0);
  const bool word = !unsigned_digits.empty() && !is_digit(unsigned_digits[0]) && unsigned_digits[0] != '.';
  if (word && unsigned_digits.find_first_of("(_") != std::string_view::npos) return std::nullopt;  // C's "nan(1)"
  double out = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc{}) return out;
  const double size = magnitude(unsigned_digits) > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  return digits.starts_with('-') ? -size : size;
}

// value * base + digit, of decimal digits with the last one first.
void shift_in(std::string& value, int base, int digit) {
  int carry = digit;
  for (char& c : value) {
    const int now = (c - '0') * base + carry;
    c = static_cast<char>('0' + now % 10);
    carry = now / 10;
  }
  for (; carry > 0; carry /= 10) value += static_cast<char>('0' + carry % 10);
}

Value whole(std::string digits) {
  std::int64_t small = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), small).ec == std::errc{}) return Value::integer(small);
  return Value::big_integer(std::move(digits));
}

std::optional<Value> whole_of(std::string_view digits, int base, Budget& budget) {
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  const char mark = digits.size() > 2 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : '0';
  if ((base == 16 && mark == 'x') || (base == 8 && mark == 'o') || (base == 2 && mark == 'b')) digits.remove_prefix(2);
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  budget.spend(digits.size() * digits.size() / 64);
  std::string out;
  for (const char c : digits) {
    const int digit = is_digit(c) ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10 : base;
    if (digit >= base) return std::nullopt;
    shift_in(out, base, digit);
  }
  std::reverse(out.begin(), out.end());
  if (out.empty()) out = "0";
  return whole(negative && out != "0" ? "-" + out : out);
}

Value truncated(double value) {
  std::array<char, 400> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), std::trunc(value), std::chars_format::fixed).ptr;
  const std::string out(digits.data(), end);
  return whole(out == "-0" ? "0" : out);
}

}  // namespace

Value to_int(const Value& v, const std::string&, Call& c) {
  c.check("int", 0, 2, {"default", "base"});
  const Value fallback = c.get(0, "default", Value::integer(0));
  if (v.is(Type::real) && std::isinf(v.as_real())) throw TemplateError{"int: an infinite number has no whole one"};
  if (v.is(Type::real)) return std::isnan(v.as_real()) ? fallback : truncated(v.as_real());
  if (v.is(Type::integer) || v.is(Type::boolean)) return Value::integer(v.as_integer());
  if (v.is(Type::big_integer)) return v;
  if (!v.is(Type::text)) return fallback;
  const std::int64_t base = need_integer(c.get(1, "base", Value::integer(10)), "int");
  if (base < 2 || base > 36) throw TemplateError{"int: the base is 2 to 36"};
  if (const auto digits = bare_number(v, true, *c.budget))
    if (auto number = whole_of(*digits, static_cast<int>(base), *c.budget)) return *number;
  const auto digits = bare_number(v, false, *c.budget);
  const auto real = digits ? real_of(*digits) : std::nullopt;
  return real && std::isfinite(*real) ? truncated(*real) : fallback;
}

Value to_float(const Value& v, const std::string&, Call& c) {
  c.check("float", 0, 1, {"default"});
  if (v.is_number()) return Value::real(v.as_real());
  std::optional<double> number;
  if (v.is(Type::big_integer)) number = real_of(v.hint());
  if (v.is(Type::text))
    if (const auto digits = bare_number(v, false, *c.budget)) number = real_of(*digits);
  return number ? Value::real(*number) : c.get(0, "default", Value::real(0));
}

}  // namespace mekik::text::jinja
