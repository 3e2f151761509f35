// Byte-level BPE (GPT-2): tokens are spelled in an alphabet of 256 printable characters, one for each byte.
#include <algorithm>
#include <array>
#include <atomic>

#include "base/log.hpp"
#include "base/text.hpp"
#include "text/tokenizer_base.hpp"
#include "text/tokenizer_normalise.hpp"
#include "text/tokenizer_sentencepiece.hpp"
#include "text/tokenizer_split.hpp"

namespace mekik::text {

namespace {

constexpr std::string_view kPreKey = "tokenizer.ggml.pre";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";

struct RankedToken {
  std::uint32_t rank = Merge::kNone;
  std::int32_t id = -1;
};

// GPT-2's alphabet: printable Latin-1 stands for itself, the other bytes for U+0100 onwards, in order.
class ByteAlphabet {
 public:
  ByteAlphabet() {
    char32_t next = 0x100;
    bytes_.fill(-1);
    for (int byte = 0; byte < 256; ++byte) {
      const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      bytes_[itself ? static_cast<char32_t>(byte) : next++] = static_cast<std::int16_t>(byte);
    }
  }
  // The bytes that a token spells; false when it has a character outside the alphabet.
  bool decode(std::string_view token, std::string& out) const {
    out.clear();
    if (!is_utf8(token)) return false;
    for (std::size_t at = 0; at < token.size();) {
      const char32_t c = next_code_point(token, at);
      if (c >= bytes_.size() || bytes_[c] < 0) return false;
      out += static_cast<char>(bytes_[c]);
    }
    return true;
  }

 private:
  std::array<std::int16_t, 0x144> bytes_;
};

struct BytePieces {
  StringTable pieces;
  TextIndex by_piece;  // of what merging can give
  std::array<std::int32_t, 256> of_byte;
};

BytePieces byte_pieces(const Vocabulary& vocabulary) {
  BytePieces result;
  result.of_byte.fill(-1);
  const ByteAlphabet alphabet;
  const std::size_t n = vocabulary.tokens.size();
  result.pieces.reserve(n, n * 8);
  result.by_piece.reserve(n);
  std::string bytes;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string_view token = vocabulary.tokens[i];
    const TokenType type = vocabulary.types[i];
    const bool mergeable = type == TokenType::normal || type == TokenType::undefined || type == TokenType::unused;
    if (type == TokenType::byte) {
      const char byte = static_cast<char>(spelled_byte(token));
      result.pieces.push({&byte, 1});
    } else if (mergeable && alphabet.decode(token, bytes)) {
      result.pieces.push(bytes);
      if (!bytes.empty()) result.by_piece.add(result.pieces, static_cast<std::int32_t>(i));
      if (bytes.size() == 1) result.of_byte[static_cast<unsigned char>(bytes[0])] = static_cast<std::int32_t>(i);
    } else {
      result.pieces.push(token);  // added by the model's authors, spelled as text
    }
  }
  return result;
}

// "left right" -> the pair's rank and the token that it makes.
Status read_merges(const json::object& metadata, const Vocabulary& vocabulary, PairIndex<RankedToken>& merges) {
  const json::value* value = metadata.if_contains(kMergesKey);
  const json::array* array = value == nullptr ? nullptr : value->if_array();
  if (array == nullptr) return invalid(std::string{kMergesKey} + (value == nullptr ? " is missing" : " is not an array"));
  constexpr std::size_t kMaxMerges = std::size_t{1} << 23;
  if (array->size() > kMaxMerges)
    return invalid(std::string{kMergesKey} + " has " + std::to_string(array->size()) + " entries; at most " + std::to_string(kMaxMerges) +
                   " make sense");
  merges.reserve(array->size());
  std::string joined;
  const auto find = [&](std::string_view token) { return vocabulary.by_token.find(vocabulary.tokens, token); };
  for (std::size_t i = 0; i < array->size(); ++i) {
    const json::string* merge = (*array)[i].if_string();
    const auto wrong = [&](const std::string& what) { return invalid(std::string{kMergesKey} + "[" + std::to_string(i) + "] " + what); };
    if (merge == nullptr) return wrong("is not a string");
    const std::string_view text{merge->data(), merge->size()};
    const std::size_t space = text.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == text.size()) return wrong("is " + quoted(text) + ", not two tokens and a space");
    const std::string_view left = text.substr(0, space), right = text.substr(space + 1);
    joined.assign(left).append(right);
    const std::int32_t l = find(left), r = find(right), whole = find(joined);
    if (l < 0 || r < 0 || whole < 0)
      return wrong("names the token " + quoted(l < 0 ? left : r < 0 ? right : joined) + ", which the vocabulary lacks");
    // Of a pair that is listed twice, the first counts, as in the reference tokenizer.
    merges.add(static_cast<std::uint32_t>(l), static_cast<std::uint32_t>(r), {static_cast<std::uint32_t>(i), whole});
  }
  return {};
}

Result<const PreTokenizer*> find_pre_tokenizer(const std::string& name) {
  std::vector<std::string> names;
  for (const PreTokenizer& pre : pre_tokenizers()) {
    if (pre.name == name) return &pre;
    names.emplace_back(pre.name);
  }
  const std::string known = "; known are " + join(names, ", ");
  if (name.empty())
    return invalid(std::string{kPreKey} + " is missing, and a byte-level BPE cannot be used without it; convert the model again" + known);
  return unsupported(std::string{kPreKey} + " = " + quoted(name) + " is not known" + known);
}

// The bytes without a token, as " 04 06"; those that never occur in UTF-8 do not count.
std::string missing(const std::array<std::int32_t, 256>& of_byte) {
  std::string out;
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < 0xF5; ++byte)
    if (of_byte[byte] < 0 && byte != 0xC0 && byte != 0xC1) out += std::string{" "} + kDigits[byte >> 4] + kDigits[byte & 15];
  return out;
}

class ByteLevelBpe final : public VocabularyTokenizer {
 public:
  ByteLevelBpe(Vocabulary vocabulary, BytePieces pieces, PairIndex<RankedToken> merges, const PreTokenizer& pre, Splitter splitter)
      : VocabularyTokenizer(std::move(vocabulary), std::move(pieces.pieces)),
        by_piece_(std::move(pieces.by_piece)),
        of_byte_(pieces.of_byte),
        merges_(std::move(merges)),
        pre_(&pre),
        splitter_(std::move(splitter)) {
    for (std::size_t byte = 0; byte < 256; ++byte) kept_[byte] = of_byte_[byte] >= 0;
  }

  std::string kind() const override { return "bpe, pre " + std::string{pre_->name}; }
  std::size_t fewest_tokens(std::string_view text) const override {
    constexpr std::size_t kMostByNfc = 4;  // a character of 3 bytes is composed of 9 at most (Hangul)
    return fewest_tokens_of(text, kept_, longest_piece() * (pre_->nfc ? kMostByNfc : 1));
  }

 private:
  void encode_run(std::string_view text, RunPlace place, std::vector<std::int32_t>& ids, MergeScratch& scratch) const override {
    std::string prefixed, normal;
    if (place != RunPlace::inside && adds_space_prefix() && text.front() != ' ') text = prefixed.append(" ").append(text);
    const Splitter::ScratchPointer split = splitter_.scratch();
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = at + valid_utf8_prefix(text.substr(at));
      if (end == at) {  // not UTF-8: its bytes, one by one
        encode_word(text.substr(at++, 1), ids, scratch);
        continue;
      }
      std::string_view valid = text.substr(at, end - at);
      if (pre_->nfc && to_nfc(valid, normal)) valid = normal;
      splitter_.split(valid, *split, words);
      for (const std::string_view word : words) scratch.words.encode(word, ids, [&] { encode_word(word, ids, scratch); });
      at = end;
    }
  }

  void encode_word(std::string_view word, std::vector<std::int32_t>& ids, MergeScratch& scratch) const {
    if (word.size() == 1 || pre_->ignore_merges) {
      if (const std::int32_t id = by_piece_.find(pieces(), word); id >= 0) {
        ids.push_back(id);
        return;
      }
    }
    scratch.symbols.clear();
    for (std::uint32_t i = 0; i < word.size(); ++i) scratch.symbols.push_back({i, 1, of_byte_[static_cast<unsigned char>(word[i])]});
    merge_symbols(scratch, [&](const Symbol& left, const Symbol& right) -> Merge {
      const RankedToken* merge = merges_.find(static_cast<std::uint32_t>(left.id), static_cast<std::uint32_t>(right.id));
      return merge == nullptr ? Merge{} : Merge{merge->rank, merge->id};
    });
    // A byte without a token becomes the unknown token where the model has one that is no control token; else it is left out, as
    // in the reference tokenizers, with a warning.
    const bool has_unknown = vocabulary().unknown >= 0 && vocabulary().type(vocabulary().unknown) == TokenType::unknown;
    for (const Symbol& symbol : scratch.symbols)
      if (symbol.id >= 0) ids.push_back(symbol.id);
      else if (has_unknown) ids.push_back(vocabulary().unknown);
      else warn_of_loss();
  }

  // Said once, and only when it happens: published vocabularies lack control characters that hardly any text has.
  void warn_of_loss() const {
    if (warned_.test_and_set()) return;
    log::warning("tokenizer", "the vocabulary has no token for some bytes of a text, which is tokenized without them:" + missing(of_byte_));
  }

  TextIndex by_piece_;
  std::array<std::int32_t, 256> of_byte_;
  std::bitset<256> kept_;  // bytes that have a token
  PairIndex<RankedToken> merges_;
  const PreTokenizer* pre_;  // in the static table
  Splitter splitter_;
  mutable std::atomic_flag warned_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> create_byte_level_bpe(const json::object& metadata) {
  MEKIK_TRY(name, optional_text(metadata, kPreKey));
  if (name == "gemma4" || name == "granite-embed-multi-311m" || name == "sarvam-moe") return create_spaced_bpe(metadata);
  MEKIK_TRY(pre, find_pre_tokenizer(name));
  MEKIK_TRY(rules, read_spm_rules(metadata, false));
  if (rules.remove_extra_spaces || rules.charsmap)
    return unsupported(
        "tokenizer.ggml.remove_extra_whitespaces and precompiled_charsmap are for SentencePiece models, not for byte-level BPE");
  MEKIK_TRY(vocabulary, read_vocabulary(metadata, {.add_bos = pre->add_bos, .add_sep = pre->add_sep}));
  PairIndex<RankedToken> merges;
  MEKIK_CHECK_OK(read_merges(metadata, vocabulary, merges));
  BytePieces pieces = byte_pieces(vocabulary);
  if (const std::string bytes = missing(pieces.of_byte); !bytes.empty())
    log::info("tokenizer", "the vocabulary has no token for these bytes:" + bytes);
  MEKIK_TRY(splitter, Splitter::compile(pre->steps));
  return std::unique_ptr<Tokenizer>{
      std::make_unique<ByteLevelBpe>(std::move(vocabulary), std::move(pieces), std::move(merges), *pre, std::move(splitter))};
}

}  // namespace mekik::text
