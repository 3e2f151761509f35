#include "text/tokenizer.hpp"

#include "base/text.hpp"
#include "text/hf/files.hpp"
#include "text/tokenizer_base.hpp"

namespace mekik::text {

namespace {

constexpr std::string_view kModelKey = "tokenizer.ggml.model";

Result<std::unique_ptr<Tokenizer>> create_by_kind(const json::value& metadata) {
  const json::object* object = metadata.if_object();
  if (object == nullptr) return invalid("the model has no tokenizer metadata");
  if (const json::value* files = object->if_contains("hf"); files != nullptr) return hf::create(*files);
  MEKIK_TRY(model, optional_text(*object, kModelKey));
  if (model == "gpt2") return create_byte_level_bpe(*object);
  if (model == "llama") return create_sentencepiece_bpe(*object);
  if (model == "t5") return create_sentencepiece_unigram(*object);
  if (model == "bert") return create_wordpiece(*object);
  if (model == "gemma4") return create_spaced_bpe(*object);
  if (model.empty()) return invalid(std::string{kModelKey} + " is missing");
  return unsupported(std::string{kModelKey} + " = " + quoted(model) +
                     " is not supported; supported are \"gpt2\" (byte-level BPE), \"llama\" (SentencePiece BPE), \"t5\" "
                     "(SentencePiece Unigram), \"bert\" (WordPiece) and \"gemma4\" (BPE over UTF-8)");
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(const json::value& metadata) try {
  return create_by_kind(metadata);
} catch (const TextRefused& refused) {  // of the vocabulary's own texts
  return unsupported(refused.what());
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool add_special, bool parse_special) const {
  const TextPart part{std::string{text}, parse_special};
  return encode(std::span{&part, 1}, add_special);
}

TypedTokens Tokenizer::encode_typed(std::string_view text, bool add_special) const {
  TypedTokens tokens;
  tokens.ids = encode(text, add_special, false);
  tokens.types.assign(tokens.ids.size(), 0);
  return tokens;
}

TypedTokens Tokenizer::encode_pair(std::string_view first, std::string_view second) const {
  TypedTokens tokens = encode_typed(first, false);
  const TypedTokens other = encode_typed(second, false);
  tokens.ids.insert(tokens.ids.end(), other.ids.begin(), other.ids.end());
  tokens.types.insert(tokens.types.end(), other.types.begin(), other.types.end());
  return tokens;
}

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool special, bool at_start)
    : tokenizer_(&tokenizer), special_(special), at_start_(at_start && tokenizer.adds_space_prefix()) {}

std::string Detokenizer::push(std::int32_t id) {
  const bool is_special = (tokenizer_->flags(id) & kTokenSpecial) != 0;
  if (is_special && !special_) return {};
  std::string_view piece = tokenizer_->piece(id);
  if (at_start_ && !is_special && !piece.empty()) {
    at_start_ = false;
    if (piece.front() == ' ') piece.remove_prefix(1);
  }
  pending_ += piece;
  const std::size_t complete = utf8_complete_prefix(pending_);
  std::string text = utf8_replace_invalid(std::string_view{pending_}.substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

std::string Detokenizer::finish() {
  std::string text = utf8_replace_invalid(pending_);
  pending_.clear();
  return text;
}

}  // namespace mekik::text
