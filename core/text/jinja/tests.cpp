// Tests: value is name(arguments).
#include <algorithm>

#include "base/text.hpp"
#include "text/jinja/builtins.hpp"

namespace mekik::text::jinja {

namespace {

using Test = bool (*)(const Value&, Call&);

const Value& other(Call& c) {
  c.check("this test", 1, 1);
  return c.positional[0];
}

bool cased(const Value& v, char kind, Budget& budget) {
  if (!v.is(Type::text)) return false;
  const std::string& bytes = v.as_text().bytes;
  const Text opposite = map_case(v.as_text(), kind == 'u' ? 'l' : 'u', budget);
  return map_case(v.as_text(), kind, budget).bytes == bytes && opposite.bytes != bytes;
}

bool divides(const Value& v, Call& c) {
  const std::int64_t by = need_integer(other(c), "divisibleby");
  if (by == 0) throw TemplateError{"division by zero"};
  return by == -1 || need_integer(v, "divisibleby") % by == 0;
}

const std::unordered_map<std::string, Test>& tests() {
  static const Test eq = [](const Value& v, Call& c) { return equal(v, other(c), *c.budget); };
  static const Test ne = [](const Value& v, Call& c) { return !equal(v, other(c), *c.budget); };
  static const Test lt = [](const Value& v, Call& c) { return compare(v, other(c), *c.budget) < 0; };
  static const Test le = [](const Value& v, Call& c) { return compare(v, other(c), *c.budget) <= 0; };
  static const Test gt = [](const Value& v, Call& c) { return compare(v, other(c), *c.budget) > 0; };
  static const Test ge = [](const Value& v, Call& c) { return compare(v, other(c), *c.budget) >= 0; };
  static const std::unordered_map<std::string, Test> kTests{
      {"defined", [](const Value& v, Call&) { return !v.is(Type::undefined); }},
      {"undefined", [](const Value& v, Call&) { return v.is(Type::undefined); }},
      {"none", [](const Value& v, Call&) { return v.is(Type::none); }},
      {"boolean", [](const Value& v, Call&) { return v.is(Type::boolean); }},
      {"true", [](const Value& v, Call&) { return v.is(Type::boolean) && v.truthy(); }},
      {"false", [](const Value& v, Call&) { return v.is(Type::boolean) && !v.truthy(); }},
      {"integer", [](const Value& v, Call&) { return v.is(Type::integer) || v.is(Type::big_integer); }},
      {"float", [](const Value& v, Call&) { return v.is(Type::real); }},
      {"number", [](const Value& v, Call&) { return v.is_number() || v.is(Type::big_integer); }},
      {"string", [](const Value& v, Call&) { return v.is(Type::text); }},
      {"mapping", [](const Value& v, Call&) { return v.is(Type::dict); }},
      {"iterable",
       [](const Value& v, Call&) {
         return v.is(Type::generator) || v.is(Type::generator) || v.is(Type::text) || v.is_sequence() || v.is(Type::dict) ||
                v.is(Type::undefined);
       }},
      {"sequence", [](const Value& v, Call&) { return v.is(Type::text) || v.is_sequence() || v.is(Type::dict) || v.is(Type::undefined); }},
      {"callable", [](const Value& v, Call&) { return v.is(Type::function); }},
      {"escaped", [](const Value&, Call&) { return false; }},
      {"sameas",
       [](const Value& v, Call& c) {
         const Value& o = other(c);
         if (v.type() != o.type()) return false;
         return v.identity() != nullptr || o.identity() != nullptr ? v.identity() == o.identity() : equal(v, o, *c.budget);
       }},
      {"odd", [](const Value& v, Call&) { return need_integer(v, "odd") % 2 != 0; }},
      {"even", [](const Value& v, Call&) { return need_integer(v, "even") % 2 == 0; }},
      {"divisibleby", divides},
      {"lower", [](const Value& v, Call& c) { return cased(v, 'l', *c.budget); }},
      {"upper", [](const Value& v, Call& c) { return cased(v, 'u', *c.budget); }},
      {"in", [](const Value& v, Call& c) { return contains(other(c), v, *c.budget); }},
      {"filter", [](const Value& v, Call&) { return v.is(Type::text) && has_filter(v.as_text().bytes); }},
      {"test", [](const Value& v, Call&) { return v.is(Type::text) && has_test(v.as_text().bytes); }},
      {"eq", eq},
      {"equalto", eq},
      {"==", eq},
      {"ne", ne},
      {"!=", ne},
      {"lt", lt},
      {"lessthan", lt},
      {"<", lt},
      {"le", le},
      {"<=", le},
      {"gt", gt},
      {"greaterthan", gt},
      {">", gt},
      {"ge", ge},
      {">=", ge},
  };
  return kTests;
}

}  // namespace

bool has_test(const std::string& name) { return tests().contains(name); }

std::string unknown_test(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, unused] : tests()) names.push_back(known);
  const auto near = closest(name, names);
  return "unknown test " + quoted(name) + (near ? "; did you mean " + quoted(*near) + "?" : "");
}

bool apply_test(const std::string& name, const Value& value, Call& call) {
  const auto it = tests().find(name);
  if (it == tests().end()) throw TemplateError{unknown_test(name)};
  call.budget->spend(1 + value.weight());
  spend_on(call);
  return it->second(value, call);
}

}  // namespace mekik::text::jinja
