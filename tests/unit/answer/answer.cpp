// Answers as models write them: in the declared formats, cut everywhere.
#include "support.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

struct Case {
  const char* format;
  const char* text;
  Taken wanted;
};

const std::string kParis = R"({"city": "Paris", "days": 3})", kRome = R"({"city":"Rome"})";

std::vector<Case> cases() {
  return {
      {"hermes",
       "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"days\": 3}}\n</tool_call>",
       {"", "", {{"get_weather", kParis}}}},
      {"hermes",
       "<tool_call>{\"arguments\": {\"city\":\"Rome\"}, \"name\": \"get_weather\"}</tool_call>",
       {"", "", {{"get_weather", kRome}}}},
      {"hermes",
       "One. <tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\":\"now\"}\n</tool_call>\nTwo.",
       {"One.\nTwo.", "", {{"now", "{}"}, {"now", "{}"}}}},
      // Arguments inside a text, a closing brace too few, and what is no JSON: passed on.
      {"hermes", "<tool_call>{\"name\":\"now\",\"arguments\":\"{\\\"a\\\": 1}\"}</tool_call>", {"", "", {{"now", "{\"a\": 1}"}}}},
      {"hermes", "<tool_call>{\"name\":\"now\",\"arguments\":{\"a\": 1}</tool_call>", {"", "", {{"now", "{\"a\": 1}"}}}},
      {"hermes", "<tool_call>{\"name\":\"now\",\"arguments\":{\"a\": nope, 'b'}}</tool_call>!", {"!", "", {{"now", "{\"a\": nope, 'b'}"}}}},
      // Tags in texts end nothing.
      {"hermes",
       "<tool_call>{\"name\":\"save\",\"arguments\":{\"text\":\"</tool_call> \\\"<tool_call>{\"}}</tool_call>",
       {"", "", {{"save", "{\"text\":\"</tool_call> \\\"<tool_call>{\"}"}}}},
      // No calls: nothing is lost.
      {"hermes",
       "Write <tool_call> and </tool_call> around it, or <tool_call>{\"x\": 1}</tool_call>.",
       {"Write <tool_call> and </tool_call> around it, or <tool_call>{\"x\": 1}</tool_call>.", "", {}}},
      {"hermes", "<tool_call>\n{\"na", {"<tool_call>\n{\"na", "", {}}},
      {"hermes", "Wait <tool_ca", {"Wait <tool_ca", "", {}}},
      // Cut in the middle: as much as there is, and not a byte more.
      {"hermes", "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Pa", {"", "", {{"get_weather", "{\"city\": \"Pa"}}}},
      {"hermes",
       "<think>\nHm.\n</think>\n\nYes.<tool_call>{\"name\":\"unknown\",\"arguments\":{}}</tool_call>",
       {"Yes.", "Hm.", {{"unknown", "{}"}}}},
      {"llama3", "{\"name\": \"get_weather\", \"parameters\": {\"city\":\"Rome\"}}", {"", "", {{"get_weather", kRome}}}},
      {"llama3",
       "{\"name\": \"now\", \"parameters\": {}}; {\"name\": \"get_weather\", \"parameters\": {\"city\":\"Rome\"}}",
       {"", "", {{"now", "{}"}, {"get_weather", kRome}}}},
      {"llama3", "{\"name\": \"Bob\", \"parameters\": {\"age\": 3}}", {"{\"name\": \"Bob\", \"parameters\": {\"age\": 3}}", "", {}}},
      {"llama3", "{\"answer\": 42}\n", {"{\"answer\": 42}\n", "", {}}},
      {"llama3", "As JSON: {\"name\": \"now\", \"parameters\": {}}", {"As JSON: {\"name\": \"now\", \"parameters\": {}}", "", {}}},
      {"llama3",
       "<|python_tag|>{\"type\": \"function\", \"function\": {\"name\": \"now\", \"parameters\": {}}}",
       {"", "", {{"now", "{}"}}}},
      {"llama3", "<|python_tag|>get_weather.call(city=\"Rome\")", {"", "", {{"get_weather", "{\"city\": \"Rome\"}"}}}},
      {"llama4",
       "[get_weather(city='Rome'), save(deep={'a': [True, None]})]",
       {"", "", {{"get_weather", "{\"city\": \"Rome\"}"}, {"save", "{\"deep\": {\"a\": [true, null]}}"}}}},
      {"llama4", "[see the list]", {"[see the list]", "", {}}},
      {"mistral",
       "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\":\"Rome\"}, \"id\": \"abc123def\"}, "
       "{\"name\":\"now\",\"arguments\":{}}]",
       {"", "", {{"get_weather", kRome}, {"now", "{}"}}}},
      {"mistral",
       "Hm.[TOOL_CALLS]get_weather[ARGS]{\"city\":\"Rome\"}[TOOL_CALLS]now[CALL_ID]abc[ARGS]{}",
       {"Hm.", "", {{"get_weather", kRome}, {"now", "{}"}}}},
      {"harmony",
       "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|><|start|>assistant"
       "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\":\"Rome\"}<|call|>",
       {"I look.", "Hm.", {{"get_weather", kRome}}}},
      {"harmony", " to=functions.now<|channel|>commentary json<|message|>{}<|call|>", {"", "", {{"now", "{}"}}}},
      {"harmony", "<|channel|>analysis<|message|>Hm, to=functions.now", {"", "Hm, to=functions.now", {}}},
      {"harmony",
       "<|channel|>final<|message|>Use to=functions.now<|message|> there.<|return|>",
       {"Use to=functions.now<|message|> there.", "", {}}},
      {"harmony", "No channels at all.", {"No channels at all.", "", {}}},
      {"cohere",
       "<|START_THINKING|>Hm.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"now\", \"parameters\": "
       "{}}\n]<|END_ACTION|>",
       {"", "Hm.", {{"now", "{}"}}}},
      {"cohere", "<|START_RESPONSE|>Yes.<|END_RESPONSE|>", {"Yes.", "", {}}},
      {"command-r",
       "Action: ```json\n[\n    {\n        \"tool_name\": \"get_weather\",\n        \"parameters\": {\"city\":\"Rome\"}\n    }\n]```",
       {"", "", {{"get_weather", kRome}}}},
      {"qwen3-coder",
       "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</"
       "tool_call>",
       {"", "", {{"get_weather", kParis}}}},
      {"qwen3-coder",
       "I write.\n<function=save>\n<parameter=text>\nif (a < b) {\n  \"</parameter>\"\n}\n\n</parameter>\n<parameter=deep>\n{\"a\": "
       "[1]}\n</parameter>\n</function>",
       {"I write.", "", {{"save", "{\"text\": \"if (a < b) {\\n  \\\"</parameter>\\\"\\n}\\n\", \"deep\": {\"a\": [1]}}"}}}},
      {"qwen3-coder",
       "<tool_call>\n<function=now>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>\n",
       {"", "", {{"now", "{}"}, {"now", "{}"}}}},
      {"qwen3-coder", "<tool_call>\n<function=save>\n<parameter=text>\nabc", {"", "", {{"save", "{\"text\": \"abc"}}}},
      {"glm4",
       "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>12</arg_value>\n<arg_key>unit</arg_key>\n<arg_value>null</"
       "arg_value>\n</tool_call>",
       {"", "", {{"get_weather", "{\"city\": \"12\", \"unit\": null}"}}}},
      {"glm4", "A <tool_call> is a tag.", {"A <tool_call> is a tag.", "", {}}},
      {"deepseek",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>"
       "get_weather<｜tool▁sep｜>{\"city\":\"Rome\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       {"", "", {{"now", "{}"}, {"get_weather", kRome}}}},
      {"kimi-k2",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_"
       "end|>",
       {"", "", {{"now", "{}"}}}},
      {"solar",
       "<|think|>Hm.<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>zz91<|tool_call:name|>now<|tool_call:args|>{}<|tool_call:end|"
       "><|calls|>",
       {"", "Hm.", {{"now", "{}"}}}},
      {"gemma4",
       "<|channel>thought\nHm.<channel|>Yes.<|tool_call>call:save{deep:{a:[1,true,<|\"|>q\"{<|\"|>]},text:<|\"|>12<|\"|>}<tool_call|>",
       {"Yes.", "Hm.", {{"save", "{\"deep\":{\"a\":[1,true,\"q\\\"{\"]},\"text\":\"12\"}"}}}},
      {"granite", "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]", {"", "", {{"now", "{}"}}}},
      {"lfm2",
       "Sure.<|tool_call_start|>[get_weather(city=\"Rome\", days=-2)]<|tool_call_end|>Done.",
       {"Sure.Done.", "", {{"get_weather", "{\"city\": \"Rome\", \"days\": -2}"}}}},
      {"functools", " functools[{\"name\": \"now\", \"arguments\": {}}]", {"", "", {{"now", "{}"}}}},
      {"apertus",
       "<|tools_prefix|>[{\"get_weather\": {\"city\":\"Rome\"}}, {\"now\": {}}]<|tools_suffix|>",
       {"", "", {{"get_weather", kRome}, {"now", "{}"}}}},
      {"minimax-m3",
       "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke "
       "name=\"save\">]<]minimax[>[<deep>]<]minimax[>[<a>]<]minimax[>[<item>1]<]minimax[>[</item>"
       "]<]minimax[>[<item>2]<]minimax[>[</item>]<]minimax[>[</a>]<]minimax[>[</deep>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
       {"", "", {{"save", "{\"deep\": {\"a\": [1, 2]}}"}}}},
      {"kimi-k3",
       "<|close|>think<|sep|><|open|>response<|sep|>Yes.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool=\"get_weather\" "
       "index=\"1\"<|sep|>"
       "<|open|>argument key=\"city\" type=\"string\"<|sep|>7<|close|>argument<|sep|><|open|>argument key=\"days\" "
       "type=\"number\"<|sep|>7<|close|>argument<|sep|>"
       "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>",
       {"Yes.", "", {{"get_weather", "{\"city\": \"7\", \"days\": 7}"}}}},
      {"atem",
       " to=self<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Yes.<|eom|><|start|>assistant "
       "to=now<|message|><atem:function_calls>\n"
       "<atem:invoke name=\"now\">\n</atem:invoke>\n</atem:function_calls><|eot|>",
       {"Yes.<|eot|>", "Hm.", {{"now", "{}"}}}},
      {"atem", " to=user<|message|>Yes.<|eot|>", {"Yes.", "", {}}},
      {"minicpm",
       "<function name=\"save\"><param name=\"text\"><![CDATA[a ]]> </param> b]]></param></function>",
       {"", "", {{"save", "{\"text\": \"a ]]> </param> b\"}"}}}},
      {"functionary", "all\nYes.>>>now\n{}", {"Yes.", "", {{"now", "{}"}}}},
      {"functionary", "allow {it}", {"allow {it}", "", {}}},
      {"json", "[{\"name\": \"now\", \"arguments\": {}}]", {"", "", {{"now", "{}"}}}},
      {"json", "[1, 2]", {"[1, 2]", "", {}}},
  };
}

}  // namespace

TEST_CASE("Answers of the declared formats come apart, however they are cut") {
  for (const Case& one : cases()) {
    CAPTURE(one.format, one.text);
    CHECK(read_cut(declared(one.format), one.text) == one.wanted);
  }
}

TEST_CASE("Reasoning is told apart, and never lost") {
  const text::AnswerFormat format = declared("think");
  const auto taken = [&](const char* text) { return read_cut(format, text); };
  CHECK(taken("<think>a</think>b") == Taken{"b", "a", {}});
  CHECK(taken("<think>a") == Taken{"", "a", {}});
  CHECK(taken("<think>a\n") == Taken{"", "a\n", {}});
  CHECK(taken("x < y and <thin air") == Taken{"x < y and <thin air", "", {}});
  CHECK(taken("\n<think>\n a < b </thin \n</think>\n\n b\n") == Taken{"b\n", "a < b </thin", {}});
  CHECK(taken("It says <think>no</think>") == Taken{"It says <think>no</think>", "", {}});
  CHECK(taken("</think>b") == Taken{"b", "", {}});
  CHECK(taken("<think>\n\n</think>\n\nb") == Taken{"b", "", {}});
  CHECK(taken(" b ") == Taken{" b ", "", {}});
  CHECK(taken("<thi") == Taken{"<thi", "", {}});
  CHECK(taken("") == Taken{"", "", {}});
  text::AnswerOptions off;
  off.reasoning = false;
  CHECK(read_cut(format, "<think>a</think>b", off) == Taken{"<think>a</think>b", "", {}});
}

TEST_CASE("A prompt can open the reasoning, and close it") {
  const text::AnswerFormat format = declared("think");
  const auto start = [&](std::vector<text::TextPart> prompt) {
    text::AnswerOptions options;
    options.start = text::answer_start(format, prompt);
    return options;
  };
  CHECK(read_cut(format, "a</think>b", start({{"<user>", true}, {"hi", false}, {"<assistant><think>\n", true}})) == Taken{"b", "a", {}});
  CHECK(read_cut(format, "a", start({{"<assistant><think>\n", true}})) == Taken{"", "a", {}});
  CHECK(read_cut(format, "b", start({{"<assistant><think>\n\n</think>\n", true}})) == Taken{"b", "", {}});
  CHECK(read_cut(format, "b", start({{"Say <think>", false}, {"<assistant>", true}})) == Taken{"b", "", {}});
}

TEST_CASE("Special tokens are marks, and are shown only where they are asked for") {
  const text::AnswerFormat format = declared("kimi-k2");
  text::AnswerOptions options;
  options.calls = true;
  const std::vector<Said> said = {{"Hm", false},
                                  {"<|x|>", true},
                                  {" so.", false},
                                  {"<|tool_calls_section_begin|>", true},
                                  {"<|tool_call_begin|>", true},
                                  {"functions.save:0", false},
                                  {"<|tool_call_argument_begin|>", true},
                                  {"{\"text\": \"cut", false},
                                  {"<|tool_call_end|>", true},
                                  {"<|tool_calls_section_end|>", true}};
  CHECK(read(format, said, options) == Taken{"Hm so.", "", {{"save", "{\"text\": \"cut"}}});
  options.show_special = true;
  CHECK(read(format, said, options) == Taken{"Hm<|x|> so.", "", {{"save", "{\"text\": \"cut"}}});
  options.calls = false;
  CHECK(read(format, said, options).content.find("<|tool_call_begin|>functions.save:0") != std::string::npos);
}

TEST_CASE("No more is held back than may be a mark") {
  const text::AnswerFormat format = declared("hermes");
  const text::KnownTools tools{offered()};
  text::AnswerOptions options;
  options.calls = true;
  text::AnswerParser parser{format, tools, options};
  const auto push = [&](const char* text) {
    std::vector<text::AnswerPiece> pieces;
    parser.push(text, false, pieces);
    Taken taken;
    std::string out;
    for (const text::AnswerPiece& piece : pieces) out += piece.kind == text::AnswerPiece::call ? "[" + piece.text + "]" : piece.text;
    return out;
  };
  CHECK(push("Hello <to") == "Hello");
  CHECK(push("day>") == " <today>");
  CHECK(push("<tool_call>{\"name\": \"save\", \"arg") == "");
  CHECK(push("uments\": {") == "[save]{");
  CHECK(push("\"text\": \"ab") == "\"text\": \"ab");
  CHECK(push("c\"}}") == "c\"}");
}
