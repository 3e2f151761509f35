// SentencePiece Unigram (T5, XLM-R): the pieces of the largest sum of scores.
#include <algorithm>
#include <array>
#include <limits>

#include "text/hf/unigram.hpp"
#include "text/tokenizer_sentencepiece.hpp"

namespace mekik::text {

namespace {

using Lattice = hf::UnigramLattice<float>;

hf::PrefixTrie trie_of(const Vocabulary& vocabulary, const StringTable& pieces) {
  std::vector<hf::PrefixTrie::Entry> entries;
  for (std::size_t i = vocabulary.size(); i-- > 0;)
    if (vocabulary.types[i] == TokenType::normal ||
        (vocabulary.types[i] == TokenType::user_defined && !is_spelled_with_spaces(vocabulary, i)))
      entries.emplace_back(pieces[i], static_cast<std::int32_t>(i));
  return hf::PrefixTrie{std::move(entries)};
}

float least_score(const Vocabulary& vocabulary) {
  float least = std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < vocabulary.size(); ++i)
    if (vocabulary.types[i] == TokenType::normal) least = std::min(least, vocabulary.scores[i]);
  return least == std::numeric_limits<float>::max() ? 0 : least;
}

class SentencePieceUnigram final : public VocabularyTokenizer {
 public:
  SentencePieceUnigram(Vocabulary vocabulary, StringTable pieces, SentencePieceOptions options)
      : VocabularyTokenizer(std::move(vocabulary), std::move(pieces), !options.whole_user_defined),
        options_(std::move(options)),
        normalizer_(std::move(*options_.rules), user_defined_raw(this->vocabulary(), options_)),
        lattice_(trie_of(this->vocabulary(), this->pieces()), least_score(this->vocabulary()) - 10.0f, this->vocabulary().unknown) {
    of_byte_.fill(-1);
    for (std::size_t i = 0; i < size(); ++i)
      if (this->vocabulary().types[i] == TokenType::byte)
        of_byte_[static_cast<unsigned char>(this->pieces()[i][0])] = static_cast<std::int32_t>(i);
    all_bytes_ = std::none_of(of_byte_.begin(), of_byte_.end(), [](std::int32_t id) { return id < 0; });
  }

  std::string kind() const override { return "sentencepiece unigram"; }

 private:
  void encode_run(std::string_view text, RunPlace place, std::vector<std::int32_t>& ids, MergeScratch&) const override {
    const std::string normal = normalizer_.run(text, options_.prefixed(place));
    Lattice::Scratch scratch;
    lattice_.encode(
        normal, [this](std::int32_t id, std::size_t) { return score(id); }, scratch);
    for (const hf::UnigramPiece& piece : scratch.pieces) {
      if (!piece.unknown) ids.push_back(piece.id);
      else if (all_bytes_)
        for (std::uint32_t i = piece.begin; i < piece.end; ++i) ids.push_back(of_byte_[static_cast<unsigned char>(normal[i])]);
      else ids.push_back(vocabulary().unknown);
    }
  }

  // The authors' pieces are worth more than anything else, whose scores are negative as a rule.
  float score(std::int32_t id) const {
    if (vocabulary().type(id) != TokenType::user_defined) return vocabulary().scores[static_cast<std::size_t>(id)];
    const std::size_t length = vocabulary().tokens[static_cast<std::size_t>(id)].size();
    return static_cast<float>(0.1 * (static_cast<double>(length) - 1));
  }

  SentencePieceOptions options_;
  SpmNormalizer normalizer_;
  Lattice lattice_;
  std::array<std::int32_t, 256> of_byte_;
  bool all_bytes_ = false;
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece_unigram(Vocabulary vocabulary, SentencePieceOptions options) {
  StringTable pieces = sentencepiece_pieces(vocabulary);
  return std::make_unique<SentencePieceUnigram>(std::move(vocabulary), std::move(pieces), std::move(options));
}

Result<std::unique_ptr<Tokenizer>> create_sentencepiece_unigram(const json::object& metadata) {
  MEKIK_TRY(vocabulary, read_vocabulary(metadata, {.add_eos = true, .needs_scores = true}));
  if (vocabulary.unknown < 0)
    return invalid("tokenizer.ggml.unknown_token_id is missing, and a Unigram vocabulary cannot be used without it");
  SentencePieceOptions options;
  MEKIK_TRY(rules, read_spm_rules(metadata, vocabulary.add_space_prefix));
  options.rules = std::move(rules);
  options.prefix = SentencePieceOptions::Prefixed::all;
  return make_sentencepiece_unigram(std::move(vocabulary), std::move(options));
}

}  // namespace mekik::text
