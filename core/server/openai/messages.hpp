// messages, tools and what else goes into a chat template.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "server/openai/fields.hpp"
#include "server/server.hpp"

namespace mekik::server::openai {

struct ChatFields {
  const json::array* messages = nullptr;
  const json::array* tools = nullptr;
  json::object variables;  // chat_template_kwargs and reasoning_effort
  bool add_generation_prompt = true;
};

// Checks the shapes; mistakes are left in `fields`. Points into the body.
ChatFields read_chat_fields(Fields& fields, std::vector<std::string>& warnings);
// Renders and tokenizes. Errors of the template are passed on as 400, and what it does not show is refused or warned of.
MaybeError render_chat(const ChatFields& chat, const Served& served, std::vector<std::int32_t>& tokens, std::vector<std::string>& warnings);

}  // namespace mekik::server::openai
