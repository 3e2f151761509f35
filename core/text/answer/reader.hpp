// From the tokens of an answer to its pieces.
#pragma once
#include <optional>
#include <vector>

#include "text/answer/parser.hpp"

namespace mekik::text {

// Keeps a format alive together with the parser over it. Not thread-safe.
class AnswerReader {
 public:
  // The tokenizer, the format and the tools must outlive it.
  AnswerReader(const Tokenizer& tokenizer, const AnswerFormat& format, const KnownTools& tools, const AnswerOptions& options);

  struct Token {
    std::size_t begin = 0, end = 0;  // of its text in all the text; empty for a part of a character
    bool cut = false;                // a stop text began inside of it
  };
  // The next token. `last`: of the answer, of which `visible` bytes are shown in all (special tokens only where they are shown).
  Token push(std::int32_t id, bool last, std::size_t visible, std::vector<AnswerPiece>& out);
  void finish(std::vector<AnswerPiece>& out) { parser_.finish(out); }

  const AnswerParser& parser() const { return parser_; }
  std::uint32_t reasoning_tokens() const { return reasoning_tokens_; }

 private:
  void give(std::string_view text, bool special, std::vector<AnswerPiece>& out);

  const Tokenizer& tokenizer_;
  const bool show_special_;
  AnswerParser parser_;
  std::optional<Detokenizer> detokenizer_;
  std::size_t given_ = 0, visible_ = 0;
  std::uint32_t reasoning_tokens_ = 0;
};

}  // namespace mekik::text
