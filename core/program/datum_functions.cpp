// Functions over constants.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "program/datum.hpp"

namespace mekik::program {

namespace {

using Type = Datum::Type;

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

double normal_part(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// The inverse of normal_part: Acklam's rational functions, then one step of Halley's method, which leaves the rounding of erfc.
double normal_quantile(double p) {
  if (p > 0.5) return -normal_quantile(1 - p);
  double z = 0;
  if (p < 0.02425) {
    const double u = std::sqrt(-2 * std::log(p));
    z = (((((-0.007784894002430293 * u - 0.3223964580411365) * u - 2.400758277161838) * u - 2.549732539343734) * u + 4.374664141464968) *
             u +
         2.938163982698783) /
        ((((0.007784695709041462 * u + 0.3224671290700398) * u + 2.445134137142996) * u + 3.754408661907416) * u + 1);
  } else {
    const double d = p - 0.5, r = d * d;
    z = (((((-39.69683028665376 * r + 220.9460984245205) * r - 275.9285104469687) * r + 138.3577518672690) * r - 30.66479806614716) * r +
         2.506628277459239) *
        d /
        (((((-54.47609879822406 * r + 161.5858368580409) * r - 155.6989798598866) * r + 66.80131188771972) * r - 13.28068155288572) * r +
         1);
  }
  const double off = (normal_part(z) - p) * std::sqrt(2 * std::numbers::pi) * std::exp(z * z / 2);
  return z - off / (1 + z * off / 2);
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
  if (name == "normal_part") {
    out = Datum::of(normal_part(v));
    return {};
  }
  if (name == "normal_quantile") {
    if (!(v > 0 && v < 1)) return "needs a number between 0 and 1";
    out = Datum::of(normal_quantile(v));
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
  if (name == "is_list") {
    out = Datum::of(a.type == Type::list);
    return {};
  }
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
constexpr Function kFunctions[] = {
    {"sqrt", 1, 1},  {"log", 1, 1},    {"pow", 2, 2},     {"min", 1, 16},        {"max", 1, 16},           {"floor", 1, 1}, {"ceil", 1, 1},
    {"int", 1, 1},   {"len", 1, 1},    {"index", 2, 2},   {"largest", 1, 1},     {"range", 1, 2},          {"each", 2, 2},  {"where", 1, 1},
    {"first", 2, 2}, {"either", 3, 3}, {"is_list", 1, 1}, {"normal_part", 1, 1}, {"normal_quantile", 1, 1}};

const Function* function(std::string_view name) {
  for (const Function& f : kFunctions)
    if (name == f.name) return &f;
  return nullptr;
}

}  // namespace

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
  if (name == "sqrt" || name == "log" || name == "floor" || name == "ceil" || name == "int" || name.starts_with("normal_"))
    return real_function(name, args[0], out);
  return list_function(name, args, out);
}

}  // namespace mekik::program
