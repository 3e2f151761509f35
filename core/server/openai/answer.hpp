// From the engine's events to OpenAI's objects, streamed or whole.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "engine/engine.hpp"
#include "engine/said.hpp"
#include "text/answer/reader.hpp"
#include "text/tokenizer.hpp"

namespace mekik::server::openai {

struct AnswerOptions {
  std::string id, model;
  std::int64_t created = 0;
  std::uint32_t choices = 1, answers_per_prompt = 1;
  std::int32_t logprobs = -1;  // -1: none
  bool show_special = false, include_usage = false;
  const text::Tokenizer* tokenizer = nullptr;
  std::vector<std::string> warnings;
};

// How the answers of a chat are taken apart. Shared by its choices.
struct ChatOptions {
  const text::AnswerFormat* format = nullptr;  // nullptr: all is content
  text::KnownTools tools;
  text::AnswerOptions parse;
  bool shows_reasoning = true;
  bool one_call = false;  // further calls are left out
};

// One request's answer. Not thread-safe. `choice` below: prompt * answers_per_prompt + the event's index.
class Answer {
 public:
  explicit Answer(AnswerOptions options);
  virtual ~Answer() = default;

  // Streaming: the objects to send for an event, in order. The last one for the whole answer is usage(), when asked for.
  virtual void chunks(std::uint32_t choice, const engine::Event& event, std::vector<json::object>& out) = 0;
  // Whole: takes an event; result() after the last.
  virtual void collect(std::uint32_t choice, const engine::Event& event) = 0;
  virtual json::object result() = 0;
  virtual std::size_t result_bytes() const { return 0; }  // about, of an answer that may be long

  bool done() const { return finished_ == options_.choices; }
  bool wants_usage() const { return options_.include_usage; }
  json::object usage_chunk();
  std::uint32_t completion_tokens() const;

 protected:
  struct Count {
    engine::Usage usage;
    bool finished = false;
    engine::SaidTokens said;
  };
  void count(std::uint32_t choice, const engine::Event& event);
  // The tokens whose text has been shown since the last call, so that a list of tokens has none more than the text.
  std::vector<engine::TokenInfo> said(std::uint32_t choice, const engine::Event& event);
  json::object envelope(const char* object, bool chunk);
  json::object usage() const;
  virtual void add_details(json::object& details) const { (void)details; }  // of the usage's completion tokens
  virtual const char* chunk_object() const = 0;

  AnswerOptions options_;
  std::vector<Count> counts_;
  std::uint32_t finished_ = 0;
  bool warned_ = false;
};

std::unique_ptr<Answer> make_chat_answer(AnswerOptions options, ChatOptions chat);
// `echoes`: per prompt, the text shown before the answer (echo), or empty. `prompts`: their tokens, with `echo`.
struct Echo {
  std::string text;
  bool hide_first = false;  // the first token is a BOS that the tokenizer added: it is no part of the text
};
std::unique_ptr<Answer> make_completion_answer(AnswerOptions options, bool echo, std::vector<Echo> echoes);

// "stop" or "length"; null while it runs, and for what the API has no reason for (those end in an error instead).
json::value finish_reason(engine::Finish finish);
json::value logprob_number(float logprob);  // null for NaN; -9999 for minus infinity

}  // namespace mekik::server::openai
