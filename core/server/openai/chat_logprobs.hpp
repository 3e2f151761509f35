// The scores of a chat's tokens, for those that are in its content.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "engine/engine.hpp"
#include "text/answer/reader.hpp"

namespace mekik::server::openai {

// All bytes together are the content: a token of reasoning or of a call is not listed, one that is partly content has those bytes.
class ChatLogprobs {
 public:
  ChatLogprobs(const text::Tokenizer& tokenizer, bool show_special) : tokenizer_{tokenizer}, show_special_{show_special} {}

  void add(const engine::TokenInfo& token, const text::AnswerReader::Token& place) { waiting_.push_back({token, place}); }
  void add_content(const text::AnswerPiece& piece) { content_.push_back({piece.begin, piece.text, piece.end}); }
  // What is decided: `bytes` of the text are.
  json::array take(std::size_t bytes, bool final);

 private:
  struct Waiting {
    engine::TokenInfo token;
    text::AnswerReader::Token place;
  };
  struct Content {
    std::size_t begin;
    std::string text;  // empty: a special token that is not shown
    std::size_t end;
  };
  json::object entry(std::int32_t id, float logprob) const;
  json::object entry(const Waiting& of, const std::string& bytes, bool whole) const;

  const text::Tokenizer& tokenizer_;
  const bool show_special_;
  std::deque<Waiting> waiting_;
  std::deque<Content> content_;
};

}  // namespace mekik::server::openai
