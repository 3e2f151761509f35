// Values of the template language: Python's, as far as templates can see them. All are immutable but namespaces.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json.hpp"

namespace mekik::text::jinja {

struct Place {
  std::uint32_t line = 0, column = 0;  // from 1; 0: not known yet
};

// How rendering ends early. Stays inside this folder: ChatTemplate turns it into a Status.
struct TemplateError : std::runtime_error {
  explicit TemplateError(const std::string& message, Place at = {}) : std::runtime_error{message}, place{at} {}
  Place place;
};

// Text that remembers, byte by byte, whether it was written by the template (trusted) or came in through the context.
struct Text {
  std::string bytes;
  std::string mask;  // empty: all of it is `trusted`; else a byte per byte, 1 trusted
  bool trusted = true;

  bool uniform() const { return mask.empty(); }
  bool all_trusted() const { return uniform() ? trusted : mask.find('\0') == std::string::npos; }
  Text sub(std::size_t at, std::size_t count = std::string::npos) const;
  void append(const Text& other);
  // Other bytes for the same meaning (upper case, escaped): trusted only if all of this is.
  Text with_bytes(std::string other) const { return {std::move(other), {}, all_trusted()}; }
};

enum class Type { undefined, none, boolean, integer, big_integer, real, text, list, tuple, generator, dict, function, space, opaque };

class Value;
struct Budget;
struct Dict;
struct Space;
struct Function;
using List = std::vector<Value>;

class Value {
 public:
  Value() = default;  // undefined
  static Value undefined(std::string hint, bool unsafe = false);
  static Value none() { return Value{Type::none}; }
  static Value boolean(bool value);
  static Value integer(std::int64_t value);
  static Value big_integer(std::string digits);
  static Value real(double value);
  static Value text(Text value);
  static Value text(std::string bytes, bool trusted) { return text(Text{std::move(bytes), {}, trusted}); }
  static Value list(List items);
  static Value tuple(List items);
  // What map, select and their like give: it can be iterated over, and nothing else, as in Jinja.
  static Value generator(List items);
  static Value dict(Dict items);
  // `of`: what the body keeps, when it is the method of a value.
  static Value function(std::string name, std::function<Value(struct Call&)> body, const Value* of = nullptr);
  static Value space(std::shared_ptr<Space> space);
  static Value opaque(std::string name);  // exists, prints its name, has nothing inside
  // A JSON value of the context. Texts are untrusted unless `trusted`.
  static Value from_json(const json::value& value, bool trusted = false);
  // How deep values may lie in each other: they are freed by recursion.
  static constexpr std::uint32_t kMaxNesting = 1000;

  Type type() const { return type_; }
  bool is(Type type) const { return type_ == type; }
  bool is_number() const { return type_ == Type::boolean || type_ == Type::integer || type_ == Type::real; }
  bool is_sequence() const { return type_ == Type::list || type_ == Type::tuple; }
  bool truthy() const;
  std::int64_t as_integer() const { return integer_; }  // boolean, integer
  double as_real() const { return type_ == Type::real ? real_ : static_cast<double>(integer_); }
  const Text& as_text() const { return *static_cast<const Text*>(object_.get()); }
  const List& as_list() const { return *static_cast<const List*>(object_.get()); }
  const Dict& as_dict() const { return *static_cast<const Dict*>(object_.get()); }
  Space& as_space() const { return *static_cast<Space*>(const_cast<void*>(object_.get())); }
  const Function& as_function() const { return *static_cast<const Function*>(object_.get()); }
  bool unsafe() const { return integer_ != 0; }  // undefined: it stands for something that templates may not reach
  const std::string& hint() const;               // undefined, opaque: what it is, for messages
  const void* identity() const { return object_.get(); }
  // What going through it once costs, in steps.
  std::uint64_t weight() const;

 private:
  explicit Value(Type type) : type_{type} {}
  void contains(const Value& inner);  // throws TemplateError when that is too deep
  Type type_ = Type::undefined;
  std::uint32_t nesting_ = 0;
  std::int64_t integer_ = 0;
  double real_ = 0;
  std::shared_ptr<const void> object_;  // shared: values are passed around freely and never change
};

struct Dict {
  std::vector<std::pair<Value, Value>> items;
  const Value* find(const Value& key, Budget& budget) const;
  const Value* find(std::string_view key) const;
  void set(Value key, Value value, Budget& budget);  // while it is being made
  void set(std::string_view key, bool trusted, Value value);

 private:
  std::unordered_map<std::string_view, std::size_t> by_text_;  // into the keys' own texts
};

class Variables;

// All variables of one render that are alive. Values count references, which never frees what holds itself, and frees long chains by
// deep recursion. Variables alone can change, so every circle and every chain that grows leads through some: at the end of the render
// all are emptied, and what they held is freed one after the other.
class Living {
 public:
  Living() = default;
  ~Living() { clear(); }
  Living(const Living&) = delete;
  Living& operator=(const Living&) = delete;
  void clear();

 private:
  friend class Variables;
  using Values = std::unordered_map<std::string, Value>;
  void bury(Values values);

  Variables* first_ = nullptr;
  std::vector<Values> graves_;
  bool digging_ = false;
};

// Of a scope or a namespace. Must not outlive `living`.
class Variables {
 public:
  explicit Variables(Living& living);
  ~Variables();
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  std::unordered_map<std::string, Value> values;

 private:
  friend class Living;
  void unlink();

  Living& living_;
  Variables *before_ = nullptr, *after_ = nullptr;
  bool linked_ = true;
};

struct Space : Variables {  // namespace(): the one thing that assignments inside loops can change
  using Variables::Variables;
};

// Counts what rendering uses up, and stops it. One per render.
struct Budget {
  std::uint64_t steps = 0, output_bytes = 0;
  std::uint32_t depth = 0;
  std::uint64_t max_steps = 0, max_output_bytes = 0;
  std::uint32_t max_depth = 0;
  std::optional<std::int64_t> now;  // seconds since 1970 for strftime_now
  Living living;

  void spend(std::uint64_t steps_used) {
    steps += steps_used;
    if (steps > max_steps) throw TemplateError{"the template does too much work (limit: " + std::to_string(max_steps) + " steps)"};
  }
  // A text or list of this many bytes or items is about to be made.
  void spend_bytes(std::uint64_t bytes) {
    if (bytes > max_output_bytes) throw TemplateError{"the template makes a text of over " + std::to_string(max_output_bytes) + " bytes"};
    spend(bytes / 16);
  }
  // Every character of these bytes is looked up in Unicode's tables.
  void spend_characters(std::uint64_t bytes) { spend(bytes / 8); }
  void enter() {
    if (++depth > max_depth) throw TemplateError{"the template nests too deeply (limit: " + std::to_string(max_depth) + ")"};
  }
  void leave() { --depth; }
};

struct Call {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  Budget* budget = nullptr;

  // The argument at this position or of this name; `fallback` when absent.
  Value get(std::size_t position, std::string_view name, Value fallback) const;
  const Value* find(std::size_t position, std::string_view name) const;
  // Refuses arguments beyond `most` positions and names that are not in the list.
  void check(std::string_view function, std::size_t least, std::size_t most, std::initializer_list<std::string_view> names = {}) const;
};

struct Function {
  std::string name;
  std::function<Value(Call&)> body;
};

const char* type_name(const Value& value);             // as Python: "str", "list"
Text to_text(const Value& value, Budget& budget);      // str(value)
std::string repr(const Value& value, Budget& budget);  // repr(value)
std::string real_text(double value);                   // repr of a float
bool equal(const Value& a, const Value& b, Budget& budget);
int compare(const Value& a, const Value& b, Budget& budget);  // -1, 0, 1; TemplateError when they have no order
bool contains(const Value& container, const Value& item, Budget& budget);
std::size_t length(const Value& value);
// What `for` runs over: items, keys, or code points.
List iterate(const Value& value, Budget& budget);

struct JsonStyle {
  int indent = -1;
  bool sort_keys = false, ascii = false;
  std::string item_separator = ", ", key_separator = ": ";
};
std::string to_json(const Value& value, const JsonStyle& style, Budget& budget);

}  // namespace mekik::text::jinja
