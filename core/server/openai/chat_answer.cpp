// chat.completion and chat.completion.chunk.
#include <set>

#include "base/text.hpp"
#include "server/openai/answer.hpp"
#include "server/openai/chat_logprobs.hpp"

namespace mekik::server::openai {

namespace {

using text::AnswerPiece;

const text::AnswerFormat& no_format() {
  static const text::AnswerFormat none;
  return none;
}

// One answer on its way: what its events turned into so far.
struct Choice {
  Choice(const AnswerOptions& options, const ChatOptions& chat) {
    if (options.tokenizer == nullptr) return;
    reader.emplace(*options.tokenizer, chat.format != nullptr ? *chat.format : no_format(), chat.tools, chat.parse);
    if (options.logprobs >= 0) logprobs.emplace(*options.tokenizer, options.show_special);
  }
  std::optional<text::AnswerReader> reader;
  std::optional<ChatLogprobs> logprobs;
  std::size_t visible = 0;  // bytes of text in the events so far
  std::size_t calls = 0;
  std::string content, reasoning;  // whole answers
  json::array scores, tool_calls;
  engine::Finish finish = engine::Finish::none;
  bool begun = false;
};

class ChatAnswer final : public Answer {
 public:
  ChatAnswer(AnswerOptions options, ChatOptions chat) : Answer{std::move(options)}, chat_{std::move(chat)} {
    for (std::uint32_t i = 0; i < options_.choices; ++i) choices_.emplace_back(options_, chat_);
  }

  void chunks(std::uint32_t choice, const engine::Event& event, std::vector<json::object>& out) override {
    count(choice, event);
    Choice& of = choices_[choice];
    if (!of.begun) {
      of.begun = true;
      out.push_back(chunk(choice, json::object{{"role", "assistant"}, {"content", ""}}, nullptr, nullptr));
    }
    const std::vector<AnswerPiece> pieces = take(choice, event);
    json::value logprobs = scores(of, event);
    for (std::size_t i = 0; i < pieces.size();) {
      json::object delta = this->delta(choice, pieces, i);
      if (delta.empty()) continue;
      const bool content = delta.contains("content");
      out.push_back(chunk(choice, std::move(delta), content ? std::move(logprobs) : json::value{}, nullptr));
      if (content) logprobs = nullptr;
    }
    if (!logprobs.is_null()) out.push_back(chunk(choice, json::object{{"content", std::string{}}}, std::move(logprobs), nullptr));
    if (event.finish != engine::Finish::none) out.push_back(chunk(choice, json::object{}, nullptr, reason(of, event.finish)));
  }

  void collect(std::uint32_t choice, const engine::Event& event) override {
    count(choice, event);
    Choice& of = choices_[choice];
    for (AnswerPiece& piece : take(choice, event)) {
      if (piece.kind == AnswerPiece::content) of.content += piece.text;
      else if (piece.kind == AnswerPiece::reasoning) of.reasoning += piece.text;
      else if (piece.kind == AnswerPiece::call) of.tool_calls.push_back(call(choice, piece));
      else
        of.tool_calls.at(piece.number).as_object().at("function").as_object().at("arguments").as_string() += std::string_view{piece.text};
    }
    if (json::value list = scores(of, event); list.is_object())
      for (json::value& score : list.as_object().at("content").as_array()) of.scores.push_back(std::move(score));
    if (event.finish != engine::Finish::none) of.finish = event.finish;
  }

  json::object result() override {
    json::object out = envelope("chat.completion", false);
    json::array list;
    for (std::uint32_t i = 0; i < options_.choices; ++i) {
      Choice& of = choices_[i];
      json::object entry;
      entry["index"] = i;
      entry["message"] = message(of);
      entry["logprobs"] = nullptr;
      if (options_.logprobs >= 0) entry["logprobs"] = json::object{{"content", std::move(of.scores)}, {"refusal", nullptr}};
      entry["finish_reason"] = reason(of, of.finish);
      list.push_back(std::move(entry));
    }
    out["choices"] = std::move(list);
    out["usage"] = usage();
    return out;
  }

 private:
  const char* chunk_object() const override { return "chat.completion.chunk"; }

  void add_details(json::object& details) const override {
    std::uint64_t reasoning = 0;
    for (const Choice& of : choices_)
      if (of.reader) reasoning += of.reader->reasoning_tokens();
    details["reasoning_tokens"] = reasoning;
  }

  static json::value reason(const Choice& of, engine::Finish finish) {
    if (finish == engine::Finish::stop && of.calls > 0) return "tool_calls";
    return finish_reason(finish);
  }

  static json::object message(Choice& of) {
    json::object out{{"role", "assistant"}, {"content", of.content}, {"refusal", nullptr}};
    if (of.content.empty() && !of.tool_calls.empty()) out["content"] = nullptr;
    if (!of.reasoning.empty()) {
      out["reasoning_content"] = of.reasoning;
      out["reasoning"] = std::move(of.reasoning);
    }
    if (!of.tool_calls.empty()) out["tool_calls"] = std::move(of.tool_calls);
    return out;
  }

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

  // What the event brings, without what the request did not want.
  std::vector<AnswerPiece> take(std::uint32_t choice, const engine::Event& event) {
    Choice& of = choices_[choice];
    std::vector<AnswerPiece> pieces;
    if (!of.reader) return pieces;
    of.visible += event.text.size();
    const std::vector<engine::TokenInfo> tokens = said(choice, event);
    const bool over = event.finish != engine::Finish::none;
    for (const engine::TokenInfo& token : tokens) {
      const auto place = of.reader->push(token.id, over && &token == &tokens.back(), of.visible, pieces);
      if (of.logprobs) of.logprobs->add(token, place);
    }
    if (over) of.reader->finish(pieces);
    for (const AnswerPiece& piece : pieces)
      if (of.logprobs && piece.kind == AnswerPiece::content) of.logprobs->add_content(piece);
    std::erase_if(pieces, [this](const AnswerPiece& piece) {
      if (piece.kind == AnswerPiece::reasoning) return !chat_.shows_reasoning || piece.text.empty();
      if (piece.kind == AnswerPiece::content) return piece.text.empty();
      return chat_.one_call && piece.number > 0;
    });
    for (const AnswerPiece& piece : pieces)
      if (piece.kind == AnswerPiece::call) ++of.calls;
    return pieces;
  }

  json::value scores(Choice& of, const engine::Event& event) {
    if (!of.logprobs) return nullptr;
    json::array list = of.logprobs->take(of.reader->parser().decided(), event.finish != engine::Finish::none);
    if (list.empty()) return nullptr;
    return json::object{{"content", std::move(list)}, {"refusal", nullptr}};
  }

  // The pieces from `i` on that make one delta: those of one kind.
  json::object delta(std::uint32_t choice, const std::vector<AnswerPiece>& pieces, std::size_t& i) {
    const AnswerPiece& first = pieces[i++];
    if (first.kind == AnswerPiece::call) {
      json::object begun = call(choice, first);
      json::object entry{{"index", first.number}};
      for (auto& member : begun) entry[member.key()] = std::move(member.value());
      return {{"tool_calls", json::array{std::move(entry)}}};
    }
    std::string text = first.text;
    for (; i < pieces.size() && pieces[i].kind == first.kind && pieces[i].number == first.number; ++i) text += pieces[i].text;
    if (first.kind == AnswerPiece::content) return {{"content", text}};
    if (first.kind == AnswerPiece::reasoning) return {{"reasoning_content", text}, {"reasoning", text}};
    return {{"tool_calls", json::array{json::object{{"index", first.number}, {"function", json::object{{"arguments", text}}}}}}};
  }

  json::object call(std::uint32_t choice, const AnswerPiece& piece) {
    return {{"id", call_id(choice, piece)}, {"type", "function"}, {"function", json::object{{"name", piece.text}, {"arguments", ""}}}};
  }

  // The model's own, if it is one; a number alone may be in every answer.
  std::string call_id(std::uint32_t choice, const AnswerPiece& piece) {
    const bool short_ids = chat_.format != nullptr && chat_.format->short_ids;
    const bool number = piece.id.find_first_not_of("0123456789") == std::string::npos;
    if (!number && (!short_ids || piece.id.size() == 9) && ids_.insert(piece.id).second) return piece.id;
    const std::string seed = options_.id + "/" + std::to_string(choice) + "/" + std::to_string(piece.number);
    std::string id = sha256_hex(seed).substr(0, short_ids ? 9 : 24);
    if (!short_ids) id.insert(0, "call_");
    ids_.insert(id);
    return id;
  }

  ChatOptions chat_;
  std::vector<Choice> choices_;
  std::set<std::string> ids_;
};

}  // namespace

std::unique_ptr<Answer> make_chat_answer(AnswerOptions options, ChatOptions chat) {
  return std::make_unique<ChatAnswer>(std::move(options), std::move(chat));
}

}  // namespace mekik::server::openai
