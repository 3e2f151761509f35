// Tokens to the text of one answer.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/stop.hpp"
#include "text/tokenizer.hpp"

namespace mekik::engine {

// Detokenizes, hides special tokens unless asked, and ends at stop strings. A stop string may name a special token that is hidden.
class AnswerText {
 public:
  // Without a tokenizer there is no text. The tokenizer must outlive this.
  AnswerText(const text::Tokenizer* tokenizer, std::vector<std::string> stops, bool show_special);
  std::string push(std::int32_t id);  // whole UTF-8 that is certain now
  std::string finish();               // the rest; nothing after a stop string
  bool stopped() const { return matcher_.stopped(); }

 private:
  const text::Tokenizer* tokenizer_;
  bool show_special_;
  std::optional<text::Detokenizer> detokenizer_;
  StopMatcher matcher_;
};

}  // namespace mekik::engine
