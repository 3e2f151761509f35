// Small conversations that show how a chat template writes messages.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "text/chat_template.hpp"

namespace mekik::text::probe {

// Words that no template has.
inline constexpr std::string_view kQuestion = "Quokka?", kAnswer = "Answerquill", kReasoning = "Ponderquill", kFirst = "pick_zebra",
                                  kSecond = "find_walrus", kTextKey = "colour", kText = "crimson", kNumberKey = "count", kNumber = "4207",
                                  kSecondKey = "place", kSecondText = "harbour", kLongId = "call_zq0123456789abcdefghij",
                                  kShortId = "zqidab012";

// Of one probe: there are some twenty of them, and no template that was published needs a tenth of this for them.
inline constexpr std::uint64_t kSteps = 200'000;

json::array tools();
json::object first_arguments();
json::object second_arguments();
json::object user();
// Of the assistant; `content`: a text or null. Calls: 0 to 2 of them.
struct Turn {
  json::value content = "";
  bool has_content = true;
  int calls = 0;
  bool text_arguments = false;
  std::string_view reasoning_key;  // "": no reasoning
  std::string_view id = kShortId;  // of both calls, so that they differ in nothing but names and arguments
};
json::object assistant(const Turn& turn);

// What the template makes of it; nothing: it refuses. `tools`: the functions offered; none where it is empty.
std::optional<std::string> render(const ChatTemplate& chat_template, json::array messages, const json::array& tools, bool generates);

}  // namespace mekik::text::probe
