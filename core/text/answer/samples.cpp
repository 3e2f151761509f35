// Renders the probes, and cuts the answer's turn out of them.
#include <algorithm>

#include "text/answer/derive.hpp"
#include "text/template_probe.hpp"

namespace mekik::text {

namespace {

using probe::Turn;

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin()).first - a.begin());
}

// Two texts may part in the middle of a tag: then its beginning belongs to what differs.
std::size_t before_tag(std::string_view text, std::size_t at) {
  for (std::size_t back = at; back > 0 && at - back < 64; --back) {
    const char c = text[back - 1];
    if (c == '>' || c == ']' || c == '\n') return at;
    if (c == '<' || c == '[') return back - 1;
  }
  return at;
}

}  // namespace

// The prompt may end with more than a finished answer has (an opened part), so both are compared.
std::optional<Sample> sample_of(const ChatTemplate& chat_template, const json::object& question, const json::object& answer,
                                const json::array& tools) {
  const auto prompt = probe::render(chat_template, {question}, tools, true);
  const auto whole = probe::render(chat_template, {question, answer}, tools, false);
  const json::value* asked = question.if_contains("content");
  if (!prompt || !whole || asked == nullptr || !asked->is_string()) return std::nullopt;
  const std::size_t common = common_prefix(*prompt, *whole);
  const std::size_t head = common == prompt->size() ? common : before_tag(*whole, common);
  const std::size_t at = prompt->rfind(std::string_view{asked->get_string()});
  if (at == std::string::npos || head <= at) return std::nullopt;
  return Sample{whole->substr(0, head), whole->substr(head)};
}

void cut_end(const Sample& content, std::string_view text, std::optional<Sample>& of) {
  const std::size_t answer = content.turn.find(text);
  if (!of || answer == std::string::npos) return;
  const std::string_view end = std::string_view{content.turn}.substr(answer + text.size());
  std::size_t common = 0;
  while (common < std::min(end.size(), of->turn.size()) && end[end.size() - 1 - common] == of->turn[of->turn.size() - 1 - common]) ++common;
  // Again no half tags: the end begins with one, or with white space.
  const std::string_view cut = std::string_view{of->turn}.substr(of->turn.size() - common);
  const std::size_t begin = cut.find_first_of("<[\n");
  if (begin != std::string_view::npos) of->turn.resize(of->turn.size() - common + begin);
}

Samples samples_of(const ChatTemplate& chat_template) {
  const TemplateNeeds& needs = chat_template.needs();
  const json::array tools = takes_tools(chat_template) ? probe::tools() : json::array{};
  Samples out;
  Turn turn;
  turn.content = probe::kAnswer;
  turn.text_arguments = needs.text_arguments;
  out.content = sample_of(chat_template, probe::user(), probe::assistant(turn), tools);
  turn.reasoning_key = needs.reasoning_key;
  if (!needs.reasoning_key.empty()) out.reasoning = sample_of(chat_template, probe::user(), probe::assistant(turn), tools);
  if (out.reasoning && out.reasoning->turn.find(probe::kReasoning) == std::string::npos) out.reasoning.reset();
  turn.reasoning_key = {};
  if (needs.shows_calls) {
    turn.calls = 1;
    out.content_call = sample_of(chat_template, probe::user(), probe::assistant(turn), tools);
    turn.has_content = needs.missing_content != MissingContent::absent;
    turn.content = "";
    if (needs.missing_content == MissingContent::null) turn.content = nullptr;
    out.call = sample_of(chat_template, probe::user(), probe::assistant(turn), tools);
    turn.calls = 2;
    out.two_calls = sample_of(chat_template, probe::user(), probe::assistant(turn), tools);
  }
  if (out.content)
    for (std::optional<Sample>* of : {&out.reasoning, &out.call, &out.two_calls, &out.content_call})
      cut_end(*out.content, probe::kAnswer, *of);
  return out;
}

}  // namespace mekik::text
