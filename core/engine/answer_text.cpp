#include "engine/answer_text.hpp"

namespace mekik::engine {

AnswerText::AnswerText(const text::Tokenizer* tokenizer, std::vector<std::string> stops, bool show_special)
    : tokenizer_{tokenizer}, show_special_{show_special}, matcher_{std::move(stops)} {
  if (tokenizer_ != nullptr) detokenizer_.emplace(*tokenizer_, true);
}

std::string AnswerText::push(std::int32_t id) {
  ++pushed_;
  if (!detokenizer_ || matcher_.stopped()) return {};
  if (static_cast<std::uint32_t>(id) >= tokenizer_->size()) return {};  // the logits are padded beyond the vocabulary
  if (show_special_ || (tokenizer_->flags(id) & text::kTokenSpecial) == 0) {
    const std::size_t begin = given_;
    std::string out = give(detokenizer_->push(id), true);
    spans_.push_back({begin, given_});
    return settle(std::move(out));
  }
  std::string out = give(detokenizer_->finish(), true);
  detokenizer_.emplace(*tokenizer_, true);
  spans_.push_back({given_, given_});
  if (!matcher_.stopped()) out += give(std::string{tokenizer_->token(id)}, false);
  return settle(std::move(out));
}

std::string AnswerText::finish() {
  if (!detokenizer_) return {};
  std::string out;
  if (!matcher_.stopped()) out = give(detokenizer_->finish(), true);
  if (!matcher_.stopped()) {
    out += matcher_.finish();
    spans_.clear();
    return out;
  }
  out = settle(std::move(out));
  while (!spans_.empty() && spans_.front().begin < shown_) spans_.pop_front();  // a stop string can begin inside a token
  return out;
}

std::string AnswerText::give(std::string text, bool visible) {
  if (visible) given_ += text.size();
  return matcher_.push(text, visible);
}

// A token is said when its text has come out whole; a part of a character, or a hidden token, when something behind it has.
std::string AnswerText::settle(std::string out) {
  shown_ += out.size();
  while (!spans_.empty() && spans_.front().begin < shown_ && spans_.front().end <= shown_) spans_.pop_front();
  return out;
}

}  // namespace mekik::engine
