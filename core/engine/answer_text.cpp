#include "engine/answer_text.hpp"

namespace mekik::engine {

AnswerText::AnswerText(const text::Tokenizer* tokenizer, std::vector<std::string> stops, bool show_special)
    : tokenizer_{tokenizer}, show_special_{show_special}, matcher_{std::move(stops)} {
  if (tokenizer_ != nullptr) detokenizer_.emplace(*tokenizer_, true);
}

std::string AnswerText::push(std::int32_t id) {
  if (!detokenizer_ || matcher_.stopped()) return {};
  if (static_cast<std::uint32_t>(id) >= tokenizer_->size()) return {};  // the logits are padded beyond the vocabulary
  if (show_special_ || (tokenizer_->flags(id) & text::kTokenSpecial) == 0) return matcher_.push(detokenizer_->push(id), true);
  std::string out = matcher_.push(detokenizer_->finish(), true);
  detokenizer_.emplace(*tokenizer_, true);
  if (!matcher_.stopped()) out += matcher_.push(tokenizer_->token(id), false);
  return out;
}

std::string AnswerText::finish() {
  if (!detokenizer_ || matcher_.stopped()) return {};
  std::string out = matcher_.push(detokenizer_->finish(), true);
  if (!matcher_.stopped()) out += matcher_.finish();
  return out;
}

}  // namespace mekik::engine
