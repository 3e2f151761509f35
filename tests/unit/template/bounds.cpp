// Templates come with model files, so they may be hostile: what they can use up has an end, and nothing of them outlives a render.
// (That nothing leaks is seen in the sanitizers' builds.)
#include <ctime>

#include "support/catch.hpp"
#include "text/chat_template.hpp"

using namespace mekik;
using text::ChatTemplate;

namespace {

std::string rendered(std::string_view source) {
  auto compiled = ChatTemplate::compile(source);
  if (!compiled.ok()) return "ERROR " + compiled.status().text;
  const json::object context = json::parse(R"({"messages":[{"role":"user","content":"hi"}]})")->as_object();
  auto parts = (*compiled).render(context);
  return parts.ok() ? text::plain_text(*parts) : "ERROR " + parts.status().text;
}

bool refused(std::string_view source, std::string_view why) {
  const std::string out = rendered(source);
  INFO(source);
  INFO(out.substr(0, 300));
  return out.starts_with("ERROR ") && out.find(why) != std::string::npos;
}

}  // namespace

TEST_CASE("Variables that hold themselves are freed") {
  CHECK(rendered("{% macro m() %}{{ m is callable }}{% endmacro %}{{ m() }}") == "True");
  CHECK(rendered("{% set ns = namespace() %}{% set ns.me = ns %}{% set ns.list = [ns] %}{{ ns.me.me is defined }}") == "True");
  CHECK(rendered("{% for m in messages recursive %}{% set ns = namespace(l=loop) %}{{ loop.changed(ns) }}{% endfor %}") == "True");
  CHECK(rendered("{% macro box() %}{{ caller() }}{% endmacro %}{% call box() %}x{% endcall %}") == "x");
}

TEST_CASE("Values nest only so deeply that they can be freed") {
  const std::string loop = "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = ";
  for (const char* step : {"[ns.x]", "(ns.x,)", "{'k': ns.x}", "[ns.x] | map('string') | list and [ns.x]", "[{'f': ns.x}.get]"})
    CHECK(refused(loop + step + " %}{% endfor %}", "nest too deeply"));
  CHECK(rendered("{% set ns = namespace(x=[]) %}{% for i in range(900) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | length }}") == "1");
  // Variables in a long row are freed one after the other.
  CHECK(rendered(
            "{% set ns = namespace(f=none) %}{% for i in range(100000) %}{% set before = ns.f %}{% macro f() %}{{ before }}{% endmacro %}"
            "{% set ns.f = f %}{% endfor %}{% set ns.f = 1 %}{{ ns.f }}") == "1");
  CHECK(rendered(
            "{% set ns = namespace(n=none) %}{% for i in range(100000) %}{% set ns.n = namespace(n=ns.n) %}{% endfor %}{% set ns.n = 1 %}"
            "{{ ns.n }}") == "1");
}

TEST_CASE("Sizes that overflow are refused") {
  CHECK(refused("{{ 'a'.ljust(4611686018427387904, 'abcd') }}", "exactly one character"));
  CHECK(refused("{{ 'a'.rjust(9223372036854775807) }}", "over 16777216 bytes"));
  CHECK(refused("{{ [1] | batch(576460752303423489, 0) | list }}", "over 16777216 bytes"));
  CHECK(refused("{{ '%999s' % 'a' }}", "at most 256"));
  CHECK(refused("{{ '%.99999f' % 1.5 }}", "at most 256"));
  CHECK(refused("{{ '%1.2.3d' % 1 }}", "not supported"));
  CHECK(refused("{{ '%d' % (1e308 * 10 - 1e308 * 10) }}", "not a whole number"));
  CHECK(rendered("{{ '%+06.2f|%-4s|%x' % (2.5, 'a', 255) }}") == "+02.50|a   |ff");
  CHECK(rendered("{{ '%.256f' % 1e308 }}").size() == 309 + 1 + 256);
}

TEST_CASE("Copies of large texts are work") {
  const std::string large = "{% set s = 'a,' * 400000 %}{% set ns = namespace(l=[]) %}";
  for (const char* copy :
       {"s | upper", "s.title()", "s | escape", "m()", "s | trim(',')", "dict(d)", "s | list", "s.split(',')", "s.splitlines()"})
    CHECK(refused(
        large + "{% set d = {s: 1, s ~ 1: 2} %}{% macro m() %}{{ s }}{% endmacro %}{% for i in range(100000) %}{% set ns.l = ns.l + [" +
            copy + "] %}{% endfor %}",
        "too much work"));
}

// Whatever a template does, it is stopped after about the time that the plainest loop has.
TEST_CASE("A step stands for about the same time everywhere") {
  text::TemplateLimits limits;
  limits.steps = 1'000'000;
  const auto seconds = [&](const std::string& source) {
    const auto compiled = ChatTemplate::compile(source);
    REQUIRE(compiled.ok());
    const std::clock_t begin = std::clock();
    const auto parts = (*compiled).render({}, limits);
    CHECK((!parts.ok() && parts.status().text.find("too much work") != std::string::npos));
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  const std::string loop = "{% for i in range(100000) %}", loops = loop + "{% for j in range(100000) %}", end = "{% endfor %}";
  const double plain = seconds(loops + "{% if i == j and i > 3 or j < 2 %}{% endif %}" + end + end);
  const std::string words = "{% set s = 'Ab ' * 2700000 %}", digits(900'000, '9');
  for (const char* made : {"'%s' % s", "'%s'|format(s)", "s.isupper()", "s is upper", "s|title", "s|trim('A b')", "s.split()", "s[::-1]",
                           "s|list", "s.count('b')", "s|wordcount", "[s]|string", "s|escape", "s.replace('b', '')", "s.splitlines()"}) {
    INFO(made);
    CHECK(seconds(words + loop + "{% set x = " + made + " %}" + end) < 6 * plain + 0.1);
  }
  const std::string numbers = "{% set l = range(100000) %}{% set t = l|map('string')|list %}{% set f = '%%' * 4000000 %}";
  for (const char* made :
       {"l[1:]", "l|join(',')", "t|sort", "l|tojson", "l|batch(2)|list", "l|sum", "l + l", "f % ()", "l|map('abs')|list"}) {
    INFO(made);
    CHECK(seconds(numbers + loop + "{% set x = " + made + " %}" + end) < 6 * plain + 0.1);
  }
  for (const std::string made : {"'%.250f' % 1e300", "x == x", "loop.last", "'1.5'|float", "strftime_now('%A')", "[1, 2, 3, 4, 5, 6]"}) {
    INFO(made);
    CHECK(seconds("{% set x = " + digits + " %}" + loops + "{% set y = " + made + " %}" + end + end) < 6 * plain + 0.1);
  }
  std::string scopes;
  for (int i = 0; i < 90; ++i) scopes += "{% with %}";
  std::string closed;
  for (int i = 0; i < 90; ++i) closed += "{% endwith %}";
  CHECK(seconds(scopes + loops + "{{ nothing }}" + end + end + closed) < 6 * plain + 0.1);
}

TEST_CASE("Names are short") {
  const std::string name(2000, 'n');
  for (const std::string& use : {name, "x." + name, "x|" + name, "f(" + name + "=1)"})
    CHECK(refused("{{ " + use + " }}", "this name has more than 1024 bytes"));
}

TEST_CASE("Finding out what a template needs is bounded as a whole") {
  const auto compiled = ChatTemplate::compile("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}");
  REQUIRE(compiled.ok());
  const std::clock_t begin = std::clock();
  const json::object context;
  CHECK(!(*compiled).render(context).ok());
  const std::clock_t once = std::clock();
  (void)(*compiled).needs();
  CHECK(std::clock() - once < 2 * (once - begin) + CLOCKS_PER_SEC / 10);
}

TEST_CASE("Comparing and searching take linear time, or are work") {
  const std::string texts = "{% set a = 'a' * 400000 %}{% set b = a ~ 'b' %}";
  CHECK(rendered(texts + "{{ (a ~ a).find(b) }},{{ (a ~ a).rfind('b' ~ a) }},{{ b in a ~ a }},{{ (a ~ a).count(b) }}") == "-1,-1,False,0");
  CHECK(rendered(texts + "{{ (a ~ a).split(b) | length }},{{ (a ~ a).replace(b, '') == a ~ a }},{{ a.strip(b) | length }}") == "1,True,0");
  CHECK(refused(texts + "{% for i in range(100000) %}{{ a ~ 'c' == b }}{% endfor %}", "too much work"));
  CHECK(refused("{% set l = range(50000) %}{% set x = {} %}{% for i in l %}{% set x = {1: 1, (l, i): 2, (l, 0): 3} %}{% endfor %}",
                "too much work"));
}

TEST_CASE("A message as large as a server takes still renders") {
  CHECK(rendered("{% set c = 'word ' * 1600000 %}{% if '</think>' in c %}x{% endif %}{{ '<|user|>' + c.split('</think>')[-1].strip() + "
                 "'<|end|>' }}")
            .size() == 8'000'000 - 1 + 15);
}
