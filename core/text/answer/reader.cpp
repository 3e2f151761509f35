#include "text/answer/reader.hpp"

namespace mekik::text {

AnswerReader::AnswerReader(const Tokenizer& tokenizer, const AnswerFormat& format, const KnownTools& tools, const AnswerOptions& options)
    : tokenizer_{tokenizer}, show_special_{options.show_special}, parser_{format, tools, options} {
  detokenizer_.emplace(tokenizer_, true);
}

void AnswerReader::give(std::string_view text, bool special, std::vector<AnswerPiece>& out) {
  given_ += text.size();
  if (!special || show_special_) visible_ += text.size();
  if (!text.empty()) parser_.push(text, special, out);
}

AnswerReader::Token AnswerReader::push(std::int32_t id, bool last, std::size_t visible, std::vector<AnswerPiece>& out) {
  Token token{given_, given_, false};
  if (id < 0 || static_cast<std::uint32_t>(id) >= tokenizer_.size()) return token;  // the logits are padded beyond the vocabulary
  const bool before = parser_.reasoning();
  std::string text;
  if ((tokenizer_.flags(id) & kTokenSpecial) != 0) {
    give(detokenizer_->finish(), false, out);  // a character that was not whole stays so
    detokenizer_.emplace(tokenizer_, true);
    token.begin = given_;
    give(tokenizer_.token(id), true, out);
  } else {
    text = detokenizer_->push(id);
    if (last) text += detokenizer_->finish();
    if (last && visible_ + text.size() > visible) {
      text.resize(visible - std::min(visible, visible_));
      token.cut = true;
    }
    give(text, false, out);
  }
  token.end = given_;
  if (before || parser_.reasoning()) ++reasoning_tokens_;
  return token;
}

}  // namespace mekik::text
