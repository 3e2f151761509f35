#include "server/openai/messages.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "server/openai/prepare.hpp"
#include "text/answer/history.hpp"

namespace mekik::server::openai {

namespace {

// Members of a message that only a template can honour.
constexpr const char* kForTemplate[] = {"name", "reasoning_content", "reasoning", "thinking"};
constexpr std::size_t kMaxMessages = 10'000, kMaxTools = 128, kMaxNameBytes = 64;

bool is_name(const json::value* value) {
  if (value == nullptr || !value->is_string()) return false;
  const std::string_view text = value->get_string();
  return !text.empty() && text.size() <= kMaxNameBytes &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == std::string_view::npos;
}

void check_tool_calls(Fields& message) {
  const json::array* calls = message.array("tool_calls");
  if (calls == nullptr) return;
  for (const json::value& call : *calls) {
    const json::value* function = json::find(call, "function");
    const json::value* name = function == nullptr ? nullptr : json::find(*function, "name");
    if (!is_name(name) || json::find(*function, "arguments") == nullptr)
      return message.fail("tool_calls", "each needs a function with a name (letters, digits, _ - .) and arguments");
  }
}

void check_content(Fields& message, std::string_view role) {
  const json::value* content = message.get("content");
  if (content == nullptr) {
    const json::array* calls = message.array("tool_calls");
    if (role != "assistant" || calls == nullptr || calls->empty()) message.fail("content", "is missing or null");
    return;
  }
  if (content->is_string()) return;
  if (!content->is_array()) return message.fail("content", "must be a string or an array of parts");
  for (const json::value& part : content->get_array()) {
    const json::value* type = json::find(part, "type");
    if (type == nullptr || !type->is_string()) return message.fail("content", "each part needs a type");
    if (type->get_string() != "text")
      return message.fail("content", "parts of type " + mekik::quoted(type->get_string()) + " are not supported; this model reads text");
    const json::value* text = json::find(part, "text");
    if (text == nullptr || !text->is_string()) return message.fail("content", "a text part needs a text");
  }
}

// One message; false after a mistake, which is then in `fields`.
bool check_message(const json::value& value, std::size_t index, Fields& fields, std::vector<std::string>& warnings) {
  const std::string where = "messages[" + std::to_string(index) + "]";
  if (!value.is_object()) {
    fields.adopt(bad_field(where, where + ": must be an object"));
    return false;
  }
  Fields message{value.get_object(), where};
  const auto role = message.text("role");
  static const std::vector<std::string> kRoles = {"system", "developer", "user", "assistant", "tool"};
  if (!role) message.fail("role", "is missing; it must be one of " + join(kRoles, ", "));
  else if (std::find(kRoles.begin(), kRoles.end(), *role) == kRoles.end()) message.fail("role", "must be one of " + join(kRoles, ", "));
  check_content(message, role.value_or(""));
  check_tool_calls(message);
  if (role && *role != "assistant" && message.get("tool_calls") != nullptr) message.fail("tool_calls", "belongs to the assistant");
  const auto call_id = message.text("tool_call_id");
  if (call_id && role && *role != "tool") message.fail("tool_call_id", "belongs to messages of the role tool");
  for (const char* for_template : kForTemplate) (void)message.text(for_template);
  for (const char* refused : {"audio", "function_call", "refusal"})
    if (message.get(refused) != nullptr) message.fail(refused, "is not supported");
  if (const json::array* annotations = message.array("annotations"); annotations != nullptr && !annotations->empty())
    warnings.push_back(where + ".annotations has no effect");
  if (const json::object rest = message.rest(); !message.error() && !rest.empty()) {
    ApiError unknown = unknown_field(std::string_view{rest.begin()->key()}, {"role", "content", "name", "tool_calls", "tool_call_id",
                                                                             "reasoning_content", "reasoning", "thinking", "annotations"});
    unknown.message = where + ": " + unknown.message;
    unknown.param = where + "." + unknown.param;
    fields.adopt(std::move(unknown));
  }
  if (message.error()) fields.adopt(*message.error());
  return !fields.error();
}

// "auto" and "none"; to make a model call something takes a grammar.
bool read_tool_choice(Fields& fields, bool tools) {
  const json::value* choice = fields.get("tool_choice");
  if (choice == nullptr || *choice == "auto") return tools;
  if (*choice == "none") return false;
  if (!tools) fields.fail("tool_choice", "needs tools");
  else if (*choice == "required" || choice->is_object())
    fields.fail("tool_choice", "the model cannot be made to call a function yet; \"auto\" leaves it to the model, \"none\" forbids it");
  else fields.fail("tool_choice", "must be \"auto\" or \"none\"");
  return false;
}

void read_tools(Fields& fields, ChatFields& chat) {
  chat.tools = fields.array("tools");
  if (chat.tools != nullptr && chat.tools->empty()) chat.tools = nullptr;
  chat.calls = read_tool_choice(fields, chat.tools != nullptr);
  chat.one_call = !fields.boolean("parallel_tool_calls", true);
  if (chat.tools == nullptr) return;
  if (chat.tools->size() > kMaxTools) return fields.fail("tools", "at most " + std::to_string(kMaxTools) + " are allowed");
  for (const json::value& tool : *chat.tools) {
    const json::value* type = json::find(tool, "type");
    const json::value* function = json::find(tool, "function");
    const json::value* name = function == nullptr ? nullptr : json::find(*function, "name");
    if (type == nullptr || !type->is_string() || type->get_string() != "function" || !is_name(name))
      return fields.fail("tools", "each must be {\"type\": \"function\", \"function\": {\"name\": ..}}; names have letters, digits, _ - .");
  }
}

void read_variables(Fields& fields, ChatFields& chat) {
  chat.add_generation_prompt = fields.boolean("add_generation_prompt", true);
  if (const json::object* given = fields.object("chat_template_kwargs"))
    for (const auto& member : *given) {
      for (const char* own : {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token"})
        if (member.key() == own) fields.fail("chat_template_kwargs", mekik::quoted(own) + " is set by the server");
      chat.variables[member.key()] = member.value();
    }
  if (const auto effort = fields.text("reasoning_effort")) chat.variables["reasoning_effort"] = *effort;
}

// developer is OpenAI's newer name of system, which many templates do not know.
json::array with_system(const json::array& messages, bool developer) {
  json::array out = messages;
  if (developer) return out;
  for (json::value& message : out)
    if (json::value& role = message.as_object()["role"]; role == "developer") role = "system";
  return out;
}

json::object template_context(const ChatFields& chat, const Served& served, json::array messages) {
  json::object context = chat.variables;
  context["messages"] = std::move(messages);
  context["add_generation_prompt"] = chat.add_generation_prompt;
  if (chat.tools != nullptr) text::add_tools(*served.chat_template, *chat.tools, context);
  const text::Tokenizer& tokenizer = *served.tokenizer;
  if (tokenizer.bos() >= 0) context["bos_token"] = std::string_view{tokenizer.token(tokenizer.bos())};
  if (tokenizer.eos() >= 0) context["eos_token"] = std::string_view{tokenizer.token(tokenizer.eos())};
  return context;
}

MaybeError check_template(const ChatFields& chat, const Served& served) {
  if (served.tokenizer == nullptr)
    return ApiError{400, "this model has no tokenizer, so it cannot chat: " + served.tokenizer_error, "model", "no_tokenizer", {}};
  if (served.chat_template == nullptr)
    return ApiError{400,
                    served.template_error.empty() ? "this model has no chat template; use /v1/completions" : served.template_error,
                    "model",
                    "no_chat_template",
                    {}};
  if (chat.tools != nullptr && !text::takes_tools(*served.chat_template))
    return bad_field("tools", "tools: the chat template of this model does not show tools");
  if (chat.calls && (served.format == nullptr || !served.format->calls()))
    return bad_field("tools", "tools: it is not known how this model writes calls; with tool_choice = \"none\" it only sees the tools");
  for (const auto& member : chat.variables)
    if (!served.chat_template->uses(member.key()))
      return bad_field(member.key() == "reasoning_effort" ? "reasoning_effort" : "chat_template_kwargs",
                       "the chat template of this model has no variable " + mekik::quoted(member.key()));
  return std::nullopt;
}

bool has_member(const json::array& messages, const char* name) {
  return std::any_of(messages.begin(), messages.end(), [name](const json::value& message) {
    const json::value* value = json::find(message, name);
    return value != nullptr && !value->is_null();
  });
}

json::array without_member(json::array messages, const char* name) {
  for (json::value& message : messages) message.as_object().erase(name);
  return messages;
}

// A template that makes the same prompt without something drops it without a word: calls and tools are then refused, the rest is warned of.
MaybeError check_shown(const ChatFields& chat, const Served& served, const json::array& messages, const std::string& shown,
                       std::vector<std::string>& warnings) {
  const auto same = [&](const ChatFields& fields, json::array kept) {
    const auto parts = served.chat_template->render(template_context(fields, served, std::move(kept)));
    return parts.ok() && text::plain_text(*parts) == shown;
  };
  MaybeError error;
  if (has_member(messages, "tool_calls") && same(chat, without_member(messages, "tool_calls")))
    error = bad_field("messages",
                      "the chat template of this model does not show the calls in tool_calls, and it is not known how the model writes "
                      "them; send each of these messages with the call in its content, as the model wrote it");
  if (!error && chat.tools != nullptr) {
    ChatFields bare = chat;
    bare.tools = nullptr;
    if (same(bare, messages)) error = bad_field("tools", "the chat template of this model does not show these tools");
  }
  if (error && !chat.looks) return error;
  if (error) warnings.push_back("the API refuses this: " + error->message);
  const std::string& reasoning = served.chat_template->needs().reasoning_key;
  for (const std::string member : kForTemplate) {
    // Reasoning is given to the template under the name that it reads.
    const std::string used = member != "name" && !reasoning.empty() ? reasoning : member;
    if (has_member(*chat.messages, member.c_str()) && same(chat, without_member(messages, used.c_str())))
      warnings.push_back("the chat template of this model does not show " + mekik::quoted(member) + " of these messages");
  }
  return std::nullopt;
}

}  // namespace

ChatFields read_chat_fields(Fields& fields, std::vector<std::string>& warnings) {
  ChatFields chat;
  chat.messages = fields.array("messages");
  if (chat.messages == nullptr) fields.fail("messages", "is missing");
  else if (chat.messages->empty() || chat.messages->size() > kMaxMessages)
    fields.fail("messages", "must have 1 to " + std::to_string(kMaxMessages) + " messages");
  else
    for (std::size_t i = 0; i < chat.messages->size(); ++i)
      if (!check_message((*chat.messages)[i], i, fields, warnings)) break;
  read_tools(fields, chat);
  read_variables(fields, chat);
  return chat;
}

MaybeError render_chat(const ChatFields& chat, const Served& served, std::vector<std::int32_t>& tokens, std::vector<std::string>& warnings,
                       text::AnswerStart* start) {
  std::vector<text::TextPart> parts;
  if (MaybeError error = render_parts(chat, served, parts, warnings)) return error;
  if (MaybeError error = check_length(served, text::plain_text(parts))) return error;
  if (start != nullptr && served.format != nullptr) *start = text::answer_start(*served.format, parts);
  tokens = served.tokenizer->encode(parts, false);  // the template writes BOS itself
  if (tokens.empty()) return bad_field("messages", "the chat template made an empty prompt");
  return std::nullopt;
}

MaybeError render_parts(const ChatFields& chat, const Served& served, std::vector<text::TextPart>& out,
                        std::vector<std::string>& warnings) {
  if (MaybeError error = check_template(chat, served)) return error;
  const text::TemplateNeeds& needs = served.chat_template->needs();
  json::array given = with_system(*chat.messages, needs.developer);
  std::vector<text::HiddenCalls> hidden;
  if (!needs.shows_calls && served.format != nullptr && !served.format->history.calls.empty()) {
    auto calls = text::hide_calls(served.format->history, given);
    if (!calls.ok()) return bad_field("messages", calls.status().text);
    hidden = std::move(*calls);
  }
  auto messages = text::normalise_messages(given, needs);
  if (!messages.ok()) return bad_field("messages", messages.status().text);
  auto parts = served.chat_template->render(template_context(chat, served, *messages));
  if (!parts.ok()) return bad_field("messages", std::string{kTemplateRefused} + parts.status().text);
  const std::string shown = text::plain_text(*parts);
  if (MaybeError error = check_shown(chat, served, *messages, shown, warnings)) return error;
  if (!hidden.empty()) parts = text::show_calls(hidden, *parts);
  if (!parts.ok()) return bad_field("messages", parts.status().text);
  out = std::move(*parts);
  return std::nullopt;
}

}  // namespace mekik::server::openai
