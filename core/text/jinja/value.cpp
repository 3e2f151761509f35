#include "text/jinja/value.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "text/jinja/builtins.hpp"

namespace mekik::text::jinja {

Text Text::sub(std::size_t at, std::size_t count) const {
  Text out{bytes.substr(at, count), {}, trusted};
  if (uniform()) return out;
  out.mask = mask.substr(at, count);
  if (out.mask.find(out.mask.empty() ? '\0' : out.mask[0] ? '\0' : '\1') != std::string::npos) return out;
  out.trusted = !out.mask.empty() && out.mask[0] != 0;  // the piece is of one kind
  out.mask.clear();
  return out;
}

void Text::append(const Text& other) {
  if (other.bytes.empty()) return;
  if (bytes.empty()) {
    *this = other;
    return;
  }
  if (uniform() && other.uniform() && trusted == other.trusted) {
    bytes += other.bytes;
    return;
  }
  if (uniform()) mask.assign(bytes.size(), trusted ? '\1' : '\0');
  if (other.uniform()) mask.append(other.bytes.size(), other.trusted ? '\1' : '\0');
  else mask += other.mask;
  bytes += other.bytes;
}

namespace {
template <class T>
std::shared_ptr<const void> hold(T value) {
  return std::make_shared<const T>(std::move(value));
}
const std::string kNoHint = "value";
}  // namespace

Value Value::undefined(std::string hint, bool unsafe) {
  Value v{Type::undefined};
  v.integer_ = unsafe ? 1 : 0;
  v.object_ = hold(std::move(hint));
  return v;
}
Value Value::boolean(bool value) {
  Value v{Type::boolean};
  v.integer_ = value ? 1 : 0;
  return v;
}
Value Value::integer(std::int64_t value) {
  Value v{Type::integer};
  v.integer_ = value;
  return v;
}
Value Value::big_integer(std::string digits) {
  Value v{Type::big_integer};
  v.object_ = hold(std::move(digits));
  return v;
}
Value Value::real(double value) {
  Value v{Type::real};
  v.real_ = value;
  return v;
}
Value Value::text(Text value) {
  Value v{Type::text};
  v.object_ = hold(std::move(value));
  return v;
}
// Deeper values could not be freed without overflowing the stack.
void Value::contains(const Value& inner) {
  nesting_ = std::max(nesting_, inner.nesting_ + 1);
  if (nesting_ > kMaxNesting) throw TemplateError{"values nest too deeply (limit: " + std::to_string(kMaxNesting) + ")"};
}

Value Value::list(List items) {
  Value v{Type::list};
  for (const Value& item : items) v.contains(item);
  v.object_ = hold(std::move(items));
  return v;
}
Value Value::tuple(List items) {
  Value v{Type::tuple};
  for (const Value& item : items) v.contains(item);
  v.object_ = hold(std::move(items));
  return v;
}
Value Value::generator(List items) {
  Value v{Type::generator};
  for (const Value& item : items) v.contains(item);
  v.object_ = hold(std::move(items));
  return v;
}
Value Value::dict(Dict items) {
  Value v{Type::dict};
  for (const auto& [key, value] : items.items) {
    v.contains(key);
    v.contains(value);
  }
  v.object_ = hold(std::move(items));
  return v;
}
Value Value::function(std::string name, std::function<Value(Call&)> body, const Value* of) {
  Value v{Type::function};
  if (of != nullptr) v.contains(*of);
  v.object_ = hold(Function{std::move(name), std::move(body)});
  return v;
}
Value Value::space(std::shared_ptr<Space> space) {
  Value v{Type::space};
  v.object_ = std::move(space);
  return v;
}
Value Value::opaque(std::string name) {
  Value v{Type::opaque};
  v.object_ = hold(std::move(name));
  return v;
}

const std::string& Value::hint() const { return object_ ? *static_cast<const std::string*>(object_.get()) : kNoHint; }

Value Value::from_json(const json::value& value, bool trusted) {
  if (value.is_null()) return none();
  if (const bool* b = value.if_bool()) return boolean(*b);
  if (const std::int64_t* i = value.if_int64()) return integer(*i);
  if (const std::uint64_t* u = value.if_uint64()) return big_integer(std::to_string(*u));
  if (const double* d = value.if_double()) return real(*d);
  if (const json::string* s = value.if_string()) return text(std::string{s->data(), s->size()}, trusted);
  if (const json::array* items = value.if_array()) {
    List out;
    out.reserve(items->size());
    for (const json::value& item : *items) out.push_back(from_json(item, trusted));
    return list(std::move(out));
  }
  Dict out;
  for (const auto& member : value.as_object()) out.set(member.key(), trusted, from_json(member.value(), trusted));
  return dict(std::move(out));
}

std::uint64_t Value::weight() const {
  if (is(Type::text)) return as_text().bytes.size() / 32;
  if (is(Type::list) || is(Type::tuple) || is(Type::generator)) return as_list().size() / 4;
  return is(Type::dict) ? as_dict().items.size() : 0;
}

bool Value::truthy() const {
  switch (type_) {
    case Type::undefined:
    case Type::none:
      return false;
    case Type::boolean:
    case Type::integer:
      return integer_ != 0;
    case Type::real:
      return real_ != 0;
    case Type::text:
      return !as_text().bytes.empty();
    case Type::list:
    case Type::tuple:
      return !as_list().empty();
    case Type::dict:
      return !as_dict().items.empty();
    default:
      return true;
  }
}

const Value* Dict::find(std::string_view key) const {
  const auto it = by_text_.find(key);
  return it == by_text_.end() ? nullptr : &items[it->second].second;
}

const Value* Dict::find(const Value& key, Budget& budget) const {
  budget.spend(key.weight());
  if (key.is(Type::text)) return find(std::string_view{key.as_text().bytes});
  for (const auto& [k, v] : items)
    if (!k.is(Type::text) && equal(k, key, budget)) return &v;
  return nullptr;
}

void Dict::set(Value key, Value value, Budget& budget) {
  if (key.is(Type::list) || key.is(Type::dict)) throw TemplateError{std::string{"a "} + type_name(key) + " cannot be a key of a dict"};
  if (const Value* there = find(key, budget)) {
    *const_cast<Value*>(there) = std::move(value);
    return;
  }
  if (key.is(Type::text)) by_text_.emplace(key.as_text().bytes, items.size());
  items.emplace_back(std::move(key), std::move(value));
}

void Dict::set(std::string_view key, bool trusted, Value value) {
  if (const Value* there = find(key)) {
    *const_cast<Value*>(there) = std::move(value);
    return;
  }
  Value own = Value::text(std::string{key}, trusted);
  by_text_.emplace(own.as_text().bytes, items.size());
  items.emplace_back(std::move(own), std::move(value));
}

const Value* Call::find(std::size_t position, std::string_view name) const {
  if (position < positional.size()) return &positional[position];
  for (const auto& [n, v] : named)
    if (n == name) return &v;
  return nullptr;
}

Value Call::get(std::size_t position, std::string_view name, Value fallback) const {
  const Value* found = find(position, name);
  return found ? *found : std::move(fallback);
}

void Call::check(std::string_view function, std::size_t least, std::size_t most, std::initializer_list<std::string_view> names) const {
  const std::string what{function};
  if (positional.size() > most)
    throw TemplateError{what + " takes at most " + std::to_string(most) + " arguments, not " + std::to_string(positional.size())};
  for (const auto& [name, value] : named)
    if (std::find(names.begin(), names.end(), name) == names.end()) throw TemplateError{what + " has no argument " + quoted(name)};
  if (positional.size() + named.size() < least)
    throw TemplateError{what + " needs " + std::to_string(least) + " argument" + (least == 1 ? "" : "s")};
}

const char* type_name(const Value& value) {
  switch (value.type()) {
    case Type::undefined:
      return "Undefined";
    case Type::none:
      return "NoneType";
    case Type::boolean:
      return "bool";
    case Type::integer:
    case Type::big_integer:
      return "int";
    case Type::real:
      return "float";
    case Type::text:
      return "str";
    case Type::list:
      return "list";
    case Type::tuple:
      return "tuple";
    case Type::generator:
      return "generator (the filter list makes a list of it)";
    case Type::dict:
      return "dict";
    case Type::function:
      return "function";
    case Type::space:
      return "Namespace";
    case Type::opaque:
      return "object";
  }
  return "object";
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  if (a.is_number() && b.is_number()) {
    if (!a.is(Type::real) && !b.is(Type::real)) return a.as_integer() == b.as_integer();
    return a.as_real() == b.as_real();
  }
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::undefined:
    case Type::none:
      return true;
    case Type::text:
      budget.spend(std::min(a.as_text().bytes.size(), b.as_text().bytes.size()) / 64);
      return a.as_text().bytes == b.as_text().bytes;
    case Type::big_integer:
      budget.spend(std::min(a.hint().size(), b.hint().size()) / 64);
      return a.hint() == b.hint();
    case Type::list:
    case Type::tuple: {
      if (a.as_list().size() != b.as_list().size()) return false;
      budget.enter();
      const bool same = std::equal(a.as_list().begin(), a.as_list().end(), b.as_list().begin(),
                                   [&](const Value& x, const Value& y) { return equal(x, y, budget); });
      budget.leave();
      return same;
    }
    case Type::dict: {
      if (a.as_dict().items.size() != b.as_dict().items.size()) return false;
      budget.enter();
      const bool same = std::all_of(a.as_dict().items.begin(), a.as_dict().items.end(), [&](const auto& item) {
        const Value* other = b.as_dict().find(item.first, budget);
        return other != nullptr && equal(item.second, *other, budget);
      });
      budget.leave();
      return same;
    }
    default:
      return a.identity() == b.identity();
  }
}

int compare(const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  if (a.is_number() && b.is_number()) {
    if (!a.is(Type::real) && !b.is(Type::real)) return a.as_integer() < b.as_integer() ? -1 : a.as_integer() > b.as_integer() ? 1 : 0;
    return a.as_real() < b.as_real() ? -1 : a.as_real() > b.as_real() ? 1 : 0;
  }
  if (a.is(Type::text) && b.is(Type::text)) {
    budget.spend(std::min(a.as_text().bytes.size(), b.as_text().bytes.size()) / 64);
    const int order = a.as_text().bytes.compare(b.as_text().bytes);  // UTF-8 sorts as its code points do
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  if (a.is_sequence() && a.type() == b.type()) {
    budget.enter();
    const List &x = a.as_list(), &y = b.as_list();
    int order = 0;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()) && order == 0; ++i) order = compare(x[i], y[i], budget);
    budget.leave();
    return order != 0 ? order : x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  }
  throw TemplateError{std::string{"values of type "} + type_name(a) + " and " + type_name(b) + " have no order"};
}

bool contains(const Value& container, const Value& item, Budget& budget) {
  switch (container.type()) {
    case Type::text:
      if (!item.is(Type::text)) throw TemplateError{std::string{"'in <str>' needs a str on its left, not "} + type_name(item)};
      budget.spend(container.weight());
      return find_text(container.as_text().bytes, item.as_text().bytes) != std::string::npos;
    case Type::list:
    case Type::tuple:
    case Type::generator:
      return std::any_of(container.as_list().begin(), container.as_list().end(), [&](const Value& v) { return equal(v, item, budget); });
    case Type::dict:
      return container.as_dict().find(item, budget) != nullptr;
    case Type::undefined:
      return false;
    default:
      throw TemplateError{std::string{"a "} + type_name(container) + " has nothing inside to look for"};
  }
}

std::size_t length(const Value& value) {
  switch (value.type()) {
    case Type::text:
      return utf8_length(value.as_text().bytes);
    case Type::list:
    case Type::tuple:
      return value.as_list().size();
    case Type::dict:
      return value.as_dict().items.size();
    case Type::undefined:
      return 0;
    default:
      throw TemplateError{std::string{"a "} + type_name(value) + " has no length"};
  }
}

List iterate(const Value& value, Budget& budget) {
  List out;
  switch (value.type()) {
    case Type::undefined:
      break;
    case Type::list:
    case Type::tuple:
    case Type::generator:
      out = value.as_list();
      break;
    case Type::dict:
      for (const auto& [key, unused] : value.as_dict().items) out.push_back(key);
      break;
    case Type::text: {
      const Text& text = value.as_text();
      budget.spend(text.bytes.size());
      for (std::size_t at = 0; at < text.bytes.size();) {
        const std::size_t begin = at;
        next_code_point(text.bytes, at);
        out.push_back(Value::text(text.sub(begin, at - begin)));
      }
      break;
    }
    default:
      throw TemplateError{std::string{"a "} + type_name(value) + " cannot be iterated over"};
  }
  budget.spend(out.size());
  return out;
}

}  // namespace mekik::text::jinja
