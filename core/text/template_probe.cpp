#include "text/template_probe.hpp"

namespace mekik::text::probe {

namespace {

json::object function(std::string_view name, json::object properties) {
  json::array required;
  for (const auto& member : properties) required.emplace_back(member.key());
  return {{"type", "function"},
          {"function",
           json::object{{"name", name},
                        {"description", "d"},
                        {"parameters",
                         json::object{{"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}}}}}};
}

json::object typed(const char* type) { return {{"type", type}, {"description", "d"}}; }

json::object call(std::string_view name, json::object arguments, std::string id, bool as_text) {
  json::value given = arguments;
  if (as_text) given = json::serialize(arguments);
  return {{"id", std::move(id)}, {"type", "function"}, {"function", json::object{{"name", name}, {"arguments", std::move(given)}}}};
}

}  // namespace

json::object first_arguments() {
  json::object out;
  out[kTextKey] = kText;
  out[kNumberKey] = 4207;
  return out;
}

json::object second_arguments() {
  json::object out;
  out[kSecondKey] = kSecondText;
  return out;
}

json::array tools() {
  json::object first, second;
  first[kTextKey] = typed("string");
  first[kNumberKey] = typed("integer");
  second[kSecondKey] = typed("string");
  return {function(kFirst, std::move(first)), function(kSecond, std::move(second))};
}

json::object user() { return {{"role", "user"}, {"content", kQuestion}}; }

json::object assistant(const Turn& turn) {
  json::object out;
  out["role"] = "assistant";
  if (turn.has_content) out["content"] = turn.content;
  if (!turn.reasoning_key.empty()) out[turn.reasoning_key] = kReasoning;
  if (turn.calls == 0) return out;
  std::string id{turn.id};
  json::array calls{call(kFirst, first_arguments(), id, turn.text_arguments)};
  if (turn.calls > 1) calls.push_back(call(kSecond, second_arguments(), id, turn.text_arguments));
  out["tool_calls"] = std::move(calls);
  return out;
}

std::optional<std::string> render(const ChatTemplate& chat_template, json::array messages, const json::array& offered, bool generates) {
  json::object context{
      {"messages", std::move(messages)}, {"add_generation_prompt", generates}, {"bos_token", "<BOS>"}, {"eos_token", "<EOS>"}};
  if (!offered.empty()) add_tools(chat_template, offered, context);
  TemplateLimits limits;
  limits.steps = kSteps;
  const auto parts = chat_template.render(context, limits);
  if (!parts) return std::nullopt;
  return plain_text(*parts);
}

}  // namespace mekik::text::probe
