// The methods of str.
#include <algorithm>

#include "base/text.hpp"
#include "text/jinja/builtins.hpp"
#include "text/jinja/characters.hpp"

namespace mekik::text::jinja {

namespace {

bool all_of(const Text& text, bool (*is)(char32_t), Budget& budget) {
  budget.spend_characters(text.bytes.size());
  if (text.bytes.empty()) return false;
  for (std::size_t at = 0; at < text.bytes.size();)
    if (!is(next_code_point(text.bytes, at))) return false;
  return true;
}

bool one_case(const Text& text, char32_t (*fold)(char32_t), Budget& budget) {
  budget.spend_characters(text.bytes.size());
  bool cased = false;
  for (std::size_t at = 0; at < text.bytes.size();) {
    const char32_t c = next_code_point(text.bytes, at);
    if (fold(c) != c) return false;
    cased = cased || upper(c) != lower(c);
  }
  return cased;
}

bool affix(const Text& text, const Value& which, bool front) {
  if (which.is(Type::tuple))
    return std::any_of(which.as_list().begin(), which.as_list().end(), [&](const Value& v) { return affix(text, v, front); });
  const std::string& part = need_text(which, front ? "startswith" : "endswith").bytes;
  return front ? text.bytes.starts_with(part) : text.bytes.ends_with(part);
}

Value find(const Text& text, const std::string& name, Call& call) {
  call.check(name, 1, 1);
  const std::string& part = need_text(call.positional[0], name.c_str()).bytes;
  const std::size_t at = name[0] == 'r' ? find_last_text(text.bytes, part) : find_text(text.bytes, part);
  if (at != std::string::npos) return Value::integer(static_cast<std::int64_t>(utf8_length(std::string_view{text.bytes}.substr(0, at))));
  if (name == "index" || name == "rindex") throw TemplateError{"the text to find is not there"};
  return Value::integer(-1);
}

Value partition(const Text& text, const std::string& name, Call& call) {
  call.check(name, 1, 1);
  const Text& by = need_text(call.positional[0], name.c_str());
  if (by.bytes.empty()) throw TemplateError{name + " needs a separator that is not empty"};
  const std::size_t at = name[0] == 'r' ? find_last_text(text.bytes, by.bytes) : find_text(text.bytes, by.bytes);
  if (at == std::string::npos)
    return name[0] == 'r' ? Value::tuple({Value::text({}), Value::text({}), Value::text(text)})
                          : Value::tuple({Value::text(text), Value::text({}), Value::text({})});
  return Value::tuple(
      {Value::text(text.sub(0, at)), Value::text(text.sub(at, by.bytes.size())), Value::text(text.sub(at + by.bytes.size()))});
}

std::int64_t count(const Text& text, const Text& part, Budget& budget) {
  if (part.bytes.empty()) return static_cast<std::int64_t>(utf8_length(text.bytes)) + 1;
  std::int64_t n = 0;
  for (std::size_t at = 0; (at = find_text(text.bytes, part.bytes, at)) != std::string::npos; at += part.bytes.size()) {
    if (++n % 8 == 0) budget.spend(1);
  }
  return n;
}

List split_lines(const Text& text, Budget& budget) {
  List out;
  for (std::size_t at = 0; at < text.bytes.size();) {
    budget.spend(1);
    const std::size_t end = std::min(text.bytes.find_first_of("\r\n", at), text.bytes.size());
    out.push_back(Value::text(text.sub(at, end - at)));
    at = end + (text.bytes.compare(end, 2, "\r\n") == 0 ? 2 : 1);
  }
  return out;
}

// str.format with {}, {0} and {name}; no attributes, no format specifications.
Text format_braces(const Text& format, Call& call) {
  Text out;
  std::size_t automatic = 0;
  for (std::size_t at = 0; at < format.bytes.size();) {
    call.budget->spend(2);
    const char c = format.bytes[at];
    if ((c == '{' || c == '}') && at + 1 < format.bytes.size() && format.bytes[at + 1] == c) {
      out.append(format.sub(at, 1));
      at += 2;
    } else if (c == '{') {
      const std::size_t end = format.bytes.find('}', at);
      if (end == std::string::npos) throw TemplateError{"format: \"}\" is missing"};
      const std::string field = format.bytes.substr(at + 1, end - at - 1);
      if (field.find_first_of(".[!:") != std::string::npos)
        throw TemplateError{"format: only {}, {0} and {name} are supported, not {" + field + "}"};
      const bool numbered = !field.empty() && field.find_first_not_of("0123456789") == std::string::npos && field.size() < 6;
      const Value* value = field.empty() ? call.find(automatic++, "")
                           : numbered    ? call.find(static_cast<std::size_t>(std::stoul(field)), "")
                                         : call.find(call.positional.size(), field);
      if (value == nullptr) throw TemplateError{"format: no argument for {" + field + "}"};
      out.append(to_text(*value, *call.budget));
      at = end + 1;
    } else {
      const std::size_t end = std::min(format.bytes.find_first_of("{}", at + 1), format.bytes.size());
      out.append(format.sub(at, end - at));
      at = end;
    }
    if (out.bytes.size() > call.budget->max_output_bytes) call.budget->spend_bytes(out.bytes.size());
  }
  return out;
}

}  // namespace

Value text_method(const Value& of, const std::string& name) {
  using Method = Value (*)(const Text&, const std::string&, Call&);
  static const std::unordered_map<std::string, Method> kMethods{
      {"strip",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 1);
         return Value::text(strip(t, c.find(0, "chars"), true, true, *c.budget));
       }},
      {"lstrip",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 1);
         return Value::text(strip(t, c.find(0, "chars"), true, false, *c.budget));
       }},
      {"rstrip",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 1);
         return Value::text(strip(t, c.find(0, "chars"), false, true, *c.budget));
       }},
      {"split",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 2, {"sep", "maxsplit"});
         return Value::list(split(t, c.find(0, "sep"), need_integer(c.get(1, "maxsplit", Value::integer(-1)), "split"), false, *c.budget));
       }},
      {"rsplit",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 2, {"sep", "maxsplit"});
         return Value::list(split(t, c.find(0, "sep"), need_integer(c.get(1, "maxsplit", Value::integer(-1)), "rsplit"), true, *c.budget));
       }},
      {"splitlines",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::list(split_lines(t, *c.budget));
       }},
      {"partition", [](const Text& t, const std::string& n, Call& c) { return partition(t, n, c); }},
      {"rpartition", [](const Text& t, const std::string& n, Call& c) { return partition(t, n, c); }},
      {"startswith",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 1, 1);
         return Value::boolean(affix(t, c.positional[0], true));
       }},
      {"endswith",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 1, 1);
         return Value::boolean(affix(t, c.positional[0], false));
       }},
      {"removeprefix",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 1, 1);
         return Value::text(affix(t, c.positional[0], true) ? t.sub(c.positional[0].as_text().bytes.size()) : t);
       }},
      {"removesuffix",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 1, 1);
         return Value::text(affix(t, c.positional[0], false) ? t.sub(0, t.bytes.size() - c.positional[0].as_text().bytes.size()) : t);
       }},
      {"replace",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 2, 3, {"count"});
         return Value::text(replace(t, need_text(c.positional[0], "replace"), need_text(c.get(1, "", Value{}), "replace"),
                                    need_integer(c.get(2, "count", Value::integer(-1)), "replace"), *c.budget));
       }},
      {"find", [](const Text& t, const std::string& n, Call& c) { return find(t, n, c); }},
      {"rfind", [](const Text& t, const std::string& n, Call& c) { return find(t, n, c); }},
      {"index", [](const Text& t, const std::string& n, Call& c) { return find(t, n, c); }},
      {"rindex", [](const Text& t, const std::string& n, Call& c) { return find(t, n, c); }},
      {"count",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 1, 1);
         return Value::integer(count(t, need_text(c.positional[0], "count"), *c.budget));
       }},
      {"join",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 1, 1);
         List items = iterate(c.positional[0], *c.budget);
         for (const Value& v : items) need_text(v, "join");
         return Value::text(join(items, t, *c.budget));
       }},
      {"upper",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::text(map_case(t, 'u', *c.budget));
       }},
      {"lower",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::text(map_case(t, 'l', *c.budget));
       }},
      {"casefold",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::text(map_case(t, 'l', *c.budget));
       }},
      {"title",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::text(map_case(t, 't', *c.budget));
       }},
      {"capitalize",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::text(map_case(t, 'c', *c.budget));
       }},
      {"swapcase",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::text(map_case(t, 's', *c.budget));
       }},
      {"isdigit",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::boolean(all_of(t, is_decimal, *c.budget));
       }},
      {"isdecimal",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::boolean(all_of(t, is_decimal, *c.budget));
       }},
      {"isnumeric",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::boolean(all_of(t, is_decimal, *c.budget));
       }},
      {"isalpha",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::boolean(all_of(t, is_letter, *c.budget));
       }},
      {"isalnum",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::boolean(all_of(
             t, [](char32_t x) { return is_letter(x) || is_decimal(x); }, *c.budget));
       }},
      {"isspace",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::boolean(all_of(t, is_white, *c.budget));
       }},
      {"isupper",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::boolean(one_case(t, upper, *c.budget));
       }},
      {"islower",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 0, 0);
         return Value::boolean(one_case(t, lower, *c.budget));
       }},
      {"zfill",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 1, 1);
         return Value::text(pad(t, need_integer(c.positional[0], "zfill"), Text{"0", {}, true}, 1, *c.budget));
       }},
      {"ljust",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 1, 2);
         return Value::text(
             pad(t, need_integer(c.positional[0], "ljust"), need_text(c.get(1, "", Value::text(" ", true)), "ljust"), -1, *c.budget));
       }},
      {"rjust",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 1, 2);
         return Value::text(
             pad(t, need_integer(c.positional[0], "rjust"), need_text(c.get(1, "", Value::text(" ", true)), "rjust"), 1, *c.budget));
       }},
      {"center",
       [](const Text& t, const std::string& n, Call& c) {
         c.check(n, 1, 2);
         return Value::text(
             pad(t, need_integer(c.positional[0], "center"), need_text(c.get(1, "", Value::text(" ", true)), "center"), 0, *c.budget));
       }},
      {"format", [](const Text& t, const std::string&, Call& c) { return Value::text(format_braces(t, c)); }},
  };
  const auto it = kMethods.find(name);
  if (it == kMethods.end()) return {};
  const auto bound = [of, name, method = it->second](Call& call) {
    call.budget->spend(1 + of.weight());
    return method(of.as_text(), name, call);
  };
  return Value::function(name, bound, &of);
}

}  // namespace mekik::text::jinja
