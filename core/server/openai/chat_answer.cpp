// chat.completion and chat.completion.chunk.
#include <algorithm>

#include "base/text.hpp"
#include "server/openai/answer.hpp"

namespace mekik::server::openai {

namespace {

class ChatAnswer final : public Answer {
 public:
  explicit ChatAnswer(AnswerOptions options) : Answer{std::move(options)}, choices_(options_.choices) {}

  void chunks(std::uint32_t choice, const engine::Event& event, std::vector<json::object>& out) override {
    count(choice, event);
    if (!choices_[choice].begun) {
      choices_[choice].begun = true;
      out.push_back(chunk(choice, json::object{{"role", "assistant"}, {"content", ""}}, nullptr, nullptr));
    }
    json::array list = options_.logprobs >= 0 ? scores(choice, event) : json::array{};
    if (!event.text.empty() || !list.empty()) {
      json::value logprobs = nullptr;
      if (!list.empty()) logprobs = json::object{{"content", std::move(list)}, {"refusal", nullptr}};
      out.push_back(chunk(choice, json::object{{"content", event.text}}, std::move(logprobs), nullptr));
    }
    if (event.finish != engine::Finish::none) out.push_back(chunk(choice, json::object{}, nullptr, finish_reason(event.finish)));
  }

  void collect(std::uint32_t choice, const engine::Event& event) override {
    count(choice, event);
    Choice& of = choices_[choice];
    of.text += event.text;
    if (options_.logprobs >= 0)
      for (json::value& score : scores(choice, event)) of.scores.push_back(std::move(score));
    if (event.finish != engine::Finish::none) of.finish = event.finish;
  }

  json::object result() override {
    json::object out = envelope("chat.completion", false);
    json::array list;
    for (std::uint32_t i = 0; i < options_.choices; ++i) {
      Choice& of = choices_[i];
      json::object entry;
      entry["index"] = i;
      entry["message"] = json::object{{"role", "assistant"}, {"content", of.text}, {"refusal", nullptr}};
      entry["logprobs"] = nullptr;
      if (options_.logprobs >= 0) entry["logprobs"] = json::object{{"content", std::move(of.scores)}, {"refusal", nullptr}};
      entry["finish_reason"] = finish_reason(of.finish);
      list.push_back(std::move(entry));
    }
    out["choices"] = std::move(list);
    out["usage"] = usage();
    return out;
  }

 private:
  struct Choice {
    std::string text;
    json::array scores;
    engine::Finish finish = engine::Finish::none;
    bool begun = false;
    std::size_t text_bytes = 0, token_bytes = 0;  // of the text so far, and of the tokens listed so far
  };

  const char* chunk_object() const override { return "chat.completion.chunk"; }

  json::object chunk(std::uint32_t choice, json::object delta, json::value logprobs, json::value finish) {
    json::object out = envelope(chunk_object(), true);
    json::object entry;
    entry["index"] = choice;
    entry["delta"] = std::move(delta);
    entry["logprobs"] = std::move(logprobs);
    entry["finish_reason"] = std::move(finish);
    out["choices"] = json::array{std::move(entry)};
    return out;
  }

  // token, logprob, bytes. A special token that the text does not show has no bytes, and one inside which a stop string begins only
  // those before it (`most`), so that the bytes always join to the content.
  json::object entry(std::int32_t id, float logprob, std::size_t most = SIZE_MAX) const {
    json::object out;
    const text::Tokenizer* tokenizer = options_.tokenizer;
    const bool known = tokenizer != nullptr && id >= 0 && static_cast<std::uint32_t>(id) < tokenizer->size();
    const bool special = known && (tokenizer->flags(id) & text::kTokenSpecial) != 0;
    const std::string_view bytes = !known ? std::string_view{} : special ? tokenizer->token(id) : tokenizer->piece(id);
    out["token"] = utf8_replace_invalid(bytes);
    out["logprob"] = logprob_number(logprob);
    out["bytes"] = nullptr;
    if (known && (!special || options_.show_special)) {
      json::array list;
      for (const char c : bytes.substr(0, most)) list.emplace_back(static_cast<unsigned>(static_cast<unsigned char>(c)));
      out["bytes"] = std::move(list);
    }
    return out;
  }

  json::array scores(std::uint32_t choice, const engine::Event& event) {
    Choice& counts = choices_[choice];
    counts.text_bytes += event.text.size();
    json::array out;
    const std::vector<engine::TokenInfo> tokens = said(choice, event);
    for (const engine::TokenInfo& token : tokens) {
      const bool last = event.finish != engine::Finish::none && &token == &tokens.back();
      json::object of =
          entry(token.id, token.logprob, last ? counts.text_bytes - std::min(counts.text_bytes, counts.token_bytes) : SIZE_MAX);
      if (const json::array* bytes = of["bytes"].if_array()) counts.token_bytes += bytes->size();
      json::array top;
      for (const engine::TokenLogprob& other : token.top) top.push_back(entry(other.id, other.logprob));
      of["top_logprobs"] = std::move(top);
      out.push_back(std::move(of));
    }
    return out;
  }

  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<Answer> make_chat_answer(AnswerOptions options) { return std::make_unique<ChatAnswer>(std::move(options)); }

}  // namespace mekik::server::openai
