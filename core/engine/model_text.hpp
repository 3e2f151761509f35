// What a model's file says of text: its tokenizer and its templates.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "base/status.hpp"
#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace mekik::engine {

// A file without a tokenizer or a template can still be run on tokens.
struct ModelText {
  std::unique_ptr<text::Tokenizer> tokenizer;  // nullptr: tokenizer_status says why
  Status tokenizer_status;
  std::optional<text::ChatTemplate> chat_template;  // none: template_status says why
  Status template_status;
  bool has_template = false;  // that cannot be used, if there is no chat_template
  std::string pair_template;  // for query and document
};

// From what a loader tells: null where there is no tokenizer, none where there is no template. A tokenizer that is broken is an error.
// Any thread.
Result<ModelText> make_text(json::value metadata, std::optional<std::string> chat_template);

}  // namespace mekik::engine
