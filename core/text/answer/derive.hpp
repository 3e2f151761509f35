// What a template's own renderings say of its format.
#pragma once
#include <optional>
#include <string>

#include "base/json.hpp"
#include "text/answer/format.hpp"
#include "text/chat_template.hpp"

namespace mekik::text {

// The turn of an answer as the template writes it, and what stands before it in the prompt.
struct Sample {
  std::string head, turn;
};

struct Samples {
  std::optional<Sample> content;          // an answer
  std::optional<Sample> reasoning;        // one with reasoning before it
  std::optional<Sample> call, two_calls;  // calls alone
  std::optional<Sample> content_call;     // a call behind an answer
};

// The turn of `answer`, an answer to `question`; nothing where the template refuses or does not show it. `tools`: as of a request.
std::optional<Sample> sample_of(const ChatTemplate& chat_template, const json::object& question, const json::object& answer,
                                const json::array& tools);
// Drops what every turn ends with: what stands behind the text `answer` in `content`.
void cut_end(const Sample& content, std::string_view answer, std::optional<Sample>& of);
Samples samples_of(const ChatTemplate& chat_template);

// Nothing: the samples do not show it, or not in a way that is understood.
std::optional<AnswerFormat> derive_reasoning(const Samples& samples);
std::optional<AnswerFormat> derive_calls(const Samples& samples);

}  // namespace mekik::text
