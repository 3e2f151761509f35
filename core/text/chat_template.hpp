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

enum class MissingContent { empty, null, absent };  // "", null, or no member

// How a template wants its messages.
struct TemplateNeeds {
  bool shows_calls = false;                                // calls of functions in earlier answers
  bool text_arguments = false;                             // their arguments as JSON in a text; else as an object
  bool short_ids = false;                                  // ids of calls have to be 9 letters and digits
  bool parts = false;                                      // content as an array of parts; else as a text
  bool developer = false;                                  // knows this role
  bool empty_content = true;                               // an empty text beside calls lets them be shown
  MissingContent missing_content = MissingContent::empty;  // beside calls, where the request has none
  std::string reasoning_key;                               // of earlier answers; empty: it does not show them
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
  const std::string& source() const;
  // Found out at the first call, by rendering small conversations.
  const TemplateNeeds& needs() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

std::string plain_text(const std::vector<TextPart>& parts);

TemplateNeeds probe_needs(const ChatTemplate& chat_template);
// Whether the template can show functions, and the variables for it, in OpenAI's form.
bool takes_tools(const ChatTemplate& chat_template);
void add_tools(const ChatTemplate& chat_template, const json::array& tools, json::object& context);

// OpenAI messages made uniform before rendering, as the template needs them: parts of content joined by nothing where they are text
// (other types are an error), missing content, arguments of calls as an object or as a text, reasoning under the key that the template
// reads (from reasoning_content, reasoning or thinking), and the name of the function in a tool's message that has only the call's id.
// Errors name the message's index.
Result<json::array> normalise_messages(const json::array& messages, const TemplateNeeds& needs = {});

}  // namespace mekik::text
