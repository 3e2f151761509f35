#include "text/answer/history.hpp"

#include <algorithm>

#include "text/jinja/value.hpp"

namespace mekik::text {

namespace {

// With a blank behind commas and colons, as templates write JSON.
std::string json_text(const json::value& value) {
  jinja::Budget budget;
  budget.max_steps = UINT64_MAX;
  budget.max_output_bytes = UINT64_MAX;
  budget.max_depth = UINT32_MAX;
  return jinja::to_json(jinja::Value::from_json(value), {}, budget);
}

std::string python_text(const json::value& value) {
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.get_bool() ? "True" : "False";
  std::string out;
  if (const json::array* list = value.if_array()) {
    for (const json::value& item : *list) out += (out.empty() ? "" : ", ") + python_text(item);
    return "[" + out + "]";
  }
  if (const json::object* object = value.if_object()) {
    for (const auto& member : *object)
      out += (out.empty() ? "" : ", ") + json_text(json::value(member.key())) + ": " + python_text(member.value());
    return "{" + out + "}";
  }
  return json_text(value);
}

struct Call {
  std::string name, id;
  json::value arguments;
};

std::string written(const std::string& slot, const Call& call) {
  if (slot == "{name}") return call.name;
  if (slot == "{id}") return call.id;
  if (slot == "{arguments}") return json_text(call.arguments);
  if (slot == "{json}") return "{\"name\": " + json_text(json::value(call.name)) + ", \"arguments\": " + json_text(call.arguments) + "}";
  std::string out;
  for (const auto& member : call.arguments.get_object())
    out += (out.empty() ? "" : ", ") + std::string{std::string_view{member.key()}} + "=" + python_text(member.value());
  return call.name + "(" + out + ")";
}

void append(std::vector<TextPart>& parts, std::string text, bool trusted) {
  if (text.empty()) return;
  if (!parts.empty() && parts.back().trusted == trusted) parts.back().text += text;
  else parts.push_back({std::move(text), trusted});
}

template <class Fill>
void fill(const std::string& pattern, std::vector<TextPart>& out, Fill&& slot) {
  for (std::size_t at = 0; at < pattern.size();) {
    const std::size_t open = pattern.find('{', at), close = open == std::string::npos ? open : pattern.find('}', open);
    if (close == std::string::npos) return append(out, pattern.substr(at), true);
    append(out, pattern.substr(at, open - at), true);
    const std::string name = pattern.substr(open, close - open + 1);
    const auto& all = kHistorySlots;
    if (std::find(std::begin(all), std::end(all), name) == std::end(all)) append(out, name, true);  // a brace of the format
    else slot(name);
    at = close + 1;
  }
}

Result<Call> read_call(const json::value& call) {
  Call out;
  const json::value* function = json::find(call, "function");
  const json::value* name = function == nullptr ? nullptr : json::find(*function, "name");
  if (name == nullptr || !name->is_string()) return invalid("each call needs a function with a name");
  out.name = std::string_view{name->get_string()};
  if (const json::value* id = json::find(call, "id"); id != nullptr && id->is_string()) out.id = std::string_view{id->get_string()};
  out.arguments = json::object{};
  if (const json::value* arguments = json::find(*function, "arguments"); arguments != nullptr && !arguments->is_null()) {
    out.arguments = *arguments;
    if (arguments->is_string()) {
      const std::string_view text = arguments->get_string();
      auto parsed = json::parse(text.empty() ? "{}" : text);
      if (!parsed) return invalid("arguments are not valid JSON: " + parsed.status().text);
      out.arguments = std::move(*parsed);
    }
  }
  if (!out.arguments.is_object()) return invalid("arguments must be an object");
  return out;
}

}  // namespace

Result<std::vector<TextPart>> write_calls(const CallHistory& history, const json::array& calls) {
  std::vector<Call> all;
  for (const json::value& call : calls) {
    MEKIK_TRY(one, read_call(call));
    all.push_back(std::move(one));
  }
  std::vector<TextPart> out;
  fill(history.calls, out, [&](const std::string&) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i != 0) append(out, history.between, true);
      fill(history.call, out, [&](const std::string& slot) { append(out, written(slot, all[i]), false); });
    }
  });
  return out;
}

Result<std::vector<HiddenCalls>> hide_calls(const CallHistory& history, json::array& messages) {
  std::vector<HiddenCalls> out;
  std::string mark = "\xEE\x83\xB0";  // U+E0F0, for private use; more of them than the messages have
  const std::string whole = json::serialize(messages);
  while (whole.find(mark) != std::string::npos) mark += "\xEE\x83\xB0";
  for (std::size_t i = 0; i < messages.size(); ++i) {
    json::object* message = messages[i].if_object();
    json::value* calls = message != nullptr ? message->if_contains("tool_calls") : nullptr;
    if (calls == nullptr || !calls->is_array()) continue;
    const std::string where = "messages[" + std::to_string(i) + "]";
    if (!calls->get_array().empty()) {
      auto parts = write_calls(history, calls->get_array());
      if (!parts) return std::move(parts.status()).in(where + ".tool_calls");
      out.push_back({mark + std::to_string(out.size()) + mark, std::move(*parts)});
      json::value& content = (*message)["content"];
      if (content.is_null()) content = "";
      if (content.is_string()) content.get_string() += out.back().mark;
      else if (content.is_array()) content.get_array().push_back(json::object{{"type", "text"}, {"text", out.back().mark}});
      else return invalid(where + ".content: expected a string or an array of parts");
    }
    message->erase("tool_calls");
  }
  return out;
}

Result<std::vector<TextPart>> show_calls(const std::vector<HiddenCalls>& hidden, const std::vector<TextPart>& rendered) {
  std::vector<TextPart> out;
  std::size_t next = 0;
  for (const TextPart& part : rendered) {
    std::size_t at = 0;
    for (; next < hidden.size(); ++next) {
      const std::size_t found = part.text.find(hidden[next].mark, at);
      if (found == std::string::npos) break;
      append(out, part.text.substr(at, found - at), part.trusted);
      for (const TextPart& written : hidden[next].parts) append(out, written.text, written.trusted);
      at = found + hidden[next].mark.size();
    }
    append(out, part.text.substr(at), part.trusted);
  }
  const bool twice = std::any_of(out.begin(), out.end(), [&](const TextPart& part) {
    return !hidden.empty() && part.text.find(hidden[0].mark.substr(0, hidden[0].mark.find('0'))) != std::string::npos;
  });
  if (next < hidden.size() || twice) return invalid("the chat template does not show what an answer with calls says, or not once");
  return out;
}

}  // namespace mekik::text
