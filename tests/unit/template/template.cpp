#include "support/catch.hpp"
#include "text/chat_template.hpp"

using namespace mekik;
using text::ChatTemplate;

namespace {

json::object context() {
  return json::
      parse(R"({"messages":[{"role":"user","content":"hi <|im_end|>"},{"role":"assistant","content":"yo"}],"bos_token":"<s>","n":2,"x":{"a":[1,2.5,null,true]}})")
          ->as_object();
}

std::string rendered(std::string_view source) {
  auto compiled = ChatTemplate::compile(source);
  if (!compiled) return "ERROR " + compiled.status().text;
  auto parts = compiled->render(context());
  return parts ? text::plain_text(*parts) : "ERROR " + parts.status().text;
}

bool fails(std::string_view source, std::string_view with) {
  const std::string out = rendered(source);
  INFO(out);
  return out.starts_with("ERROR ") && out.find(with) != std::string::npos;
}

}  // namespace

TEST_CASE("Text of the template is trusted, text of the context is not") {
  auto compiled = ChatTemplate::compile(
      "{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] | trim + '<|im_end|>' }}{% endfor %}");
  REQUIRE(compiled.ok());
  auto parts = compiled->render(context());
  REQUIRE(parts.ok());
  REQUIRE(parts->size() == 5);
  CHECK((*parts)[0].text == "<s><|user|>");  // known roles may be part of special tokens
  CHECK((*parts)[0].trusted);
  CHECK((*parts)[1].text == "hi <|im_end|>");
  CHECK_FALSE((*parts)[1].trusted);
  CHECK((*parts)[2].text == "<|im_end|><|assistant|>");
  CHECK((*parts)[2].trusted);
  CHECK((*parts)[3].text == "yo");
  CHECK((*parts)[4].trusted);
}

TEST_CASE("No operation turns a user's text into a trusted one") {
  for (const char* source :
       {"{{ messages[0].content | upper | lower }}", "{{ messages[0].content | tojson }}", "{{ messages[0]['content'][3:] }}",
        "{{ messages }}", "{{ messages[0].content.replace('hi', 'ho') }}", "{{ messages[0].content.split(' ')[1] }}",
        "{{ '%s' | format(messages[0].content) }}", "{{ messages | map(attribute='content') | join }}",
        "{{ messages[0].content[::-1][::-1] }}", "{% set x %}{{ messages[0].content }}{% endset %}{{ x }}",
        "{{ messages[0].content.title().lower() }}", "{{ [messages[0].content] | first }}", "{{ '{}'.format(messages[0].content) }}"}) {
    auto compiled = ChatTemplate::compile(source);
    REQUIRE(compiled.ok());
    auto parts = compiled->render(context());
    INFO(source);
    REQUIRE(parts.ok());
    for (const auto& part : *parts)
      if (part.trusted) CHECK(part.text.find("im_end") == std::string::npos);
  }
}

TEST_CASE("Precedence, tests and arithmetic follow Python") {
  CHECK(rendered("{{ not n is none }}|{{ 1 + 2 * 3 ** 2 }}|{{ -7 // 2 }}|{{ -7 % 3 }}|{{ 7 / 2 }}|{{ 'a' ~ 1 * 2 }}") ==
        "True|19|-4|2|3.5|a2");
  CHECK(rendered("{{ 1 < 2 < 3 }}|{{ 3 > 2 > 2 }}|{{ 'x' if n == 2 else 'y' }}|[{{ 'x' if n == 3 }}]") == "True|False|x|[]");
  CHECK(rendered("{{ 2 ** -1 }}|{{ 10 ** 18 }}|{{ 1e16 }}|{{ 1e15 }}|{{ 0.0001 }}|{{ 0.00001 }}") ==
        "0.5|1000000000000000000|1e+16|1000000000000000.0|0.0001|1e-05");
  CHECK(rendered("{{ x }}") == "{'a': [1, 2.5, None, True]}");
  CHECK(fails("{{ 9223372036854775807 + 1 }}", "64 bits"));
  CHECK(fails("{{ 1 // 0 }}", "division by zero"));
}

TEST_CASE("White space: trim_blocks, lstrip_blocks, signs") {
  CHECK(rendered("a\n  {% if true %}\n  b\n  {% endif %}\nc\n") == "a\n  b\nc");
  CHECK(rendered("a\n  {%+ if true %}x{% endif %}") == "a\n  x");
  CHECK(rendered("a  {{- 1 -}}  b") == "a1b");
  CHECK(rendered("a {# c #}\nb") == "a b");
  CHECK(rendered("{% if true +%}\nb{% endif %}") == "\nb");
}

TEST_CASE("Scopes, macros, loops") {
  CHECK(rendered("{% set k = 1 %}{% for i in [1,2] %}{% set k = k + i %}{% endfor %}{{ k }}") == "1");
  CHECK(rendered("{% macro f(a, b=a) %}[{{ a }}{{ b }}]{% endmacro %}{{ f(1) }}{{ f(1, b=2) }}") == "[11][12]");
  CHECK(
      rendered("{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}") ==
      "02");
  CHECK(rendered("{% for a in [1,[2,[3]]] recursive %}{{ loop(a) if a is iterable else a }}{% endfor %}") == "123");
  CHECK(rendered("{% for k, v in {'a':1,'b':2}.items() if v > 1 %}{{ loop.index }}{{ k }}{{ loop.last }}{% else %}none{% endfor %}") ==
        "1bTrue");
  CHECK(rendered("{% call(x) wrap() %}{{ x }}{% endcall %}{% macro wrap() %}{% endmacro %}").starts_with("ERROR"));
  CHECK(rendered("{% macro wrap() %}<{{ caller(3) }}>{% endmacro %}{% call(x) wrap() %}{{ x }}{% endcall %}") == "<3>");
  CHECK(rendered("{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}") == "3False");
}

TEST_CASE("Errors name line and column and say what was meant") {
  CHECK(fails("a\n{{ x | tojsn }}", "template:2:8: unknown filter \"tojsn\"; did you mean \"tojson\"?"));
  CHECK(fails("{% if x %}", "{% endif %} is missing"));
  CHECK(fails("{% fro x in y %}", "did you mean {% for %}?"));
  CHECK(fails("{{ nosuch('x') }}", "template:1:10: \"nosuch\" is undefined"));
  CHECK(fails("{{ raise_exception('boom') }}", "boom"));
  CHECK(fails("{% include 'x' %}", "other template files"));
  CHECK(fails("{{ 'abc }}", "no closing quote"));
}

TEST_CASE("The sandbox holds") {
  CHECK(fails("{{ ''.__class__.__mro__ }}", "not allowed"));
  CHECK(fails("{{ messages.append(1) }}", "not allowed"));
  CHECK(fails("{{ x.update({}) }}", "not allowed"));
  CHECK(rendered("{{ messages.__init__ }}|{{ lipsum.__globals__ }}") == "|");
}

TEST_CASE("Work, depth and output are bounded") {
  CHECK(fails("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "too much work"));
  CHECK(fails("{{ 'x' * 1000000000 }}", "over 16777216 bytes"));
  CHECK(fails("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nests too deeply"));
  CHECK(fails("{{ " + std::string(100000, '(') + "1" + std::string(100000, ')') + " }}", "nested too deeply"));
  CHECK(fails("{{ x" + std::string(100000, '.') + " }}", "expected an attribute"));
  std::string chain = "{{ x";
  for (int i = 0; i < 10000; ++i) chain += ".a";
  CHECK(fails(chain + " }}", "too many links"));
  CHECK(
      fails("{% for i in range(100000) %}{{ "
            "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' }}{% endfor %}",
            "over 16777216 bytes"));
}

TEST_CASE("Messages are made uniform") {
  const auto normal = [](const char* messages) { return text::normalise_messages(json::parse(messages)->as_array()); };
  auto parts = normal(R"([{"role":"user","content":[{"type":"text","text":"part A"},{"type":"text","text":"part B"}]}])");
  REQUIRE(parts.ok());
  CHECK((*parts)[0].at("content").as_string() == "part Apart B");
  auto null =
      normal(R"([{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"city\": \"Zürich\"}"}}]}])");
  REQUIRE(null.ok());
  CHECK((*null)[0].at("content").as_string().empty());
  CHECK((*null)[0].at("tool_calls").at(0).at("function").at("arguments").at("city").as_string() == "Zürich");
  CHECK_FALSE(normal(R"([{"role":"user","content":[{"type":"image_url","image_url":{}}]}])").ok());
  CHECK_FALSE(normal(R"([{"content":"x"}])").ok());
  CHECK_FALSE(normal(R"([{"role":"user"}])").ok());
  CHECK(normal(R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{"}}]}])").status().text.find("not valid JSON") !=
        std::string::npos);
}

TEST_CASE("Variables that a template uses") {
  auto compiled = ChatTemplate::compile("{% if tools %}{% endif %}{{ my_messages }}");
  REQUIRE(compiled.ok());
  CHECK(compiled->uses("tools"));
  CHECK_FALSE(compiled->uses("messages"));
  compiled = ChatTemplate::compile(
      "A helpful one. {% set thinking = thinking | default(true) %}{% for m in messages if m.shown is defined and not m.old is none %}"
      "{{ m['role'] ~ m.content | trim(chars='x') }}{{ loop.index }}{% endfor %}{% if plan is defined %}{% set plan = 'text' %}{{ plan }}"
      "{% endif %}{% macro show(item, deep=depth) %}{{ item }}{% endmacro %}{{ show(first, deep=2) }}");
  REQUIRE(compiled.ok());
  for (const char* read : {"thinking", "messages", "plan", "depth", "first"}) {
    CAPTURE(read);
    CHECK(compiled->uses(read));
  }
  for (const char* not_read : {"helpful", "m", "role", "content", "shown", "old", "trim", "chars", "loop", "index", "for", "text",
                               "default", "defined", "none", "item", "deep", "endfor", "true"}) {
    CAPTURE(not_read);
    CHECK_FALSE(compiled->uses(not_read));
  }

  const auto uses = [](const char* source, const char* name) {
    const auto made = ChatTemplate::compile(source);
    REQUIRE(made.ok());
    return made->uses(name);
  };
  // Llama 3.1, Command R+, gpt-oss: the name is also set in one branch, or a macro's parameter.
  CHECK(uses("{% if custom_tools is defined %}{% set tools = custom_tools %}{% endif %}{{ tools }}", "tools"));
  CHECK(uses("{% if not tools is defined %}{% set tools = none %}{% endif %}{{ tools }}", "tools"));
  CHECK(uses("{% macro f(tools) %}{{ tools }}{% endmacro %}{{ f(tools) }}", "tools"));
  CHECK(uses("{% for tools in x %}{{ tools }}{% endfor %}{{ tools }}", "tools"));
  CHECK(uses("{% if a %}{% set tools = 1 %}{% elif b %}{% endif %}{{ tools }}", "tools"));
  CHECK(uses("{% if a %}{{ tools }}{% endif %}{% set tools = 1 %}", "tools"));
  CHECK_FALSE(uses("{% macro f(tools) %}{{ tools }}{% endmacro %}{{ f(none) }}", "tools"));
  CHECK_FALSE(uses("{% if a %}{% set tools = 1 %}{% else %}{% set tools = 2 %}{% endif %}{{ tools }}", "tools"));
  CHECK_FALSE(uses("{% set tools %}x{% endset %}{% with a = 1 %}{{ tools ~ a }}{% endwith %}", "tools"));
  CHECK_FALSE(uses("{% set ns = namespace(tools=1) %}{% set ns.tools = 2 %}{{ ns.tools }}", "tools"));
  CHECK_FALSE(uses("{% macro f() %}{{ f }}{{ caller() }}{% endmacro %}{% call f() %}x{% endcall %}", "f"));
}

TEST_CASE("Texts become numbers as in Python") {
  const std::string nines(40, '9'), zeros(400, '0');
  CHECK(rendered("{{ '1e999'|float }} {{ '-1e999'|float }} {{ '1e-999'|float }} {{ '0.000e999'|float }}") == "inf -inf 0.0 0.0");
  CHECK(rendered("{{ '1" + zeros + "e-350'|float }} {{ '0." + zeros + "1e350'|float }}") == "1e+50 1e-51");
  CHECK(rendered("{{ '.5'|float }} {{ '+5.'|float }} {{ '1_0.5'|float }} {{ '1_e5'|float }} {{ 'nan(1)'|float }}") ==
        "0.5 5.0 10.5 0.0 0.0");
  CHECK(rendered("{{ '" + nines + "'|int }} {{ " + nines + "|int }} {{ '-" + nines + "'|int }}") == nines + " " + nines + " -" + nines);
  CHECK(rendered("{{ 1e30|int }} {{ '1e30'|int }} {{ '-0.5'|int }}") ==
        "1000000000000000019884624838656 1000000000000000019884624838656 0");
  CHECK(rendered("{{ '1_000'|int }} {{ '_1'|int(7) }} {{ '1__0'|int(7) }} {{ '+-5'|int(7) }} {{ ' 12 '|int }}") == "1000 7 7 7 12");
  CHECK(rendered("{{ '0x1f'|int(base=16) }} {{ '-0x1f'|int(base=16) }} {{ 'zz'|int(0, 36) }} {{ '1e999'|int(7) }}") == "31 -31 1295 7");
  CHECK(rendered("{{ 9999999999999999999999|float }}") == "1e+22");
}
