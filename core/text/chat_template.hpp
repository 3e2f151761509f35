// Chat templates: the Jinja language as transformers uses it, sandboxed, and bounded in steps, depth and output.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/status.hpp"
#include "text/tokenizer.hpp"

namespace mekik::text {

struct TemplateLimits {
  std::uint64_t steps = 5'000'000;
  std::uint32_t depth = 200;
  std::uint64_t output_bytes = 16u << 20;
  std::optional<std::int64_t> now;  // seconds since 1970, UTC, for strftime_now; none: the machine's local time
};

// Immutable after compile; render from any thread.
class ChatTemplate {
 public:
  // Errors: "template:LINE:COLUMN: ..." with the line. trim_blocks and lstrip_blocks are on, as in transformers.
  static Result<ChatTemplate> compile(std::string_view source);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // Renders with the members of `context` as variables (messages, tools, add_generation_prompt, bos_token, eos_token, ...).
  // Parts that stem from template text are trusted; whatever came out of `messages`, `tools` or other context values is not, except
  // bos_token and eos_token. raise_exception() gives Code::invalid with its message.
  Result<std::vector<TextPart>> render(const json::object& context, const TemplateLimits& limits = {}) const;
  // Whether an expression of the template reads a variable of the context ("tools").
  bool uses(std::string_view variable) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

std::string plain_text(const std::vector<TextPart>& parts);

// OpenAI messages made uniform before rendering: parts of content joined by nothing where they are text (other types are an error),
// null content becomes "", tool_calls arguments given as JSON text become objects. Errors name the message's index.
Result<json::array> normalise_messages(const json::array& messages);

}  // namespace mekik::text
