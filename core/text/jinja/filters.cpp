// Filters: value | name(arguments).
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "text/jinja/builtins.hpp"
#include "text/jinja/list_filters.hpp"

namespace mekik::text::jinja {

namespace {

using Filter = Value (*)(const Value&, const std::string&, Call&);

Value stringify(const Value& v, Call& c) { return v.is(Type::text) ? v : Value::text(to_text(v, *c.budget)); }
Text as_str(const Value& v, Call& c) { return to_text(v, *c.budget); }

Value tojson(const Value& v, const std::string&, Call& c) {
  c.check("tojson", 0, 1, {"indent", "ensure_ascii", "separators", "sort_keys"});
  JsonStyle style;
  if (const Value* indent = c.find(0, "indent"); indent && !indent->is(Type::none)) {
    const std::int64_t width = need_integer(*indent, "tojson");
    if (width > 64) throw TemplateError{"tojson: an indent of at most 64 is allowed"};
    style.indent = static_cast<int>(std::max<std::int64_t>(width, 0));
  }
  style.ascii = c.get(1, "ensure_ascii", Value::boolean(false)).truthy();
  style.sort_keys = c.get(3, "sort_keys", Value::boolean(false)).truthy();
  if (const Value* pair = c.find(2, "separators"); pair && !pair->is(Type::none)) {
    if (!pair->is_sequence() || pair->as_list().size() != 2) throw TemplateError{"tojson: separators is a pair of texts"};
    style.item_separator = need_text(pair->as_list()[0], "tojson").bytes;
    style.key_separator = need_text(pair->as_list()[1], "tojson").bytes;
  }
  return Value::text(to_json(v, style, *c.budget), false);
}

Value default_value(const Value& v, const std::string&, Call& c) {
  c.check("default", 0, 2, {"default_value", "boolean"});
  const bool replace = v.is(Type::undefined) || (c.get(1, "boolean", Value::boolean(false)).truthy() && !v.truthy());
  return replace ? c.get(0, "default_value", Value::text("", true)) : v;
}

Value indent(const Value& v, const std::string&, Call& c) {
  c.check("indent", 0, 3, {"width", "first", "blank"});
  const Value width = c.get(0, "width", Value::integer(4));
  if (!width.is(Type::text) && (need_integer(width, "indent") > 1024 || width.as_integer() < 0))
    throw TemplateError{"indent: a width of 0 to 1024 is allowed"};
  const Text space =
      width.is(Type::text) ? width.as_text() : Text{std::string(static_cast<std::size_t>(width.as_integer()), ' '), {}, true};
  const bool first = c.get(1, "first", Value::boolean(false)).truthy(), blank = c.get(2, "blank", Value::boolean(false)).truthy();
  const Text text = as_str(v, c);
  Text out;
  for (std::size_t at = 0, line = 0; at <= text.bytes.size(); ++line) {
    const std::size_t end = std::min(text.bytes.find('\n', at), text.bytes.size());
    if ((line > 0 || first) && (blank || end > at)) out.append(space);
    out.append(text.sub(at, end - at + 1));
    if (out.bytes.size() > c.budget->max_output_bytes) c.budget->spend_bytes(out.bytes.size());
    at = end + 1;
    if (end == text.bytes.size()) break;
  }
  c.budget->spend_bytes(out.bytes.size());
  return Value::text(std::move(out));
}

Value escape(const Value& v, const std::string&, Call& c) {
  std::string out;
  const Text text = as_str(v, c);
  for (const char x : text.bytes) {
    if (x == '&') out += "&amp;";
    else if (x == '<') out += "&lt;";
    else if (x == '>') out += "&gt;";
    else if (x == '"') out += "&#34;";
    else if (x == '\'') out += "&#39;";
    else out += x;
  }
  return Value::text(text.with_bytes(std::move(out)));
}

Value round(const Value& v, const std::string&, Call& c) {
  c.check("round", 0, 2, {"precision", "method"});
  if (!v.is_number()) throw TemplateError{std::string{"round needs a number, not "} + type_name(v)};
  const double scale = std::pow(10.0, static_cast<double>(need_integer(c.get(0, "precision", Value::integer(0)), "round")));
  const std::string method = as_str(c.get(1, "method", Value::text("common", true)), c).bytes;
  const double scaled = v.as_real() * scale;
  if (method == "common") return Value::real(std::nearbyint(scaled) / scale);
  if (method == "ceil") return Value::real(std::ceil(scaled) / scale);
  if (method == "floor") return Value::real(std::floor(scaled) / scale);
  throw TemplateError{"round: method is common, ceil or floor"};
}

Value first_last(const Value& v, const std::string& name, Call& c) {
  const List items = iterate(v, *c.budget);
  if (items.empty()) return Value::undefined("the " + name + " of nothing");
  return name == "first" ? items.front() : items.back();
}

Value reverse(const Value& v, const std::string&, Call& c) {
  if (v.is(Type::text)) return slice(v, Value::none(), Value::none(), Value::integer(-1), *c.budget);
  List items = iterate(v, *c.budget);
  std::reverse(items.begin(), items.end());
  return Value::list(std::move(items));
}

Value items(const Value& v, const std::string&, Call& c) {
  if (v.is(Type::undefined)) return Value::list({});
  if (!v.is(Type::dict)) throw TemplateError{std::string{"items needs a dict, not "} + type_name(v)};
  List out;
  c.budget->spend(v.as_dict().items.size());
  for (const auto& [key, value] : v.as_dict().items) out.push_back(Value::tuple({key, value}));
  return Value::list(std::move(out));
}

Value abs(const Value& v, const std::string&, Call& c) {
  if (v.is(Type::real)) return Value::real(std::abs(v.as_real()));
  return need_integer(v, "abs") < 0 ? arithmetic("-", Value::integer(0), v, *c.budget) : v;
}

const std::unordered_map<std::string, Filter>& filters() {
  static const std::unordered_map<std::string, Filter> kFilters{
      {"tojson", tojson},
      {"default", default_value},
      {"d", default_value},
      {"map", map},
      {"select", choose},
      {"reject", choose},
      {"selectattr", choose},
      {"rejectattr", choose},
      {"sort", sort},
      {"dictsort", dictsort},
      {"unique", unique},
      {"groupby", groupby},
      {"indent", indent},
      {"escape", escape},
      {"e", escape},
      {"int", to_int},
      {"float", to_float},
      {"round", round},
      {"min", extreme},
      {"max", extreme},
      {"sum", sum},
      {"batch", batch},
      {"first", first_last},
      {"last", first_last},
      {"reverse", reverse},
      {"items", items},
      {"abs", abs},
      {"length", [](const Value& v, const std::string&, Call&) { return Value::integer(static_cast<std::int64_t>(length(v))); }},
      {"count", [](const Value& v, const std::string&, Call&) { return Value::integer(static_cast<std::int64_t>(length(v))); }},
      {"string", [](const Value& v, const std::string&, Call& c) { return stringify(v, c); }},
      {"safe", [](const Value& v, const std::string&, Call& c) { return stringify(v, c); }},
      {"list", [](const Value& v, const std::string&, Call& c) { return Value::list(iterate(v, *c.budget)); }},
      {"upper", [](const Value& v, const std::string&, Call& c) { return Value::text(map_case(as_str(v, c), 'u', *c.budget)); }},
      {"lower", [](const Value& v, const std::string&, Call& c) { return Value::text(map_case(as_str(v, c), 'l', *c.budget)); }},
      {"title", [](const Value& v, const std::string&, Call& c) { return Value::text(map_case(as_str(v, c), 't', *c.budget)); }},
      {"capitalize", [](const Value& v, const std::string&, Call& c) { return Value::text(map_case(as_str(v, c), 'c', *c.budget)); }},
      {"trim",
       [](const Value& v, const std::string& n, Call& c) {
         c.check(n, 0, 1, {"chars"});
         return Value::text(strip(as_str(v, c), c.find(0, "chars"), true, true, *c.budget));
       }},
      {"replace",
       [](const Value& v, const std::string& n, Call& c) {
         c.check(n, 2, 3, {"old", "new", "count"});
         const Value count = c.get(2, "count", Value::none());
         return Value::text(replace(as_str(v, c), as_str(c.get(0, "old", Value{}), c), as_str(c.get(1, "new", Value{}), c),
                                    count.is(Type::none) ? -1 : need_integer(count, "replace"), *c.budget));
       }},
      {"join",
       [](const Value& v, const std::string& n, Call& c) {
         c.check(n, 0, 2, {"d", "attribute"});
         List list = iterate(v, *c.budget);
         if (const Value* by = c.find(1, "attribute"))
           for (Value& item : list) item = item_attribute(item, *by, *c.budget);
         return Value::text(join(list, as_str(c.get(0, "d", Value::text("", true)), c), *c.budget));
       }},
      {"format",
       [](const Value& v, const std::string&, Call& c) { return Value::text(format_percent(as_str(v, c), c.positional, *c.budget)); }},
      {"attr",
       [](const Value& v, const std::string& n, Call& c) {
         c.check(n, 1, 1);
         return v.is(Type::dict) && !attribute(v, as_str(c.positional[0], c).bytes, *c.budget).is(Type::function)
                    ? Value::undefined("attr")
                    : attribute(v, as_str(c.positional[0], c).bytes, *c.budget);
       }},
      {"center",
       [](const Value& v, const std::string& n, Call& c) {
         c.check(n, 0, 1, {"width"});
         Call inner{{c.get(0, "width", Value::integer(80))}, {}, c.budget};
         return call(text_method(stringify(v, c), "center"), inner);
       }},
      {"wordcount",
       [](const Value& v, const std::string&, Call& c) {
         return Value::integer(static_cast<std::int64_t>(split(as_str(v, c), nullptr, -1, false, *c.budget).size()));
       }},
  };
  return kFilters;
}

}  // namespace

bool has_filter(const std::string& name) { return filters().contains(name); }

std::string unknown_filter(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, unused] : filters()) names.push_back(known);
  const auto near = closest(name, names);
  return "unknown filter " + quoted(name) + (near ? "; did you mean " + quoted(*near) + "?" : "");
}

Value apply_filter(const std::string& name, const Value& value, Call& call) {
  const auto it = filters().find(name);
  if (it == filters().end()) throw TemplateError{unknown_filter(name)};
  call.budget->spend(1 + value.weight());
  spend_on(call);
  call.budget->enter();
  Value out = it->second(value, name, call);
  call.budget->leave();
  if (out.identity() != value.identity()) call.budget->spend(out.weight());
  return out;
}

}  // namespace mekik::text::jinja
