// What both kinds of SentencePiece models share, from GGUF metadata and from a tokenizer.model.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "text/hf/trie.hpp"
#include "text/tokenizer_base.hpp"
#include "text/tokenizer_spm_normalise.hpp"

namespace mekik::text {

struct SentencePieceOptions {
  std::optional<SpmRules> rules;  // none: only the space prefix that the vocabulary asks for
  // Which runs of text get the dummy prefix: the first one, also behind BOS (llama.cpp); only text that nothing comes before
  // (transformers); every one between special tokens (SentencePiece, legacy transformers).
  enum class Prefixed : std::uint8_t { first, begin, all } prefix = Prefixed::first;
  // The authors' pieces are found in normalised text and never merge, as SentencePiece does it, instead of in the raw text.
  bool whole_user_defined = false;
  bool fuse_unknown = false;  // unknown neighbours become one token

  bool prefixed(RunPlace place) const;
};

// The text with U+2581 as spaces.
std::string with_spaces(std::string_view text);
// What the ids stand for in text.
StringTable sentencepiece_pieces(const Vocabulary& vocabulary);
// Whether a token has spaces where others have U+2581: SentencePiece finds those in raw text only, never in normalised text.
bool is_spelled_with_spaces(const Vocabulary& vocabulary, std::size_t i);
// The authors' pieces as they are spelled, and what is found of them in normalised text; none unless `options` keeps them whole. The
// texts live as long as the tables.
std::vector<hf::PrefixTrie::Entry> user_defined_raw(const Vocabulary& vocabulary, const SentencePieceOptions& options);
std::vector<hf::PrefixTrie::Entry> user_defined_normal(const Vocabulary& vocabulary, const StringTable& pieces,
                                                       const SentencePieceOptions& options);
// tokenizer.ggml.remove_extra_whitespaces and precompiled_charsmap.
Result<SpmRules> read_spm_rules(const json::object& metadata, bool dummy_prefix);

std::unique_ptr<Tokenizer> make_sentencepiece_bpe(Vocabulary vocabulary, SentencePieceOptions options);
std::unique_ptr<Tokenizer> make_sentencepiece_unigram(Vocabulary vocabulary, SentencePieceOptions options);

}  // namespace mekik::text
