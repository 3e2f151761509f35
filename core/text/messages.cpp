// Messages as a template needs them.
#include <map>

#include "base/text.hpp"
#include "text/chat_template.hpp"
#include "text/jinja/value.hpp"

namespace mekik::text {

namespace {

// The text of content parts, joined by nothing.
Result<std::string> joined_parts(const json::array& parts, const std::string& where) {
  std::string text;
  for (const json::value& part : parts) {
    const json::value* type = json::find(part, "type");
    if (type == nullptr || !type->is_string()) return invalid(where + ".content: each part needs a \"type\"");
    if (type->as_string() != "text")
      return invalid(where + ".content: parts of type " + quoted(type->as_string()) + " are not supported; this model takes text");
    const json::value* value = json::find(part, "text");
    if (value == nullptr || !value->is_string()) return invalid(where + ".content: a text part needs a \"text\" of type string");
    text += value->as_string();
  }
  return text;
}

Status normalise_content(json::object& message, const std::string& where, const TemplateNeeds& needs) {
  json::value* content = message.if_contains("content");
  const json::value* calls = message.if_contains("tool_calls");
  const bool has_calls = calls != nullptr && calls->is_array() && !calls->get_array().empty();
  if (content == nullptr && calls == nullptr) return invalid(where + ": needs \"content\"");
  json::value text = "";
  if (content != nullptr && content->is_array()) {
    MEKIK_TRY(joined, joined_parts(content->as_array(), where));
    text = joined;
  } else if (content != nullptr && content->is_string()) {
    text = *content;
  } else if (content != nullptr && !content->is_null()) {
    return invalid(where + ".content: expected a string or an array of parts");
  }
  const bool given = content != nullptr && !content->is_null() && needs.empty_content;
  const bool missing = has_calls && text.as_string().empty() && !given;
  if (missing && needs.missing_content == MissingContent::absent) {
    message.erase("content");
    return {};
  }
  if (missing && needs.missing_content == MissingContent::null) text = nullptr;
  if (needs.parts && text.is_string()) text = json::array{json::object{{"type", "text"}, {"text", text}}};
  message["content"] = std::move(text);
  return {};
}

// With a blank behind commas and colons, as templates write JSON themselves; so it is the same as what clients send.
std::string spelled(const json::value& value) {
  jinja::Budget budget;
  budget.max_steps = UINT64_MAX;
  budget.max_output_bytes = UINT64_MAX;
  budget.max_depth = UINT32_MAX;
  return jinja::to_json(jinja::Value::from_json(value), {}, budget);
}

Status normalise_arguments(json::value& arguments, const std::string& where, bool as_text) {
  if (as_text) {
    if (!arguments.is_string()) arguments = spelled(arguments);
    return {};
  }
  if (!arguments.is_string()) return {};
  auto parsed = json::parse(arguments.as_string().empty() ? "{}" : std::string_view{arguments.as_string()});
  if (!parsed) return invalid(where + ".tool_calls: arguments are not valid JSON: " + parsed.status().text);
  arguments = std::move(*parsed);
  return {};
}

using Names = std::map<std::string, json::value, std::less<>>;

// `names`: of the functions, by the id of the call.
Status normalise_tool_calls(json::value& calls, const std::string& where, const TemplateNeeds& needs, Names& names) {
  if (!calls.is_array()) return invalid(where + ".tool_calls: expected an array");
  for (json::value& call : calls.as_array()) {
    json::object* members = call.if_object();
    json::value* function = members ? members->if_contains("function") : nullptr;
    if (function == nullptr || !function->is_object()) return invalid(where + ".tool_calls: each call needs a \"function\" object");
    if (members->if_contains("type") == nullptr) (*members)["type"] = "function";
    const json::value *id = json::find(call, "id"), *name = json::find(*function, "name");
    if (id != nullptr && id->is_string() && name != nullptr) names[std::string{id->get_string()}] = *name;
    if (json::value* arguments = function->as_object().if_contains("arguments"))
      MEKIK_CHECK_OK(normalise_arguments(*arguments, where, needs.text_arguments));
  }
  return {};
}

void normalise_reasoning(json::object& message, const TemplateNeeds& needs) {
  if (needs.reasoning_key.empty() || message.if_contains(needs.reasoning_key) != nullptr) return;
  for (const char* key : {"reasoning_content", "reasoning", "thinking"}) {
    const json::value* given = message.if_contains(key);
    if (given == nullptr || !given->is_string()) continue;
    message[needs.reasoning_key] = json::value(*given);
    message.erase(key);
    return;
  }
}

}  // namespace

Result<json::array> normalise_messages(const json::array& messages, const TemplateNeeds& needs) {
  json::array out;
  Names names;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string where = "messages[" + std::to_string(i) + "]";
    if (!messages[i].is_object()) return invalid(where + ": expected an object");
    json::object message = messages[i].as_object();
    const json::value* role = message.if_contains("role");
    if (role == nullptr || !role->is_string()) return invalid(where + ": needs a \"role\" of type string");
    const bool tool = *role == "tool";
    MEKIK_CHECK_OK(normalise_content(message, where, needs));
    if (json::value* calls = message.if_contains("tool_calls")) {
      if (calls->is_null()) message.erase("tool_calls");
      else MEKIK_CHECK_OK(normalise_tool_calls(*calls, where, needs, names));
    }
    if (const json::value* id = message.if_contains("tool_call_id"); tool && id != nullptr && id->is_string())
      if (const auto named = names.find(std::string_view{id->get_string()}); named != names.end() && message.if_contains("name") == nullptr)
        message["name"] = named->second;
    normalise_reasoning(message, needs);
    out.push_back(std::move(message));
  }
  return out;
}

}  // namespace mekik::text
