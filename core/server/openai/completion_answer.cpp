// text_completion, streamed or whole, with the older shape of logprobs.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.hpp"
#include "server/openai/answer.hpp"

namespace mekik::server::openai {

namespace {

class CompletionAnswer final : public Answer {
 public:
  CompletionAnswer(AnswerOptions options, bool echo, std::vector<Echo> echoes)
      : Answer{std::move(options)}, echo_{echo}, echoes_{std::move(echoes)}, prompts_(echoes_.size()) {
    choices_.reserve(options_.choices);
    for (std::uint32_t i = 0; i < options_.choices; ++i) choices_.emplace_back(options_.tokenizer, echo_);
  }

  void chunks(std::uint32_t choice, const engine::Event& event, std::vector<json::object>& out) override {
    count(choice, event);
    const Part part = take(choice, event);
    const bool ends = event.finish != engine::Finish::none;
    if (part.text.empty() && part.scores.tokens.empty() && !ends) return;
    json::object chunk = envelope(chunk_object(), true);
    chunk["choices"] = json::array{entry(choice, part.text, part.scores, event.finish)};
    out.push_back(std::move(chunk));
  }

  void collect(std::uint32_t choice, const engine::Event& event) override {
    count(choice, event);
    Part part = take(choice, event);
    Choice& of = choices_[choice];
    of.whole.text += part.text;
    of.whole.scores.append(std::move(part.scores));
    if (event.finish != engine::Finish::none) of.finish = event.finish;
  }

  json::object result() override {
    json::object out = envelope("text_completion", false);
    json::array list;
    for (std::uint32_t i = 0; i < options_.choices; ++i)
      list.push_back(entry(i, choices_[i].whole.text, choices_[i].whole.scores, choices_[i].finish));
    out["choices"] = std::move(list);
    out["usage"] = usage();
    return out;
  }

 private:
  struct Scores {
    json::array tokens, token_logprobs, top_logprobs, text_offset;
    void append(Scores more) {
      for (auto [to, from] : {std::pair{&tokens, &more.tokens}, std::pair{&token_logprobs, &more.token_logprobs},
                              std::pair{&top_logprobs, &more.top_logprobs}, std::pair{&text_offset, &more.text_offset}})
        for (json::value& value : *from) to->push_back(std::move(value));
    }
  };
  struct Part {
    std::string text;
    Scores scores;
  };
  struct Choice {
    Choice(const text::Tokenizer* tokenizer, bool echo) {
      if (tokenizer != nullptr) detokenizer = std::make_unique<text::Detokenizer>(*tokenizer, true, echo);
    }
    std::unique_ptr<text::Detokenizer> detokenizer;  // gives each token the text that it completes, so that tokens join to the text
    std::size_t offset = 0;                          // code points before the next token
    std::size_t text_bytes = 0, token_bytes = 0;     // of the text so far, and of the texts of the tokens listed so far
    bool begun = false;
    Part whole;
    engine::Finish finish = engine::Finish::none;
  };

  const char* chunk_object() const override { return "text_completion"; }

  // Echo comes with the first event of a choice; only one answer of a prompt brings the prompt's scores, so they are kept.
  Part take(std::uint32_t choice, const engine::Event& event) {
    Choice& of = choices_[choice];
    const std::uint32_t prompt = choice / options_.answers_per_prompt;
    if (echo_ && !event.prompt.empty()) prompts_[prompt] = event.prompt;
    Part part;
    if (echo_ && !of.begun) {
      part.text = echoes_[prompt].text;
      bool hidden = echoes_[prompt].hide_first;
      if (options_.logprobs >= 0)
        for (const engine::TokenInfo& token : prompts_[prompt]) {
          add(of, token, hidden, part.scores);
          hidden = false;
        }
      else of.offset = utf8_length(part.text);
    }
    of.begun = true;
    part.text += event.text;
    of.text_bytes += part.text.size();
    if (options_.logprobs >= 0) add_answer(choice, event, part.scores);
    return part;
  }

  void add_answer(std::uint32_t choice, const engine::Event& event, Scores& to) {
    const std::vector<engine::TokenInfo> tokens = said(choice, event);
    for (const engine::TokenInfo& token : tokens) {
      const bool last = event.finish != engine::Finish::none && &token == &tokens.back();
      add(choices_[choice], token, is_special(token.id) && !options_.show_special, to, last);
    }
  }

  bool known(std::int32_t id) const {
    return options_.tokenizer != nullptr && id >= 0 && static_cast<std::uint32_t>(id) < options_.tokenizer->size();
  }
  bool is_special(std::int32_t id) const { return known(id) && (options_.tokenizer->flags(id) & text::kTokenSpecial) != 0; }

  // A token on its own; a part of a character is spelled as OpenAI does it, "bytes:\xf0\x9f", so that two never look the same.
  std::string alone(std::int32_t id) const {
    if (!known(id)) return "token_id:" + std::to_string(id);
    const std::string_view bytes = is_special(id) ? options_.tokenizer->token(id) : options_.tokenizer->piece(id);
    if (is_utf8(bytes)) return std::string{bytes};
    std::string out = "bytes:";
    for (const char c : bytes) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += hex;
    }
    return out;
  }

  // `last`: of the answer. It gets what a cut character became, and only so much as the text has: a stop string can begin inside it.
  void add(Choice& of, const engine::TokenInfo& token, bool hidden, Scores& to, bool last = false) {
    std::string text = hidden || !known(token.id) ? std::string{} : of.detokenizer->push(token.id);
    if (last && of.detokenizer != nullptr) text += of.detokenizer->finish();
    if (last && of.token_bytes + text.size() > of.text_bytes) text.resize(of.text_bytes - std::min(of.text_bytes, of.token_bytes));
    of.token_bytes += text.size();
    to.tokens.emplace_back(text);
    to.token_logprobs.push_back(logprob_number(token.logprob));
    to.text_offset.emplace_back(of.offset);
    of.offset += utf8_length(text);
    json::value top = nullptr;
    if (!std::isnan(token.logprob)) {
      json::object by_text;
      // The chosen token is always there, under the text that it has in `tokens`.
      const std::string own = text.empty() ? alone(token.id) : text;
      by_text[own] = logprob_number(token.logprob);
      for (const engine::TokenLogprob& other : token.top)
        if (other.id != token.id) by_text.emplace(unused_key(by_text, other.id), logprob_number(other.logprob));
      top = std::move(by_text);
    }
    to.top_logprobs.push_back(std::move(top));
  }

  // Two tokens may spell the same text; none may hide the other.
  std::string unused_key(const json::object& taken, std::int32_t id) const {
    std::string key = alone(id);
    return taken.contains(key) ? "token_id:" + std::to_string(id) : key;
  }

  json::object entry(std::uint32_t choice, const std::string& text, const Scores& scores, engine::Finish finish) const {
    json::object out;
    out["index"] = choice;
    out["text"] = text;
    out["logprobs"] = nullptr;
    if (options_.logprobs >= 0)
      out["logprobs"] = json::object{{"tokens", scores.tokens},
                                     {"token_logprobs", scores.token_logprobs},
                                     {"top_logprobs", scores.top_logprobs},
                                     {"text_offset", scores.text_offset}};
    out["finish_reason"] = finish_reason(finish);
    return out;
  }

  bool echo_;
  std::vector<Echo> echoes_;
  std::vector<std::vector<engine::TokenInfo>> prompts_;
  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<Answer> make_completion_answer(AnswerOptions options, bool echo, std::vector<Echo> echoes) {
  return std::make_unique<CompletionAnswer>(std::move(options), echo, std::move(echoes));
}

}  // namespace mekik::server::openai
