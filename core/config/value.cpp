#include "config/value.hpp"

#include <algorithm>

namespace mekik::config {

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return "a boolean";
    case Kind::integer:
      return "an integer";
    case Kind::real:
      return "a real number";
    case Kind::text:
      return "a text";
    case Kind::list:
      return "a list";
    case Kind::table:
      return "a table";
    case Kind::date:
      return "a date";
  }
  return "a value";
}

Value::Value() = default;
Value::~Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;

const Value* Value::find(std::string_view key) const {
  const auto it = std::find_if(table.begin(), table.end(), [&](const auto& member) { return member.first == key; });
  return it == table.end() ? nullptr : &it->second;
}

Value* Value::find(std::string_view key) { return const_cast<Value*>(std::as_const(*this).find(key)); }

}  // namespace mekik::config
