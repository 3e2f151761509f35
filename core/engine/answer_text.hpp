// Tokens to the text of one answer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
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
  std::uint32_t pushed() const { return pushed_; }  // tokens
  // How many of the last tokens have no part in the text that came out: it may still become a stop string, or it was one.
  std::uint32_t unsaid() const { return static_cast<std::uint32_t>(spans_.size()); }

 private:
  struct Span {  // of the visible text, where a token's own begins and ends; empty for a part of a character
    std::size_t begin, end;
  };
  std::string give(std::string text, bool visible);  // to the matcher
  std::string settle(std::string out);               // counts what came out

  const text::Tokenizer* tokenizer_;
  bool show_special_;
  std::optional<text::Detokenizer> detokenizer_;
  StopMatcher matcher_;
  std::uint32_t pushed_ = 0;
  std::size_t given_ = 0, shown_ = 0;  // bytes of visible text into the matcher, and out of it
  std::deque<Span> spans_;             // of the tokens that are not said yet
};

}  // namespace mekik::engine
