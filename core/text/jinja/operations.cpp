// Attributes, subscripts, slices, arithmetic, calls, and the global functions.
#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/text.hpp"
#include "text/jinja/builtins.hpp"

namespace mekik::text::jinja {

namespace {

[[noreturn]] void no_attribute(const Value& of, const std::string& name) {
  if (of.unsafe()) throw TemplateError{"access to " + of.hint() + " is not allowed in a template"};
  throw TemplateError{of.hint() + " is undefined; it has no attribute " + quoted(name)};
}

[[noreturn]] void undefined_used(const Value& value) {
  if (value.unsafe()) throw TemplateError{"access to " + value.hint() + " is not allowed in a template"};
  throw TemplateError{value.hint() + " is undefined"};
}

Value dict_method(const Value& of, const std::string& name) {
  if (name == "get")
    return Value::function(
        name,
        [of](Call& call) {
          call.check("get", 1, 2);
          const Value* found = of.as_dict().find(call.positional[0], *call.budget);
          return found ? *found : call.get(1, "default", Value::none());
        },
        &of);
  if (name != "items" && name != "keys" && name != "values" && name != "copy") return {};
  const auto list = [of, name](Call& call) {
    call.check(name, 0, 0);
    if (name == "copy") return of;
    List out;
    call.budget->spend(of.as_dict().items.size());
    for (const auto& [key, value] : of.as_dict().items)
      out.push_back(name == "items" ? Value::tuple({key, value}) : name == "keys" ? key : value);
    return Value::list(std::move(out));
  };
  return Value::function(name, list, &of);
}

Value list_method(const Value& of, const std::string& name) {
  if (name != "index" && name != "count") return {};
  const auto look = [of, name](Call& call) {
    call.check(name, 1, 1);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < of.as_list().size(); ++i) {
      if (!equal(of.as_list()[i], call.positional[0], *call.budget)) continue;
      if (name == "index") return Value::integer(static_cast<std::int64_t>(i));
      ++count;
    }
    if (name == "index") throw TemplateError{"the value is not in the list"};
    return Value::integer(count);
  };
  return Value::function(name, look, &of);
}

// What transformers' sandbox refuses, too: changing what came in.
bool mutates(const Value& of, const std::string& name) {
  static const std::vector<std::string> kList{"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
  static const std::vector<std::string> kDict{"clear", "pop", "popitem", "setdefault", "update"};
  const auto& names = of.is(Type::dict) ? kDict : kList;
  return (of.is(Type::dict) || of.is(Type::list)) && std::find(names.begin(), names.end(), name) != names.end();
}

// One of the compiler's checked operations, or the error.
std::int64_t checked(bool (*compute)(std::int64_t, std::int64_t, std::int64_t&), std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (compute(a, b, out)) throw TemplateError{"the whole number does not fit 64 bits"};
  return out;
}
bool add(std::int64_t a, std::int64_t b, std::int64_t& out) { return __builtin_add_overflow(a, b, &out); }
bool subtract(std::int64_t a, std::int64_t b, std::int64_t& out) { return __builtin_sub_overflow(a, b, &out); }
bool multiply(std::int64_t a, std::int64_t b, std::int64_t& out) { return __builtin_mul_overflow(a, b, &out); }

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t out = 1;
  if (base == 0 || base == 1 || base == -1) return base == -1 && exponent % 2 == 0 ? 1 : exponent == 0 ? 1 : base;
  for (std::int64_t i = 0; i < exponent; ++i) out = checked(multiply, out, base);  // at most 63 rounds before it overflows
  return out;
}

Value integer_arithmetic(const std::string& op, std::int64_t a, std::int64_t b) {
  if (op == "+") return Value::integer(checked(add, a, b));
  if (op == "-") return Value::integer(checked(subtract, a, b));
  if (op == "*") return Value::integer(checked(multiply, a, b));
  if (op == "**") return b < 0 ? Value::real(std::pow(static_cast<double>(a), static_cast<double>(b))) : Value::integer(power(a, b));
  if (b == 0) throw TemplateError{"division by zero"};
  if (op == "/") return Value::real(static_cast<double>(a) / static_cast<double>(b));
  if (b == -1) return Value::integer(op == "%" ? 0 : checked(subtract, 0, a));
  const std::int64_t remainder = a % b;
  const bool down = remainder != 0 && (remainder < 0) != (b < 0);  // Python rounds towards minus infinity
  return Value::integer(op == "%" ? remainder + (down ? b : 0) : a / b - (down ? 1 : 0));
}

Value real_arithmetic(const std::string& op, double a, double b) {
  if (op == "+") return Value::real(a + b);
  if (op == "-") return Value::real(a - b);
  if (op == "*") return Value::real(a * b);
  if (op == "**") return Value::real(std::pow(a, b));
  if (b == 0) throw TemplateError{"division by zero"};
  if (op == "/") return Value::real(a / b);
  if (op == "//") return Value::real(std::floor(a / b));
  const double remainder = std::fmod(a, b);
  return Value::real(remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder);
}

Value repeat(const Value& of, std::int64_t times, Budget& budget) {
  times = std::max<std::int64_t>(times, 0);
  const std::uint64_t unit = of.is(Type::text) ? of.as_text().bytes.size() : of.as_list().size() * sizeof(Value);
  if (unit != 0 && static_cast<std::uint64_t>(times) > budget.max_output_bytes / unit) budget.spend_bytes(~std::uint64_t{0});
  budget.spend_bytes(unit * static_cast<std::uint64_t>(times));
  if (of.is(Type::text)) {
    Text out;
    for (std::int64_t i = 0; i < times && unit != 0; ++i) out.append(of.as_text());
    return Value::text(std::move(out));
  }
  List out;
  for (std::int64_t i = 0; i < times && unit != 0; ++i) out.insert(out.end(), of.as_list().begin(), of.as_list().end());
  return of.is(Type::list) ? Value::list(std::move(out)) : Value::tuple(std::move(out));
}

Value range(Call& call) {
  call.check("range", 1, 3);
  std::int64_t start = 0, stop = need_integer(call.positional[0], "range"), step = 1;
  if (call.positional.size() > 1) {
    start = stop;
    stop = need_integer(call.positional[1], "range");
  }
  if (call.positional.size() > 2) step = need_integer(call.positional[2], "range");
  if (step == 0) throw TemplateError{"range needs a step other than 0"};
  List out;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (out.size() == 100'000) throw TemplateError{"range is limited to 100000 numbers"};
    out.push_back(Value::integer(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  call.budget->spend(out.size());
  return Value::list(std::move(out));
}

Value make_space(Call& call) {
  auto space = std::make_shared<Space>(call.budget->living);
  for (const Value& from : call.positional) {
    if (!from.is(Type::dict)) throw TemplateError{"namespace takes a dict or named arguments"};
    for (const auto& [key, value] : from.as_dict().items) {
      call.budget->spend(2 + key.weight());
      space->values[to_text(key, *call.budget).bytes] = value;
    }
  }
  for (const auto& [name, value] : call.named) space->values[name] = value;
  return Value::space(std::move(space));
}

Value make_dict(Call& call) {
  Dict out;
  if (!call.positional.empty()) {
    call.check("dict", 1, 1);
    if (!call.positional[0].is(Type::dict)) throw TemplateError{"dict takes a dict or named arguments"};
    call.budget->spend(2 * call.positional[0].weight());
    out = call.positional[0].as_dict();
  }
  for (const auto& [name, value] : call.named) out.set(name, true, value);
  return Value::dict(std::move(out));
}

Value strftime_now(Call& call) {
  call.check("strftime_now", 1, 1);
  const std::string& format = need_text(call.positional[0], "strftime_now").bytes;
  const std::time_t now = call.budget->now ? static_cast<std::time_t>(*call.budget->now) : std::time(nullptr);
  std::tm parts{};
  if (call.budget->now) gmtime_r(&now, &parts);
  else localtime_r(&now, &parts);
  char buffer[512];
  const std::size_t n = std::strftime(buffer, sizeof buffer, format.c_str(), &parts);
  if (n == 0 && !format.empty()) throw TemplateError{"strftime_now: the date is longer than 512 bytes"};
  return Value::text(std::string(buffer, n), true);
}

}  // namespace

Value attribute(const Value& of, const std::string& name, Budget& budget) {
  budget.spend(1);
  if (of.is(Type::undefined)) no_attribute(of, name);
  if (name.starts_with("__")) return Value::undefined(quoted(name) + " of a " + type_name(of), true);
  if (mutates(of, name)) return Value::undefined(quoted(name) + " of a " + type_name(of) + " (values of a template do not change)", true);
  Value found;
  if (of.is(Type::text)) found = text_method(of, name);
  if (of.is(Type::dict)) found = dict_method(of, name);
  if (of.is_sequence()) found = list_method(of, name);
  if (!found.is(Type::undefined)) return found;
  if (of.is(Type::dict))
    if (const Value* item = of.as_dict().find(name)) return *item;
  if (of.is(Type::space)) {
    const auto it = of.as_space().values.find(name);
    if (it != of.as_space().values.end()) return it->second;
  }
  return Value::undefined(std::string{type_name(of)} + "." + name);
}

Value subscript(const Value& of, const Value& index, Budget& budget) {
  budget.spend(1 + index.weight());
  if (of.is(Type::undefined)) no_attribute(of, to_text(index, budget).bytes);
  if (of.is(Type::dict)) {
    if (const Value* item = of.as_dict().find(index, budget)) return *item;
  } else if (of.is_sequence() || of.is(Type::text)) {
    if (index.is(Type::integer) || index.is(Type::boolean)) {
      const auto n = static_cast<std::int64_t>(length(of));
      const std::int64_t at = index.as_integer() < 0 ? index.as_integer() + n : index.as_integer();
      if (at < 0 || at >= n) return Value::undefined(std::string{type_name(of)} + "[" + std::to_string(index.as_integer()) + "]");
      if (of.is_sequence()) return of.as_list()[static_cast<std::size_t>(at)];
      return slice(of, Value::integer(at), Value::integer(at + 1), Value::none(), budget);
    }
  }
  if (index.is(Type::text)) return attribute(of, index.as_text().bytes, budget);
  return Value::undefined(std::string{type_name(of)} + "[" + repr(index, budget) + "]");
}

Value slice(const Value& of, const Value& start, const Value& stop, const Value& step, Budget& budget) {
  if (of.is(Type::undefined)) undefined_used(of);
  if (!of.is_sequence() && !of.is(Type::text)) throw TemplateError{std::string{"a "} + type_name(of) + " cannot be sliced"};
  const auto absent = [](const Value& v) { return v.is(Type::none) || v.is(Type::undefined); };
  const auto n = static_cast<std::int64_t>(length(of));
  const std::int64_t by = absent(step) ? 1 : need_integer(step, "a slice");
  if (by == 0) throw TemplateError{"a slice's step must not be 0"};
  const auto bound = [&](const Value& v, std::int64_t fallback) {
    if (absent(v)) return fallback;
    std::int64_t at = need_integer(v, "a slice");
    if (at < 0) at = at < -n ? -1 : at + n;
    return by > 0 ? std::clamp<std::int64_t>(at, 0, n) : std::clamp<std::int64_t>(at, -1, n - 1);
  };
  const std::int64_t first = bound(start, by > 0 ? 0 : n - 1), last = bound(stop, by > 0 ? n : -1);
  budget.spend(static_cast<std::uint64_t>(n) / 8 + 1);
  if (of.is_sequence()) {
    List out;
    for (std::int64_t i = first; by > 0 ? i < last : i > last;) {
      out.push_back(of.as_list()[static_cast<std::size_t>(i)]);
      if (__builtin_add_overflow(i, by, &i)) break;
    }
    budget.spend(out.size() / 2);
    return of.is(Type::list) ? Value::list(std::move(out)) : Value::tuple(std::move(out));
  }
  const Text& text = of.as_text();
  std::vector<std::size_t> cuts;
  for (std::size_t i = 0; i < text.bytes.size(); ++i)
    if ((static_cast<unsigned char>(text.bytes[i]) & 0xC0) != 0x80) cuts.push_back(i);
  cuts.push_back(text.bytes.size());
  if (by == 1)
    return Value::text(first < last ? text.sub(cuts[static_cast<std::size_t>(first)],
                                               cuts[static_cast<std::size_t>(last)] - cuts[static_cast<std::size_t>(first)])
                                    : Text{});
  Text out;
  for (std::int64_t i = first; by > 0 ? i < last : i > last;) {
    const auto at = static_cast<std::size_t>(i);
    out.append(text.sub(cuts[at], cuts[at + 1] - cuts[at]));
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  return Value::text(std::move(out));
}

Value arithmetic(const std::string& op, const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  if (op == "~") {
    Text out = to_text(a, budget);
    out.append(to_text(b, budget));
    budget.spend_bytes(out.bytes.size());
    return Value::text(std::move(out));
  }
  if (a.is(Type::undefined)) undefined_used(a);
  if (op == "%" && a.is(Type::text)) return Value::text(format_percent(a.as_text(), b.is(Type::tuple) ? b.as_list() : List{b}, budget));
  if (b.is(Type::undefined)) undefined_used(b);
  if (a.is_number() && b.is_number())
    return a.is(Type::real) || b.is(Type::real) ? real_arithmetic(op, a.as_real(), b.as_real())
                                                : integer_arithmetic(op, a.as_integer(), b.as_integer());
  if (op == "+" && a.is(Type::text) && b.is(Type::text)) {
    Text out = a.as_text();
    out.append(b.as_text());
    budget.spend_bytes(out.bytes.size());
    return Value::text(std::move(out));
  }
  if (op == "+" && a.is_sequence() && a.type() == b.type()) {
    List out = a.as_list();
    out.insert(out.end(), b.as_list().begin(), b.as_list().end());
    budget.spend_bytes(out.size() * sizeof(Value));
    return a.is(Type::list) ? Value::list(std::move(out)) : Value::tuple(std::move(out));
  }
  if (op == "*" && (a.is(Type::text) || a.is_sequence()) && (b.is(Type::integer) || b.is(Type::boolean)))
    return repeat(a, b.as_integer(), budget);
  if (op == "*" && (b.is(Type::text) || b.is_sequence()) && (a.is(Type::integer) || a.is(Type::boolean)))
    return repeat(b, a.as_integer(), budget);
  throw TemplateError{"\"" + op + "\" does not work between " + type_name(a) + " and " + type_name(b)};
}

void spend_on(const Call& call) {
  for (const Value& value : call.positional) call.budget->spend(value.weight());
  for (const auto& [name, value] : call.named) call.budget->spend(value.weight());
}

Value call(const Value& function, Call& arguments) {
  if (function.is(Type::undefined)) undefined_used(function);
  if (!function.is(Type::function)) throw TemplateError{std::string{"a "} + type_name(function) + " cannot be called"};
  spend_on(arguments);
  arguments.budget->enter();
  Value out = function.as_function().body(arguments);
  arguments.budget->leave();
  arguments.budget->spend(out.weight());
  return out;
}

Value global(const std::string& name) {
  if (name == "range") return Value::function(name, range);
  if (name == "namespace") return Value::function(name, make_space);
  if (name == "dict") return Value::function(name, make_dict);
  if (name == "strftime_now") return Value::function(name, strftime_now);
  if (name == "raise_exception")
    return Value::function(name, [](Call& call) -> Value {
      call.check("raise_exception", 1, 1);
      throw TemplateError{to_text(call.positional[0], *call.budget).bytes};
    });
  if (name == "joiner" || name == "cycler" || name == "lipsum" || name == "self") return Value::opaque(name);
  return Value::undefined(quoted(name));
}

}  // namespace mekik::text::jinja
