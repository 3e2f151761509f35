#include "text/chat_template.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_set>

#include "base/text.hpp"
#include "text/jinja/renderer.hpp"

namespace mekik::text {

namespace {

constexpr std::size_t kMaxSourceBytes = 1u << 20;

std::string line_of(std::string_view source, std::uint32_t line) {
  std::size_t at = 0;
  for (std::uint32_t i = 1; i < line && at != std::string_view::npos; ++i) {
    at = source.find('\n', at);
    if (at != std::string_view::npos) ++at;
  }
  if (at == std::string_view::npos) return {};
  return std::string{source.substr(at, source.find('\n', at) - at)};
}

Status failure(const jinja::TemplateError& error, std::string_view source) {
  constexpr std::size_t kLongest = 2000;  // raise_exception may say anything
  std::string what = error.what();
  if (what.size() > kLongest) what = utf8_replace_invalid(what.substr(0, kLongest)) + "...";
  if (error.place.line == 0) return invalid("template: " + what);
  std::string shown = line_of(source, error.place.line);
  std::size_t column = error.place.column;
  if (shown.size() > 160) {  // some templates are one long line
    const std::size_t from = column > 60 ? column - 60 : 0;
    shown = utf8_replace_invalid(shown.substr(std::min(from, shown.size()), 120));
  }
  return invalid("template:" + std::to_string(error.place.line) + ":" + std::to_string(column) + ": " + what + "\n  " + shown);
}

// Words that templates put into special tokens ("<|user|>"), and that a request's role may be.
bool known_role(std::string_view role) {
  static constexpr std::array<std::string_view, 8> kRoles{"system",    "user",     "assistant", "tool",
                                                          "developer", "function", "ipython",   "model"};
  return std::find(kRoles.begin(), kRoles.end(), role) != kRoles.end();
}

jinja::Value message_value(const json::value& message) {
  if (!message.is_object()) return jinja::Value::from_json(message);
  jinja::Dict out;
  for (const auto& member : message.as_object()) {
    const json::string* role = member.key() == "role" ? member.value().if_string() : nullptr;
    const bool trusted = role != nullptr && known_role({role->data(), role->size()});
    out.set(member.key(), true, jinja::Value::from_json(member.value(), trusted));
  }
  return jinja::Value::dict(std::move(out));
}

jinja::Value context_value(std::string_view name, const json::value& value) {
  if (name == "messages" && value.is_array()) {
    jinja::List out;
    for (const json::value& message : value.as_array()) out.push_back(message_value(message));
    return jinja::Value::list(std::move(out));
  }
  return jinja::Value::from_json(value, name.ends_with("_token"));
}

std::vector<TextPart> parts_of(const jinja::Text& text) {
  std::vector<TextPart> parts;
  if (text.uniform()) {
    if (!text.bytes.empty()) parts.push_back({text.bytes, text.trusted});
    return parts;
  }
  for (std::size_t at = 0; at < text.bytes.size();) {
    const std::size_t end = std::min(text.mask.find(text.mask[at] ? '\0' : '\1', at), text.bytes.size());
    parts.push_back({text.bytes.substr(at, end - at), text.mask[at] != 0});
    at = end;
  }
  return parts;
}

}  // namespace

struct ChatTemplate::Impl {
  std::string source;
  jinja::Body body;
  std::unordered_set<std::string> variables;
  std::once_flag probed;
  TemplateNeeds needs;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::compile(std::string_view source) {
  if (source.size() > kMaxSourceBytes)
    return invalid("template: has " + std::to_string(source.size()) + " bytes; at most " + std::to_string(kMaxSourceBytes) + " are read");
  if (!is_utf8(source)) return invalid("template: is not valid UTF-8");
  auto impl = std::make_unique<Impl>();
  impl->source = source;
  try {
    impl->body = jinja::parse(impl->source);
    impl->variables = jinja::free_names(impl->body);
  } catch (const jinja::TemplateError& error) {
    return failure(error, source);
  }
  return ChatTemplate{std::move(impl)};
}

Result<std::vector<TextPart>> ChatTemplate::render(const json::object& context, const TemplateLimits& limits) const {
  jinja::Budget budget;
  budget.max_steps = limits.steps;
  budget.max_output_bytes = limits.output_bytes;
  // Every level of a template's own nesting costs a few of these: blocks, expressions and calls are all counted.
  budget.max_depth = limits.depth * 8;
  budget.now = limits.now;
  try {
    std::unordered_map<std::string, jinja::Value> variables;
    for (const auto& member : context) variables.emplace(member.key(), context_value(member.key(), member.value()));
    return parts_of(jinja::render(impl_->body, std::move(variables), budget));
  } catch (const jinja::TemplateError& error) {
    return failure(error, impl_->source);
  }
}

bool ChatTemplate::uses(std::string_view variable) const { return impl_->variables.count(std::string{variable}) != 0; }

const std::string& ChatTemplate::source() const { return impl_->source; }

const TemplateNeeds& ChatTemplate::needs() const {
  std::call_once(impl_->probed, [this] { impl_->needs = probe_needs(*this); });
  return impl_->needs;
}

std::string plain_text(const std::vector<TextPart>& parts) {
  std::string out;
  for (const TextPart& part : parts) out += part.text;
  return out;
}

}  // namespace mekik::text
