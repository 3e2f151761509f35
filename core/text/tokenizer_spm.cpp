// SentencePiece BPE (Llama 2, Gemma): the best-scored pair of neighbours merges first; what the vocabulary lacks becomes bytes.
// Inside, U+2581 (the vocabulary's sign for a space) is a space everywhere, in tokens and in text: SentencePiece cannot tell them
// apart either, and pieces are then the text that they stand for.
#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <unordered_map>

#include "base/log.hpp"
#include "base/text.hpp"
#include "text/tokenizer_sentencepiece.hpp"

namespace mekik::text {

namespace {

// Lower is better: the order of floats turned round, as integers.
std::uint32_t priority_of(float score) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(score + 0.0f);  // -0 is 0
  return ~((bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u);
}

class SentencePieceBpe final : public VocabularyTokenizer {
 public:
  SentencePieceBpe(Vocabulary vocabulary, StringTable pieces, SentencePieceOptions options)
      : VocabularyTokenizer(std::move(vocabulary), std::move(pieces), !options.whole_user_defined), options_(std::move(options)) {
    of_byte_.fill(-1);
    by_piece_.reserve(size());
    // A run of spaces may be there twice, spelled with spaces by the authors and with U+2581 by training; the latter merges.
    index([](TokenType type) { return type == TokenType::normal || type == TokenType::undefined || type == TokenType::unused; });
    index([](TokenType type) { return type == TokenType::user_defined; });
    for (std::size_t i = 0; i < size(); ++i)
      if (this->vocabulary().types[i] == TokenType::byte)
        of_byte_[static_cast<unsigned char>(this->pieces()[i][0])] = static_cast<std::int32_t>(i);
    if (missing_bytes() != 0 && this->vocabulary().unknown < 0)
      log::warning("tokenizer",
                   "the vocabulary has neither a token for every byte nor tokenizer.ggml.unknown_token_id; text loses "
                   "characters that are not in it");
    if (options_.rules) normalizer_.emplace(std::move(*options_.rules), user_defined_raw(this->vocabulary(), options_));
    if (options_.whole_user_defined) user_defined_ = hf::PrefixTrie{user_defined_normal(this->vocabulary(), this->pieces(), options_)};
  }

  std::string kind() const override { return "sentencepiece bpe"; }
  // Whatever the rules of a normalizer take away is not known, nor how many unknown characters are one token.
  std::size_t fewest_tokens(std::string_view text) const override {
    constexpr std::size_t kSign = 3;  // bytes of U+2581, which is a space
    const bool keeps = missing_bytes() == 0 || (vocabulary().unknown >= 0 && !options_.fuse_unknown);
    return normalizer_ || !keeps ? 0 : fewest_tokens_of(text, std::bitset<256>{}.set(), longest_piece() * kSign);
  }

 private:
  // For tokens made of merges whose own type says that they must not appear: where they came apart.
  using Splits = std::unordered_map<std::int32_t, std::uint32_t>;

  template <class Wanted>
  void index(const Wanted& wanted) {
    for (std::size_t i = 0; i < size(); ++i) {
      const std::string_view piece = pieces()[i];
      if (!wanted(vocabulary().types[i]) || piece.empty()) continue;
      if (options_.whole_user_defined && is_spelled_with_spaces(vocabulary(), i)) continue;
      by_piece_.add(pieces(), static_cast<std::int32_t>(i));
      longest_ = std::max(longest_, piece.size());
      for (std::size_t at = piece.find(' ', 1); at != std::string_view::npos; at = piece.find(' ', at + 1))
        joins_space_.set(static_cast<unsigned char>(piece[at - 1]));
    }
  }

  std::size_t missing_bytes() const { return static_cast<std::size_t>(std::count(of_byte_.begin(), of_byte_.end(), -1)); }

  std::string prepared(std::string_view text) const override { return normalizer_ ? std::string{text} : with_spaces(text); }

  void encode_run(std::string_view text, RunPlace place, std::vector<std::int32_t>& ids, MergeScratch& scratch) const override {
    std::string prefixed;
    if (normalizer_) text = prefixed = normalizer_->run(text, options_.prefixed(place));
    else if (adds_space_prefix() && options_.prefixed(place)) text = prefixed.append(" ").append(text);
    bool unknown = false;
    std::size_t begin = 0;
    for (std::size_t at = 0; options_.whole_user_defined && at < text.size();) {
      std::size_t length = 0;
      std::int32_t id = -1;
      user_defined_.prefixes(text.substr(at), [&](std::size_t n, std::int32_t found) { length = n, id = found; });
      if (id < 0) {
        at += character_length(text, at);
        continue;
      }
      if (at > begin) encode_words(text.substr(begin, at - begin), unknown, ids, scratch);
      ids.push_back(id);
      unknown = false;
      begin = at += length;
    }
    if (begin < text.size()) encode_words(text.substr(begin), unknown, ids, scratch);
  }

  // `unknown`: the last id is the unknown token, which the next unknown character joins where the family does so.
  void encode_words(std::string_view text, bool& unknown, std::vector<std::int32_t>& ids, MergeScratch& scratch) const {
    // No token holds this byte followed by a space: no merge crosses the place, so that words can be merged one by one.
    const auto merge = [&](std::string_view word) {
      const std::size_t before = ids.size();
      scratch.words.encode(word, ids, [&] { encode_word(word, ids, scratch); });
      if (!options_.fuse_unknown || ids.size() == before) return;
      if (unknown && ids[before] == vocabulary().unknown) ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(before));
      unknown = ids.back() == vocabulary().unknown;
    };
    std::size_t begin = 0;
    for (std::size_t at = text.find(' ', 1); at != std::string_view::npos; at = text.find(' ', at + 1)) {
      if (joins_space_[static_cast<unsigned char>(text[at - 1])]) continue;
      merge(text.substr(begin, at - begin));
      begin = at;
    }
    merge(text.substr(begin));
  }

  void encode_word(std::string_view word, std::vector<std::int32_t>& ids, MergeScratch& scratch) const {
    Splits splits;
    scratch.symbols.clear();
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t length = character_length(word, at);
      scratch.symbols.push_back(
          {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length), by_piece_.find(pieces(), word.substr(at, length))});
      at += length;
    }
    merge_symbols(scratch, [&](const Symbol& left, const Symbol& right) -> Merge {
      const std::size_t length = left.length + right.length;
      if (length > longest_) return {};
      const std::int32_t id = by_piece_.find(pieces(), word.substr(left.begin, length));
      if (id < 0) return {};
      if (vocabulary().type(id) == TokenType::unused) splits[id] = left.length;
      return {priority_of(vocabulary().scores[static_cast<std::size_t>(id)]), id};
    });
    const std::size_t first = ids.size();
    for (const Symbol& symbol : scratch.symbols) emit(word.substr(symbol.begin, symbol.length), symbol.id, splits, first, ids);
  }

  void emit(std::string_view text, std::int32_t id, const Splits& splits, std::size_t first, std::vector<std::int32_t>& ids) const {
    std::vector<std::string_view> rest;  // of an unused token taken apart, last first
    for (;;) {
      const auto split = id < 0 || splits.empty() ? splits.end() : splits.find(id);
      if (split != splits.end()) {
        rest.push_back(text.substr(split->second));
        text = text.substr(0, split->second);
      } else {
        if (id >= 0) ids.push_back(id);
        else emit_bytes(text, ids.size() > first && ids.back() == vocabulary().unknown, ids);
        if (rest.empty()) return;
        text = rest.back();
        rest.pop_back();
      }
      id = by_piece_.find(pieces(), text);
    }
  }

  void emit_bytes(std::string_view text, bool fuse, std::vector<std::int32_t>& ids) const {
    bool whole = true;
    for (const char c : text) whole = whole && of_byte_[static_cast<unsigned char>(c)] >= 0;
    if (whole)
      for (const char c : text) ids.push_back(of_byte_[static_cast<unsigned char>(c)]);
    else if (vocabulary().unknown >= 0 && !(fuse && options_.fuse_unknown)) ids.push_back(vocabulary().unknown);
  }

  SentencePieceOptions options_;
  std::optional<SpmNormalizer> normalizer_;
  hf::PrefixTrie user_defined_;
  TextIndex by_piece_;
  std::size_t longest_ = 0;
  std::bitset<256> joins_space_;  // bytes that some token has right before a space
  std::array<std::int32_t, 256> of_byte_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece_bpe(Vocabulary vocabulary, SentencePieceOptions options) {
  StringTable pieces = sentencepiece_pieces(vocabulary);
  return std::make_unique<SentencePieceBpe>(std::move(vocabulary), std::move(pieces), std::move(options));
}

Result<std::unique_ptr<Tokenizer>> create_sentencepiece_bpe(const json::object& metadata) {
  MEKIK_TRY(vocabulary, read_vocabulary(metadata, {.add_bos = true, .add_space_prefix = true, .needs_scores = true}));
  SentencePieceOptions options;
  MEKIK_TRY(rules, read_spm_rules(metadata, vocabulary.add_space_prefix));
  if (rules.remove_extra_spaces || rules.charsmap) options.rules = std::move(rules);
  return make_sentencepiece_bpe(std::move(vocabulary), std::move(options));
}

}  // namespace mekik::text
