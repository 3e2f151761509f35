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

std::string to_integer(double value, Datum& out) {
  if (!(std::fabs(value) < 9.2e18)) return "the result does not fit a whole number";
  out = Datum::of(static_cast<std::int64_t>(value));
  return {};
}

std::string extreme(const std::vector<Datum>& values, bool largest, Datum& out) {
  if (values.empty()) return "of nothing";
  const Datum* best = &values[0];
  for (const Datum& value : values) {
    if (!value.number()) return std::string{"needs numbers, not "} + type_name(value.type);
    if (largest ? value.as_real() > best->as_real() : value.as_real() < best->as_real()) best = &value;
  }
  const Datum copy = *best;
  out = copy;
  return {};
}

std::string real_function(std::string_view name, const Datum& x, Datum& out) {
  if (!x.number()) return std::string{"needs a number, not "} + type_name(x.type);
  const double v = x.as_real();
  if (name == "sqrt") {
    if (v < 0) return "of a negative number";
    out = Datum::of(std::sqrt(v));
    return {};
  }
  if (name == "log") {
    if (v <= 0) return "of a number that is not positive";
    out = Datum::of(std::log(v));
    return {};
  }
  if (x.type == Type::integer) {
    out = x;
    return {};
  }
  return to_integer(name == "floor" ? std::floor(v) : name == "ceil" ? std::ceil(v) : v, out);
}

std::string list_function(std::string_view name, const std::vector<Datum>& args, Datum& out) {
  const Datum& a = args[0];
  if (name == "largest" && a.type != Type::list) {
    out = a;
    return a.number() ? "" : "needs a list or a number";
  }
  if (name == "len" && a.type == Type::text) {
    out = Datum::of(static_cast<std::int64_t>(a.text.size()));
    return {};
  }
  if (name == "first") {
    if (a.type != Type::list && a.type != Type::text) return std::string{"needs a list or a text, not "} + type_name(a.type);
    const std::size_t size = a.type == Type::list ? a.list.size() : a.text.size();
    if (args[1].type != Type::integer || args[1].integer < 0) return "needs a count, not " + to_text(args[1]);
    const std::size_t count = std::min(size, static_cast<std::size_t>(args[1].integer));
    out = a.type == Type::list ? Datum::of(std::vector<Datum>(a.list.begin(), a.list.begin() + static_cast<std::ptrdiff_t>(count)))
                               : Datum::of(a.text.substr(0, count));
    return {};
  }
  if (a.type != Type::list) return std::string{"needs a list, not "} + type_name(a.type);
  if (name == "len") out = Datum::of(static_cast<std::int64_t>(a.list.size()));
  else if (name == "largest") return extreme(a.list, true, out);
  else if (name == "index") {
    const auto found = std::find_if(a.list.begin(), a.list.end(), [&](const Datum& item) { return equal(item, args[1]); });
    if (found == a.list.end()) return to_text(args[1]) + " is not in " + to_text(a);
    out = Datum::of(static_cast<std::int64_t>(found - a.list.begin()));
  } else if (name == "each") {
    std::vector<Datum> marks;
    for (const Datum& item : a.list) marks.push_back(Datum::of(equal(item, args[1])));
    out = Datum::of(std::move(marks));
  } else if (name == "either") {
    std::vector<Datum> chosen;
    for (const Datum& item : a.list) {
      bool set = false;
      if (std::string why = truth(item, set); !why.empty()) return why;
      chosen.push_back(args[set ? 1 : 2]);
    }
    out = Datum::of(std::move(chosen));
  } else {  // where
    std::vector<Datum> places;
    for (std::size_t i = 0; i < a.list.size(); ++i) {
      bool set = false;
      if (std::string why = truth(a.list[i], set); !why.empty()) return why;
      if (set) places.push_back(Datum::of(static_cast<std::int64_t>(i)));
    }
    out = Datum::of(std::move(places));
  }
  return {};
}

struct Function {
  const char* name;
  std::size_t least, most;
};
constexpr Function kFunctions[] = {{"sqrt", 1, 1}, {"log", 1, 1},   {"pow", 2, 2},   {"min", 1, 16},  {"max", 1, 16},    {"floor", 1, 1},
                                   {"ceil", 1, 1}, {"int", 1, 1},   {"len", 1, 1},   {"index", 2, 2}, {"largest", 1, 1}, {"range", 1, 2},
                                   {"each", 2, 2}, {"where", 1, 1}, {"first", 2, 2}, {"either", 3, 3}};

const Function* function(std::string_view name) {
  for (const Function& f : kFunctions)
    if (name == f.name) return &f;
  return nullptr;
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

bool constant_function(std::string_view name) { return function(name) != nullptr; }

const std::vector<std::string>& constant_functions() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Function& f : kFunctions) out.emplace_back(f.name);
    return out;
  }();
  return names;
}

std::string apply_function(std::string_view name, const std::vector<Datum>& args, Datum& out) {
  const Function* f = function(name);
  if (args.size() < f->least || args.size() > f->most)
    return "takes " + std::to_string(f->least) + (f->most == f->least ? "" : " to " + std::to_string(f->most)) + " arguments, not " +
           std::to_string(args.size());
  if (name == "pow") {
    if (!args[0].number() || !args[1].number()) return "needs numbers";
    out = Datum::of(std::pow(args[0].as_real(), args[1].as_real()));
    return {};
  }
  if (name == "min" || name == "max") return extreme(args, name == "max", out);
  if (name == "range") {
    for (const Datum& arg : args)
      if (arg.type != Type::integer || arg.integer < 0 || arg.integer > 65536) return "needs whole numbers from 0 to 65536";
    std::vector<Datum> numbers;
    for (std::int64_t i = args.size() == 2 ? args[0].integer : 0; i < args.back().integer; ++i) numbers.push_back(Datum::of(i));
    out = Datum::of(std::move(numbers));
    return {};
  }
  if (name == "sqrt" || name == "log" || name == "floor" || name == "ceil" || name == "int") return real_function(name, args[0], out);
  return list_function(name, args, out);
}

}  // namespace mekik::program
