// Calls of earlier answers for templates that do not show them.
#include "text/answer/history.hpp"

#include "support.hpp"
#include "text/chat_template.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

const text::AnswerFormat& named(const std::string& name) {
  for (const text::AnswerFormat& format : formats().all())
    if (format.name == name) return format;
  FAIL("no format " + name);
  throw;
}

json::array two_calls() {
  return json::
      parse(R"j([{"id":"functions.get_weather:0","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Zürich \\\"1\\\"\", \"days\": 2}"}},
    {"id":"functions.save:1","type":"function","function":{"name":"save","arguments":{"text":"a\nb","deep":{"x":[true,null,1.5]}}}}])j")
          ->as_array();
}

std::string written(const std::string& format, const json::array& calls) {
  const auto parts = text::write_calls(named(format).history, calls);
  REQUIRE(parts.ok());
  return text::plain_text(*parts);
}

constexpr const char* kBlind =
    "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</{{ m.role }}>{% endfor %}{% if tools %}<|tool_response_start|>{{ tools "
    "}}{% endif %}";

}  // namespace

TEST_CASE("calls of earlier answers are written as models write them") {
  CHECK(written("lfm2", two_calls()) ==
        "<|tool_call_start|>[get_weather(city=\"Zürich \\\"1\\\"\", days=2), save(text=\"a\\nb\", deep={\"x\": [True, None, "
        "1.5]})]<|tool_call_end|>");
  CHECK(written("granite", two_calls()) ==
        "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Zürich \\\"1\\\"\", \"days\": 2}}, {\"name\": \"save\", "
        "\"arguments\": "
        "{\"text\": \"a\\nb\", \"deep\": {\"x\": [true, null, 1.5]}}}]");
  CHECK(written("hermes", json::array{two_calls()[0]}) ==
        "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Zürich \\\"1\\\"\", \"days\": 2}}\n</tool_call>");
  CHECK(written("kimi-k2", json::array{two_calls()[0]}) ==
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{\"city\": \"Zürich "
        "\\\"1\\\"\", \"days\": "
        "2}<|tool_call_end|><|tool_calls_section_end|>");
}

TEST_CASE("what is written is read back by the same format") {
  for (const text::AnswerFormat& format : formats().all()) {
    if (format.history.calls.empty()) continue;
    INFO(format.name);
    const auto parts = text::write_calls(format.history, two_calls());
    REQUIRE(parts.ok());
    const text::KnownTools tools{offered()};
    text::AnswerOptions options;
    options.calls = true;
    text::AnswerParser parser{format, tools, options};
    std::vector<text::AnswerPiece> pieces;
    parser.push(text::plain_text(*parts), false, pieces);
    parser.finish(pieces);
    Taken taken;
    take(pieces, taken);
    REQUIRE(taken.calls.size() == 2);
    CHECK(taken.content.empty());
    CHECK(taken.calls[0].first == "get_weather");
    CHECK(*json::parse(taken.calls[0].second) == *json::parse(R"({"city": "Zürich \"1\"", "days": 2})"));
    CHECK(taken.calls[1].first == "save");
    CHECK(*json::parse(taken.calls[1].second) == *json::parse(R"({"text": "a\nb", "deep": {"x": [true, null, 1.5]}})"));
  }
}

TEST_CASE("calls go behind the content of their message, and only their marks are trusted") {
  auto chat = text::ChatTemplate::compile(kBlind);
  REQUIRE(chat.ok());
  CHECK_FALSE(chat->needs().shows_calls);
  json::array messages =
      json::parse(R"([{"role":"user","content":"q"},{"role":"assistant","content":"Let me look."},{"role":"assistant","content":null}])")
          ->as_array();
  messages[1].as_object()["tool_calls"] = json::array{two_calls()[0]};
  messages[2].as_object()["tool_calls"] = json::array{json::object{
      {"id", "x"}, {"type", "function"}, {"function", json::object{{"name", "now"}, {"arguments", "{\"t\": \"<|tool_call_end|>\"}"}}}}};
  const auto hidden = text::hide_calls(named("lfm2").history, messages);
  REQUIRE(hidden.ok());
  CHECK(messages[1].as_object().if_contains("tool_calls") == nullptr);
  const auto rendered = chat->render(json::object{{"messages", messages}});
  REQUIRE(rendered.ok());
  const auto shown = text::show_calls(*hidden, *rendered);
  REQUIRE(shown.ok());
  CHECK(text::plain_text(*shown) ==
        "<user>q</user><assistant>Let me look.<|tool_call_start|>[get_weather(city=\"Zürich \\\"1\\\"\", "
        "days=2)]<|tool_call_end|></assistant>"
        "<assistant><|tool_call_start|>[now(t=\"<|tool_call_end|>\")]<|tool_call_end|></assistant>");
  for (const text::TextPart& part : *shown) {
    if (part.text.find("<|tool_call_start|>") != std::string::npos) CHECK(part.trusted);
    if (part.text.find("now(t=") != std::string::npos) CHECK_FALSE(part.trusted);
    if (part.text.find("Let me look.") != std::string::npos) CHECK_FALSE(part.trusted);
  }
}

TEST_CASE("a template that drops or doubles the content is refused") {
  for (const char* source :
       {"{% for m in messages %}{{ m.role }}{% endfor %}", "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}"}) {
    auto chat = text::ChatTemplate::compile(source);
    REQUIRE(chat.ok());
    json::array messages = json::parse(R"([{"role":"assistant","content":"a"}])")->as_array();
    messages[0].as_object()["tool_calls"] = json::array{two_calls()[0]};
    const auto hidden = text::hide_calls(named("hermes").history, messages);
    REQUIRE(hidden.ok());
    const auto rendered = chat->render(json::object{{"messages", messages}});
    REQUIRE(rendered.ok());
    CHECK_FALSE(text::show_calls(*hidden, *rendered).ok());
  }
}

TEST_CASE("a history that cannot be written says why") {
  json::array messages =
      json::parse(R"([{"role":"assistant","content":"a","tool_calls":[{"function":{"name":"f","arguments":"{"}}]}])")->as_array();
  const auto hidden = text::hide_calls(named("hermes").history, messages);
  REQUIRE_FALSE(hidden.ok());
  CHECK(hidden.status().text.find("messages[0].tool_calls") != std::string::npos);
  CHECK(hidden.status().text.find("not valid JSON") != std::string::npos);
}
