// Formats found out from templates; and formats with mistakes.
#include "support.hpp"
#include "text/chat_template.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

// A template that writes calls and reasoning in this way, with tags that no declared format has.
std::string chat(const std::string& call, const std::string& before = "", const std::string& after = "",
                 const std::string& think = "mull") {
  return "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]\n"
         "{% if m.reasoning_content %}<" +
         think + ">\n{{ m.reasoning_content }}\n</" + think +
         ">\n\n{% endif %}{{ m.content }}"
         "{% if m.tool_calls %}" +
         before + "{% for c in m.tool_calls %}" + call + "{% endfor %}" + after +
         "{% endif %}[end]\n{% endfor %}"
         "{% if add_generation_prompt %}[assistant]\n{% endif %}";
}

text::AnswerFormat format_of(const std::string& source) {
  auto compiled = text::ChatTemplate::compile(source);
  INFO(source);
  REQUIRE(compiled.ok());
  return text::format_of(*compiled, formats());
}

const std::string kObject = R"({"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}})";

}  // namespace

TEST_CASE("Formats are found out from what a template writes") {
  const Taken wanted{"Look.", "Hm.", {{"get_weather", "{\"city\": \"Rome\"}"}, {"now", "{}"}}};
  const auto check = [&](const std::string& source, const std::string& calls) {
    CAPTURE(source);
    const text::AnswerFormat format = format_of(source);
    REQUIRE(format.calls());
    CHECK(read_cut(format, "<mull>\nHm.\n</mull>\n\nLook." + calls) == wanted);
    CHECK(read_cut(format, "Just <mull>text</mull>.").content.find("text") != std::string::npos);
  };
  const std::string rome = R"({"name": "get_weather", "arguments": {"city": "Rome"}})", now = R"({"name": "now", "arguments": {}})";
  check(chat("<run>" + kObject + "</run>\n"), "<run>" + rome + "</run>\n<run>" + now + "</run>");
  check(chat(kObject + "{{ ', ' if not loop.last }}", "<<runs>>[", "]"), "<<runs>>[" + rome + ", " + now + "]");
  check(chat("<run>{{ c.function.name }}<with>{{ c.function.arguments | tojson }}</run>", "<runs>", "</runs>"),
        "<runs><run>get_weather<with>{\"city\": \"Rome\"}</run><run>now<with>{}</run></runs>");
  check(chat("\n<do it=\"{{ c.function.name }}\">{% for k, v in c.function.arguments.items() %}<with what=\"{{ k }}\">{{ v }}</with>{% "
             "endfor %}</do>",
             "<acts>", "\n</acts>"),
        "<acts>\n<do it=\"get_weather\"><with what=\"city\">Rome</with></do>\n<do it=\"now\"></do>\n</acts>");
  check(chat("{{ c.function.name }}({% for k, v in c.function.arguments.items() %}{{ k }}={{ v | tojson }}{{ ', ' if not loop.last }}{% "
             "endfor %})"
             "{{ ', ' if not loop.last }}",
             "<code>[", "]</code>"),
        "<code>[get_weather(city=\"Rome\"), now()]</code>");
}

TEST_CASE("Messages are written as a template needs them") {
  const auto needs = [](const std::string& source) {
    auto compiled = text::ChatTemplate::compile(source);
    REQUIRE(compiled.ok());
    return compiled->needs();
  };
  CHECK_FALSE(needs(chat("<run>" + kObject + "</run>")).text_arguments);
  // Text put between texts, and what appears only without content.
  const text::TemplateNeeds text = needs(chat("{{ '<run>' + c.function.name + ' ' + c.function.arguments + '</run>' }}"));
  CHECK(text.text_arguments);
  const std::string hidden = "{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}" + kObject +
                             "{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}";
  CHECK(needs(hidden).missing_content == text::MissingContent::null);
  CHECK_FALSE(needs(hidden).empty_content);
  CHECK(needs("{% for m in messages %}{{ m.content }}{{ m.thinking }}{% endfor %}").reasoning_key == "thinking");
  CHECK(needs("{% for m in messages %}{{ m.content[0].text }}{% endfor %}").parts);
  CHECK_FALSE(needs("{% for m in messages %}{{ m.content }}{% endfor %}").shows_calls);
  CHECK(
      needs("{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{% if c.id | length != 9 %}{{ raise_exception('id') }}"
            "{% endif %}" +
            kObject + "{% endfor %}{% endfor %}")
          .short_ids);
  const auto calls =
      json::parse(
          R"([{"role":"assistant","content":null,"reasoning":"Hm.","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"b\": 1}"}}]},
                                     {"role":"tool","tool_call_id":"a","content":"c"}])")
          ->as_array();
  text::TemplateNeeds wants;
  wants.reasoning_key = "thinking";
  auto messages = text::normalise_messages(calls, wants);
  REQUIRE(messages.ok());
  CHECK(messages->at(0).at("thinking") == "Hm.");
  CHECK(messages->at(0).at("content") == "");
  CHECK(messages->at(0).at("tool_calls").at(0).at("function").at("arguments") == *json::parse("{\"b\":1}"));
  CHECK(messages->at(1).at("name") == "f");
  wants.text_arguments = true;
  wants.missing_content = text::MissingContent::null;
  messages = text::normalise_messages(calls, wants);
  REQUIRE(messages.ok());
  CHECK(messages->at(0).at("content").is_null());
  CHECK(messages->at(0).at("tool_calls").at(0).at("function").at("arguments") == "{\"b\": 1}");
  // The object makes the same text.
  messages = text::normalise_messages(
      json::parse(R"([{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"b":1}}}]}])")->as_array(), wants);
  REQUIRE(messages.ok());
  CHECK(messages->at(0).at("tool_calls").at(0).at("function").at("arguments") == "{\"b\": 1}");
}

TEST_CASE("A format with mistakes is refused with their places") {
  const auto complaint = [](const std::string& part) {
    config::Diagnostics diagnostics;
    text::AnswerFormats::read("[format]\nname = \"x\"\n[[part]]\n" + part, diagnostics);
    return diagnostics.render();
  };
  const auto says = [&](const std::string& part, const char* what) {
    CAPTURE(part);
    CHECK(complaint(part).find(what) != std::string::npos);
  };
  CHECK(complaint("kind = \"call\"\npattern = \"<a>{call}</a>\"\n").empty());
  says("kind = \"call\"\n", "needs a pattern");
  says("kind = \"cal\"\npattern = \"<a>{call}</a>\"\n", "format:4:8");
  says("kind = \"call\"\npattern = \"<a>{call}{call}</a>\"\n", "two bodies");
  says("kind = \"call\"\npattern = \"<a>\"\n", "has no body");
  says("kind = \"call\"\npattern = \"<a>{json}\"\n", "need a {name}");
  says("kind = \"call\"\npattern = \"<a>{name}{fields}\"\n", "needs a field");
  says("kind = \"call\"\npattern = \"{call}\"\n", "begins with a literal");
  says("kind = \"reasoning\"\npattern = \"<a>{call}\"\n", "does not go with the kind");
  says("kind = \"call\"\npattern = \"<a>{call}\"\nstrat = true\n", "did you mean \"start\"");
}
