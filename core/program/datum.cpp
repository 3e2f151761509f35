#include "program/datum.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

namespace mekik::program {

namespace {

using Type = Datum::Type;

std::string cannot(std::string_view op, const Datum& a, const Datum& b) {
  return std::string{type_name(a.type)} + " " + std::string{op} + " " + type_name(b.type) + " has no meaning";
}

bool int_like(const Datum& a) { return a.type == Type::integer || a.type == Type::boolean; }
std::int64_t int_of(const Datum& a) { return a.type == Type::boolean ? (a.boolean ? 1 : 0) : a.integer; }

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

std::string integer_arithmetic(std::string_view op, std::int64_t a, std::int64_t b, Datum& out) {
  std::int64_t result = 0;
  bool overflow = false;
  if (op == "+") overflow = __builtin_add_overflow(a, b, &result);
  else if (op == "-") overflow = __builtin_sub_overflow(a, b, &result);
  else if (op == "*") overflow = __builtin_mul_overflow(a, b, &result);
  else {
    if (b == 0) return "division by 0";
    if (a == std::numeric_limits<std::int64_t>::min() && b == -1) return "the result does not fit";
    if (op == "/") {
      if (a % b != 0) {
        out = Datum::of(static_cast<double>(a) / static_cast<double>(b));
        return {};
      }
      result = a / b;
    } else if (op == "//") {
      result = floor_div(a, b);
    } else {
      result = a - floor_div(a, b) * b;
    }
  }
  if (overflow) return "the result does not fit";
  out = Datum::of(result);
  return {};
}

std::string real_arithmetic(std::string_view op, double a, double b, Datum& out) {
  if ((op == "/" || op == "//" || op == "%") && b == 0) return "division by 0";
  if (op == "+") out = Datum::of(a + b);
  else if (op == "-") out = Datum::of(a - b);
  else if (op == "*") out = Datum::of(a * b);
  else if (op == "/") out = Datum::of(a / b);
  else {  // exact remainder first, as in Python: 2.5 % 1e-3 is just below 1e-3, not 0
    double rest = std::fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
    out = Datum::of(op == "%" ? rest : std::round((a - rest) / b));
  }
  return {};
}

std::string compare(std::string_view op, const Datum& a, const Datum& b, Datum& out) {
  const bool numbers = a.number() && b.number();
  const bool texts = a.type == Type::text && b.type == Type::text;
  if (!numbers && !texts) return cannot(op, a, b);
  int order = 0;
  if (texts) order = a.text.compare(b.text);
  else if (a.type == Type::integer && b.type == Type::integer) order = a.integer < b.integer ? -1 : a.integer > b.integer ? 1 : 0;
  else order = a.as_real() < b.as_real() ? -1 : a.as_real() > b.as_real() ? 1 : 0;
  out = Datum::of(op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0);
  return {};
}

}  // namespace

Datum Datum::of(bool value) {
  Datum out;
  out.type = Type::boolean;
  out.boolean = value;
  return out;
}
Datum Datum::of(std::int64_t value) {
  Datum out;
  out.type = Type::integer;
  out.integer = value;
  return out;
}
Datum Datum::of(double value) {
  Datum out;
  out.type = Type::real;
  out.real = value;
  return out;
}
Datum Datum::of(std::string value) {
  Datum out;
  out.type = Type::text;
  out.text = std::move(value);
  return out;
}
Datum Datum::of(std::vector<Datum> value) {
  Datum out;
  out.type = Type::list;
  out.list = std::move(value);
  return out;
}

const char* type_name(Type type) {
  switch (type) {
    case Type::none:
      return "none";
    case Type::boolean:
      return "a boolean";
    case Type::integer:
      return "a whole number";
    case Type::real:
      return "a real number";
    case Type::text:
      return "a text";
    case Type::list:
      return "a list";
    case Type::rows:
      return "rows";
    case Type::weight:
      return "a weight";
    case Type::table:
      return "a rotary table";
    case Type::route:
      return "a route";
    case Type::poison:
      return "a failed value";
  }
  return "a value";
}

std::string to_text(const Datum& value) {
  char buffer[40];
  switch (value.type) {
    case Type::boolean:
      return value.boolean ? "true" : "false";
    case Type::integer:
      return std::to_string(value.integer);
    case Type::real:
      std::snprintf(buffer, sizeof buffer, "%.9g", value.real);
      return buffer;
    case Type::text:
      return value.text;
    case Type::list: {
      std::string out = "[";
      for (std::size_t i = 0; i < value.list.size(); ++i) {
        if (i == 8) return out + ", ...]";
        out += (i == 0 ? "" : ", ") + to_text(value.list[i]);
      }
      return out + "]";
    }
    default:
      return type_name(value.type);
  }
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return out + "]";
}

std::string from_json(const json::value& value, Datum& out) {
  if (value.is_null()) out = Datum{};
  else if (value.is_bool()) out = Datum::of(value.get_bool());
  else if (value.is_int64()) out = Datum::of(static_cast<std::int64_t>(value.get_int64()));
  else if (value.is_uint64()) out = Datum::of(static_cast<double>(value.get_uint64()));
  else if (value.is_double()) out = Datum::of(value.get_double());
  else if (value.is_string()) out = Datum::of(std::string{value.get_string().c_str(), value.get_string().size()});
  else if (value.is_array()) {
    std::vector<Datum> items;
    for (const json::value& item : value.get_array()) {
      Datum one;
      if (std::string why = from_json(item, one); !why.empty()) return why;
      items.push_back(std::move(one));
    }
    out = Datum::of(std::move(items));
  } else {
    const json::value* number = json::find(value, "__float__");
    if (number == nullptr || !number->is_string()) return "is an object, not a value";
    const std::string name{number->get_string().c_str()};
    const double infinity = std::numeric_limits<double>::infinity();
    if (name == "Infinity") out = Datum::of(infinity);
    else if (name == "-Infinity") out = Datum::of(-infinity);
    else if (name == "NaN") out = Datum::of(std::nan(""));
    else return "has an unknown __float__ \"" + name + "\"";
  }
  return {};
}

bool equal(const Datum& a, const Datum& b) {
  if (int_like(a) && int_like(b)) return int_of(a) == int_of(b);
  if ((a.number() || a.type == Type::boolean) && (b.number() || b.type == Type::boolean)) {
    const double x = a.type == Type::boolean ? static_cast<double>(int_of(a)) : a.as_real();
    const double y = b.type == Type::boolean ? static_cast<double>(int_of(b)) : b.as_real();
    return x == y;
  }
  if (a.type != b.type) return false;
  if (a.type == Type::text) return a.text == b.text;
  if (a.type == Type::list) return std::equal(a.list.begin(), a.list.end(), b.list.begin(), b.list.end(), equal);
  return a.type == Type::none;
}

std::string truth(const Datum& a, bool& out) {
  if (int_like(a)) out = int_of(a) != 0;
  else if (a.type == Type::real) out = a.real != 0;
  else if (a.type == Type::none) out = false;
  else return std::string{"a condition needs a boolean, not "} + type_name(a.type);
  return {};
}

std::string apply_binary(std::string_view op, const Datum& a, const Datum& b, Datum& out) {
  if (op == "==" || op == "!=") {
    out = Datum::of(equal(a, b) == (op == "=="));
    return {};
  }
  if (op == "in" || op == "not in") {
    if (a.type == Type::text && b.type == Type::text) {
      out = Datum::of((b.text.find(a.text) != std::string::npos) == (op == "in"));
      return {};
    }
    if (b.type != Type::list) return "\"in\" needs a list on its right, not " + std::string{type_name(b.type)};
    const bool found = std::any_of(b.list.begin(), b.list.end(), [&](const Datum& item) { return equal(a, item); });
    out = Datum::of(found == (op == "in"));
    return {};
  }
  if (op[0] == '<' || op[0] == '>') return compare(op, a, b, out);
  if (!a.number() || !b.number()) return cannot(op, a, b);
  if (a.type == Type::integer && b.type == Type::integer) return integer_arithmetic(op, a.integer, b.integer, out);
  return real_arithmetic(op, a.as_real(), b.as_real(), out);
}

std::string apply_negate(const Datum& a, Datum& out) { return apply_binary("-", Datum::of(std::int64_t{0}), a, out); }

std::string apply_index(const Datum& a, const Datum& i, Datum& out) {
  if (a.type != Type::list && a.type != Type::text) {  // a format may store one number for all layers
    out = a;
    return a.constant() && a.type != Type::none ? "" : std::string{"cannot take an item of "} + type_name(a.type);
  }
  if (i.type != Type::integer) return std::string{"an index must be a whole number, not "} + type_name(i.type);
  const std::size_t size = a.type == Type::list ? a.list.size() : a.text.size();
  if (i.integer < 0 || static_cast<std::uint64_t>(i.integer) >= size)
    return "index " + std::to_string(i.integer) + " of " + std::to_string(size) + " items";
  const auto at = static_cast<std::size_t>(i.integer);
  const Datum item = a.type == Type::list ? a.list[at] : Datum::of(std::string(1, a.text[at]));
  out = item;
  return {};
}

}  // namespace mekik::program
