// What both kinds of tokenizers share: special tokens in trusted text, pieces, flags, decoding.
#pragma once
#include <bitset>
#include <string>
#include <vector>

#include "text/tokenizer.hpp"
#include "text/tokenizer_merge.hpp"
#include "text/tokenizer_special.hpp"
#include "text/tokenizer_vocabulary.hpp"

namespace mekik::text {

// Bytes of the UTF-8 sequence at `at`, or 1 for a byte that begins none.
std::size_t character_length(std::string_view text, std::size_t at);
// The length of the longest prefix that is UTF-8.
std::size_t valid_utf8_prefix(std::string_view text);

// How many of the bytes of `text` are in `kept`, over `longest`, rounded up: what no tokenization undercuts whose tokens stand for so
// many bytes at most, and that leaves out no byte of `kept`.
std::size_t fewest_tokens_of(std::string_view text, const std::bitset<256>& kept, std::size_t longest);

// Where text between special tokens stands: first of all, first but for BOS, or behind something else.
enum class RunPlace : std::uint8_t { begin, after_bos, inside };

class VocabularyTokenizer : public Tokenizer {
 public:
  using Tokenizer::encode;
  std::vector<std::int32_t> encode(std::span<const TextPart> parts, bool add_special) const final;
  // BOS first EOS SEP second EOS, each where the model's metadata asks for it.
  TypedTokens encode_pair(std::string_view first, std::string_view second) const override;
  std::uint32_t size() const final { return vocabulary_.size(); }
  std::string_view piece(std::int32_t id) const final { return known(id) ? pieces_[static_cast<std::size_t>(id)] : std::string_view{}; }
  std::string_view token(std::int32_t id) const final {
    return known(id) ? vocabulary_.tokens[static_cast<std::size_t>(id)] : std::string_view{};
  }
  std::uint32_t flags(std::int32_t id) const final { return known(id) ? flags_[static_cast<std::size_t>(id)] : 0; }
  std::int32_t bos() const final { return vocabulary_.bos; }
  std::int32_t eos() const final { return vocabulary_.eos; }
  const std::vector<std::int32_t>& ends() const final { return ends_; }
  std::string decode(std::span<const std::int32_t> ids, bool special) const final;
  bool adds_space_prefix() const final { return vocabulary_.add_space_prefix; }

 protected:
  // `pieces[id]` is what the id stands for in text. `match_user_defined`: the authors' tokens are cut out of the text first.
  VocabularyTokenizer(Vocabulary vocabulary, StringTable pieces, bool match_user_defined = true);

  // The text as encode_run wants it; offsets may change, but not which part a byte belongs to.
  virtual std::string prepared(std::string_view text) const { return std::string{text}; }
  // Appends the ids of text between special tokens. `text` is not empty.
  virtual void encode_run(std::string_view text, RunPlace place, std::vector<std::int32_t>& ids, MergeScratch& scratch) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const StringTable& pieces() const { return pieces_; }

  // Of all that text may become: bytes of the longest piece, at least 1.
  std::size_t longest_piece() const { return longest_piece_; }

 private:
  bool known(std::int32_t id) const { return id >= 0 && static_cast<std::uint32_t>(id) < size(); }

  Vocabulary vocabulary_;
  StringTable pieces_;
  SpecialMatcher matcher_;
  std::vector<std::uint32_t> flags_;
  std::vector<std::int32_t> ends_;
  std::size_t longest_piece_ = 1;
};

// The kinds of GGUF files. `metadata` as in Tokenizer::create.
Result<std::unique_ptr<Tokenizer>> create_byte_level_bpe(const json::object& metadata);
Result<std::unique_ptr<Tokenizer>> create_sentencepiece_bpe(const json::object& metadata);
Result<std::unique_ptr<Tokenizer>> create_sentencepiece_unigram(const json::object& metadata);
Result<std::unique_ptr<Tokenizer>> create_wordpiece(const json::object& metadata);
Result<std::unique_ptr<Tokenizer>> create_spaced_bpe(const json::object& metadata);  // Gemma 4: BPE over UTF-8

}  // namespace mekik::text
