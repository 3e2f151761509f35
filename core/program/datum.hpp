// The values that lines of a page compute with: constants (known while building) and operands (tensors of the program).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace mekik::program {

struct Datum {
  enum class Type { none, boolean, integer, real, text, list, rows, weight, table, route, poison };
  Type type = Type::none;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Datum> list;
  // rows: the tensor; weight: index of the resolved weight; table: index of the rotary table; route: the tensor of ids
  std::uint32_t index = 0;
  std::uint32_t weights = 0;             // route: the tensor of weights
  std::int64_t first = 0;                // rows, route: the symbolic first size, MEKIK_DIM_*
  std::vector<std::int64_t> shape;       // rows: the row shape; route: {top, experts}
  std::vector<std::string> size_labels;  // rows: what the page calls the sizes, "" where it is no plain symbol

  static Datum of(bool value);
  static Datum of(std::int64_t value);
  static Datum of(double value);
  static Datum of(std::string value);
  static Datum of(std::vector<Datum> value);

  bool constant() const { return type <= Type::list; }
  bool number() const { return type == Type::integer || type == Type::real; }
  double as_real() const { return type == Type::real ? real : static_cast<double>(integer); }
};

const char* type_name(Datum::Type type);
std::string to_text(const Datum& value);  // for messages and placeholders: 3, 1e-05, sigmoid, [1, 2]
std::string shape_text(const std::vector<std::int64_t>& shape);

// A JSON value as a constant; objects are refused except {"__float__": "Infinity"}. An empty reason: fine.
std::string from_json(const json::value& value, Datum& out);

// Operators and functions over constants. Each returns the reason why it cannot, or an empty text.
std::string apply_binary(std::string_view op, const Datum& a, const Datum& b, Datum& out);
std::string apply_negate(const Datum& a, Datum& out);
std::string apply_index(const Datum& a, const Datum& i, Datum& out);
std::string truth(const Datum& a, bool& out);
bool equal(const Datum& a, const Datum& b);
bool constant_function(std::string_view name);  // sqrt, log, ...; choose, has and dim are not among them
std::string apply_function(std::string_view name, const std::vector<Datum>& args, Datum& out);
const std::vector<std::string>& constant_functions();

}  // namespace mekik::program
