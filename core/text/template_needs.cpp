// How a template wants its messages: found out by rendering small conversations.
#include <array>
#include <ctime>

#include "text/template_probe.hpp"

namespace mekik::text {

namespace {

std::size_t count(std::string_view text, std::string_view word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

// Whether a rendered call can be read back: not as a JSON text inside of JSON, nor as Python prints an object.
bool shows_call(std::string_view text) {
  const std::string key{probe::kTextKey};
  return has(text, probe::kFirst) && has(text, probe::kText) && !has(text, "\\\"" + key) && !has(text, "{'" + key);
}

struct Shape {
  bool text_arguments;
  MissingContent content;
};

std::optional<std::string> render_call(const ChatTemplate& chat_template, const Shape& shape, std::string_view id) {
  probe::Turn turn;
  turn.calls = 1;
  turn.text_arguments = shape.text_arguments;
  turn.has_content = shape.content != MissingContent::absent;
  if (shape.content == MissingContent::null) turn.content = nullptr;
  turn.id = id;
  return probe::render(chat_template, {probe::user(), probe::assistant(turn)}, probe::tools(), false);
}

// An empty text, null, or nothing at all: the shortest prompt that shows the call has nothing in it that was not asked for.
void probe_calls(const ChatTemplate& chat_template, TemplateNeeds& needs) {
  const auto nones = [](const std::optional<std::string>& text) { return text ? count(*text, "None") : 0; };
  for (const bool text_arguments : {false, true}) {
    bool empty = false;
    std::optional<std::size_t> best, least;
    for (const MissingContent content : {MissingContent::empty, MissingContent::null, MissingContent::absent}) {
      const auto text = render_call(chat_template, {text_arguments, content}, probe::kShortId);
      if (!text || !shows_call(*text)) continue;
      if (!least) least = nones(text);
      if (best && (text->size() >= *best || nones(text) > *least)) continue;
      best = text->size();
      if (content == MissingContent::empty) empty = true;
      needs.missing_content = content;
    }
    if (!best) continue;
    needs.shows_calls = true;
    needs.empty_content = empty;
    needs.text_arguments = text_arguments;
    needs.short_ids = !render_call(chat_template, {text_arguments, needs.missing_content}, probe::kLongId);
    return;
  }
}

void probe_reasoning(const ChatTemplate& chat_template, TemplateNeeds& needs) {
  for (const char* key : {"reasoning_content", "reasoning", "thinking"})
    for (const int calls : {0, 1}) {
      probe::Turn turn;
      turn.content = probe::kAnswer;
      turn.calls = calls;
      turn.text_arguments = needs.text_arguments;
      turn.reasoning_key = key;
      if (calls > 0 && !needs.shows_calls) continue;
      const auto text =
          probe::render(chat_template, {probe::user(), probe::assistant(turn)}, calls > 0 ? probe::tools() : json::array{}, false);
      if (!text || !has(*text, probe::kReasoning)) continue;
      needs.reasoning_key = key;
      return;
    }
}

void probe_parts(const ChatTemplate& chat_template, TemplateNeeds& needs) {
  json::object user = probe::user();
  const auto shown = [&] {
    const auto text = probe::render(chat_template, {user}, {}, true);
    return text && has(*text, probe::kQuestion);
  };
  if (shown()) return;
  user["content"] = json::array{json::object{{"type", "text"}, {"text", probe::kQuestion}}};
  needs.parts = shown();
}

}  // namespace

TemplateNeeds probe_needs(const ChatTemplate& chat_template) {
  TemplateNeeds needs;
  probe_parts(chat_template, needs);
  if (!needs.parts) probe_calls(chat_template, needs);
  probe_reasoning(chat_template, needs);
  needs.developer = has(chat_template.source(), "developer");
  return needs;
}

void add_tools(const ChatTemplate& chat_template, const json::array& tools, json::object& context) {
  context["tools"] = tools;
  if (chat_template.uses("tools")) return;
  if (chat_template.uses("xml_tools") && !context.contains("xml_tools")) context["xml_tools"] = tools;  // beside python_tools
  if (!chat_template.uses("functions") || context.contains("functions")) return;
  // An older convention: the functions as one JSON text, and the day.
  json::array functions;
  for (const json::value& tool : tools)
    if (const json::value* function = json::find(tool, "function")) functions.push_back(*function);
  context["functions"] = json::serialize(functions);
  if (!chat_template.uses("datetime") || context.contains("datetime")) return;
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 40> text{};
  std::strftime(text.data(), text.size(), "%B %d, %Y", &parts);
  context["datetime"] = text.data();
}

bool takes_tools(const ChatTemplate& chat_template) {
  for (const char* name : {"tools", "functions", "xml_tools"})
    if (chat_template.uses(name)) return true;
  return false;
}

}  // namespace mekik::text
