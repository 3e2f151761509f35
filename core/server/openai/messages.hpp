// messages, tools and what else goes into a chat template.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "server/openai/fields.hpp"
#include "server/server.hpp"
#include "text/answer/parser.hpp"

namespace mekik::server::openai {

struct ChatFields {
  const json::array* messages = nullptr;
  const json::array* tools = nullptr;
  json::object variables;  // chat_template_kwargs and reasoning_effort
  bool add_generation_prompt = true;
  bool calls = false;     // the model may call the tools
  bool one_call = false;  // at most one of them
  bool looks = false;     // the prompt is only looked at: what it does not show is warned of, not refused
};

// Checks the shapes; mistakes are left in `fields`. Points into the body.
ChatFields read_chat_fields(Fields& fields, std::vector<std::string>& warnings);
inline constexpr std::string_view kTemplateRefused = "the model's chat template refused the messages: ";
// The prompt as the template writes it. Needs of `served` what has to do with text.
MaybeError render_parts(const ChatFields& chat, const Served& served, std::vector<text::TextPart>& out, std::vector<std::string>& warnings);
// Renders and tokenizes. Errors of the template are passed on as 400, and what it does not show is refused or warned of.
// `start`: where the answer to this prompt begins, for its parser; may be nullptr.
MaybeError render_chat(const ChatFields& chat, const Served& served, std::vector<std::int32_t>& tokens, std::vector<std::string>& warnings,
                       text::AnswerStart* start = nullptr);

}  // namespace mekik::server::openai
