// Calls of earlier answers, for templates that do not show them: written into the content as the model itself writes them.
#pragma once
#include <string>
#include <vector>

#include "base/json.hpp"
#include "text/answer/format.hpp"
#include "text/tokenizer.hpp"

namespace mekik::text {

// What stands for the calls of one answer while the template is rendered, and what comes in its place.
struct HiddenCalls {
  std::string mark;
  std::vector<TextPart> parts;
};

// The calls of an answer. The marks of the format are trusted; names, ids and arguments are not.
Result<std::vector<TextPart>> write_calls(const CallHistory& history, const json::array& calls);
// Takes `tool_calls` out of the messages, and puts a mark behind each content. Errors name the message's index.
Result<std::vector<HiddenCalls>> hide_calls(const CallHistory& history, json::array& messages);
// Puts the calls back. Code::invalid where the template does not show each mark once.
Result<std::vector<TextPart>> show_calls(const std::vector<HiddenCalls>& hidden, const std::vector<TextPart>& rendered);

}  // namespace mekik::text
