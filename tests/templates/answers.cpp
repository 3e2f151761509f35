// Messages of the assistant, rendered by every template of the cases from the field, cut out of the prompt, and taken apart again: the
// same message must come out, however the text was cut.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.hpp"
#include "base/text.hpp"
#include "support/paths.hpp"
#include "text/answer/derive.hpp"
#include "text/answer/parser.hpp"
#include "text/template_probe.hpp"

namespace fs = std::filesystem;
using namespace mekik;

namespace {

int failures = 0, checks = 0;

struct Got {
  std::string content, reasoning;
  std::vector<std::pair<std::string, std::string>> calls;
  bool operator==(const Got&) const = default;
};

void add(const std::vector<text::AnswerPiece>& pieces, Got& to) {
  for (const text::AnswerPiece& piece : pieces) {
    if (piece.kind == text::AnswerPiece::content) to.content += piece.text;
    if (piece.kind == text::AnswerPiece::reasoning) to.reasoning += piece.text;
    if (piece.kind == text::AnswerPiece::call) to.calls.emplace_back(piece.text, "");
    if (piece.kind == text::AnswerPiece::arguments) to.calls.at(piece.number).second += piece.text;
  }
}

std::string shown(const Got& got) {
  std::string out = "content " + mekik::quoted(got.content) + ", reasoning " + mekik::quoted(got.reasoning);
  for (const auto& [name, arguments] : got.calls) out += "\n      " + name + " " + arguments;
  return out;
}

struct Reader {
  const text::AnswerFormat& format;
  text::KnownTools tools;

  // `cuts`: where the text is cut, ascending.
  Got read(const text::Sample& sample, const std::vector<std::size_t>& cuts) const {
    text::AnswerOptions options;
    options.calls = true;
    options.start = text::answer_start(format, {{sample.head, true}});
    text::AnswerParser parser{format, tools, options};
    std::vector<text::AnswerPiece> pieces;
    std::size_t from = 0;
    for (const std::size_t cut : cuts) {
      parser.push(std::string_view{sample.turn}.substr(from, cut - from), false, pieces);
      from = cut;
    }
    parser.push(std::string_view{sample.turn}.substr(from), false, pieces);
    parser.finish(pieces);
    Got got;
    add(pieces, got);
    return got;
  }

  void check_cuts(const std::string& what, const text::Sample& sample, const Got& whole) const {
    const std::size_t size = sample.turn.size();
    const auto check = [&](const std::vector<std::size_t>& cuts) {
      ++checks;
      const Got got = read(sample, cuts);
      if (got == whole) return true;
      ++failures;
      std::printf("FAILED %s: cut at", what.c_str());
      for (const std::size_t cut : cuts) std::printf(" %zu", cut);
      std::printf("\n    whole %s\n    cut   %s\n", shown(whole).c_str(), shown(got).c_str());
      return false;
    };
    std::vector<std::size_t> every;
    for (std::size_t cut = 1; cut < size; ++cut) every.push_back(cut);
    bool good = check(every);
    for (std::size_t cut = 1; cut < size && good; ++cut) good = check({cut});
    std::uint64_t random = size * 7919 + 1;
    for (int i = 0; i < 20 && good; ++i) {
      std::vector<std::size_t> cuts;
      for (const std::size_t cut : every)
        if ((random = random * 6364136223846793005u + 1442695040888963407u) >> 61 == 0) cuts.push_back(cut);
      good = check(cuts);
    }
  }
};

const json::array& tools() {
  static const json::array all = json::parse(R"([
    {"type":"function","function":{"name":"get_weather","description":"d","parameters":{"type":"object","properties":{
      "city":{"type":"string","description":"d"},"days":{"type":"integer","description":"d"}},"required":["city"]}}},
    {"type":"function","function":{"name":"save.file-2","description":"d","parameters":{"type":"object","properties":{
      "text":{"type":"string","description":"d"},"deep":{"type":"object","description":"d"},"list":{"type":"array","description":"d"},
      "on":{"type":"boolean","description":"d"},"rate":{"type":"number","description":"d"}},"required":["text"]}}}])")
                                     ->as_array();
  return all;
}

struct Case {
  const char *content, *reasoning, *calls;
};
const Case kCases[] = {
    {"Hello!", "", ""},
    {"x < y and <thin air, {a} [b] \"c\"\n\n`<tool_` 🦀 end", "", ""},
    {"So it is.", "they greet\n\nand < wait", ""},
    {"", "", R"([{"name":"get_weather","arguments":{"city":"Zürich 🦀","days":3}}])"},
    {"", "",
     R"([{"name":"get_weather","arguments":{"city":"Paris","days":1}},{"name":"get_weather","arguments":{"city":"Rome","days":2}}])"},
    {"Let me look.", "", R"([{"name":"get_weather","arguments":{"city":"Oslo"}}])"},
    {"Let me look.", "a city, then", R"([{"name":"get_weather","arguments":{"city":"Oslo"}}])"},
    {"", "a city, then", R"([{"name":"get_weather","arguments":{"city":"Oslo"}}])"},
    {"", "",
     R"([{"name":"save.file-2","arguments":{"text":"x","deep":{"a":[1,{"b":"c"}],"d":{"e":"f"}},"list":["p","q"],"on":true,"rate":-2.5}}])"},
    {"", "", R"([{"name":"save.file-2","arguments":{"text":"if (a < b) { say(\"</tool> <function=x> {}\\n\"); }\n  // end\t'q'"}}])"},
    {"", "", R"([{"name":"save.file-2","arguments":{"text":"12"}}])"},
    {"", "", R"([{"name":"get_weather","arguments":{}}])"},
};

json::object message(const Case& one, bool bare) {
  json::object out{{"role", "assistant"}, {"content", one.content}};
  if (*one.reasoning != '\0') out["reasoning_content"] = one.reasoning;
  if (*one.calls == '\0') return out;
  json::array calls;
  const json::value wanted = *json::parse(one.calls);
  for (const json::value& call : wanted.as_array()) {
    json::object function = call.as_object();
    if (!bare) function["arguments"] = json::serialize(function["arguments"]);
    calls.push_back(
        json::object{{"id", "callabc1" + std::to_string(calls.size())}, {"type", "function"}, {"function", std::move(function)}});
  }
  out["tool_calls"] = std::move(calls);
  return out;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// What came out against what went in. A template may leave out content beside calls, or reasoning: then it was not in the turn.
bool same(const Case& one, const text::Sample& sample, const Got& got) {
  const json::value calls = *json::parse(*one.calls == '\0' ? "[]" : one.calls);
  bool good = got.calls.size() == calls.as_array().size();
  for (std::size_t i = 0; good && i < got.calls.size(); ++i) {
    const json::value& wanted = calls.as_array()[i];
    const auto arguments = json::parse(got.calls[i].second);
    good = got.calls[i].first == std::string_view{json::find(wanted, "name")->as_string()} && arguments &&
           *arguments == *json::find(wanted, "arguments");
  }
  // What stands around the content in a template's own turn, where that differs from the prompt, is not the model's to write. A turn may
  // also end otherwise than every turn does.
  if (has(sample.turn, one.content)) good = good && (has(got.content, one.content) || has(got.reasoning, one.content));
  if (*one.content == '\0') good = good && (got.content.empty() || (got.content.starts_with('<') && has(sample.turn, got.content)));
  const bool marked = !has(sample.turn, "[BEGIN FINAL RESPONSE]");  // whose beginning only the prompt has
  if (*one.reasoning != '\0' && has(sample.turn, one.reasoning) && marked) good = good && got.reasoning == one.reasoning;
  return good;
}

int run(const fs::path& path, const text::AnswerFormats& formats) {
  const std::string name = path.filename().string();
  auto chat_template = text::ChatTemplate::compile(*read_file(path));
  if (!chat_template) {
    ++failures;
    std::printf("FAILED %s: %s\n", name.c_str(), chat_template.status().text.c_str());
    return 0;
  }
  const text::AnswerFormat format = text::format_of(*chat_template, formats);
  const text::TemplateNeeds& needs = chat_template->needs();
  if (std::getenv("VERBOSE") != nullptr)
    std::printf("%s: %s%s%s\n", name.c_str(), format.name.c_str(), format.calls() ? ", calls" : "", needs.shows_calls ? "" : " not shown");
  if (needs.shows_calls && !format.calls()) {
    ++failures;
    std::printf("FAILED %s: its calls are not understood\n", name.c_str());
  }
  const json::object user{{"role", "user"}, {"content", "Is it raining?"}};
  const json::array offered = text::takes_tools(*chat_template) ? tools() : json::array{};
  const auto render = [&](const Case& one) {
    auto messages = text::normalise_messages({message(one, false)}, needs);
    return text::sample_of(*chat_template, user, messages->at(0).as_object(), offered);
  };
  const auto content = render({"Answerquill", "", ""});
  int transcripts = 0;
  for (const Case& one : kCases) {
    if (*one.calls != '\0' && !needs.shows_calls) continue;
    auto sample = render(one);
    if (!sample) continue;
    if (has(one.calls, "Rome") && !has(sample->turn, "Rome")) continue;  // shows one call at most
    if (*one.calls != '\0' && !has(sample->turn, "get_weather") && !has(sample->turn, "save.file")) continue;
    // A turn that begins inside reasoning and never leaves it has no calls, whatever is written there (Nemotron Nano v2).
    if (*one.calls != '\0' && has(sample->head.substr(sample->head.rfind('<') + 1), "think>") && !has(sample->turn, "</think>")) continue;
    if (content) text::cut_end(*content, "Answerquill", sample);
    const Reader reader{format, text::KnownTools{tools()}};
    const Got whole = reader.read(*sample, {});
    const std::string what = name + ", " + format.name + ": " + sample->turn;
    ++checks;
    if (!same(one, *sample, whole)) {
      ++failures;
      std::printf("FAILED %s\n    gave %s\n", what.c_str(), shown(whole).c_str());
    }
    reader.check_cuts(what, *sample, whole);
    ++transcripts;
  }
  return transcripts;
}

}  // namespace

int main(int argc, char** argv) {
  config::Diagnostics diagnostics;
  const auto formats = text::AnswerFormats::load(test::source_directory() / "configs" / "formats", diagnostics);
  if (!diagnostics.ok()) {
    std::printf("%s\n", diagnostics.render().c_str());
    return 1;
  }
  const fs::path cases = test::cases_directory();
  if (argc == 1 && !fs::exists(cases / "templates")) {
    std::printf("skipped: no cases at %s (set MEKIK_CASES)\n", cases.c_str());
    return 77;
  }
  int transcripts = 0, templates = 0;
  for (int i = 1; i < argc; ++i) transcripts += run(argv[i], formats);
  if (argc == 1)
    for (const auto& entry : fs::directory_iterator(cases / "templates"))
      if (entry.path().extension() == ".jinja") transcripts += run(entry.path(), formats), ++templates;
  std::printf("%d transcripts of %d templates, %d of %d checks as expected\n", transcripts, templates, checks - failures, checks);
  return failures == 0 && (argc > 1 || transcripts > 300) ? 0 : 1;
}
