#include "text/tokenizer_base.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace mekik::text {

namespace {

bool needs_trust(TokenType type) { return type == TokenType::control || type == TokenType::unknown; }

std::size_t special_bytes(const Vocabulary& vocabulary) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < vocabulary.types.size(); ++i)
    if (needs_trust(vocabulary.types[i]) || vocabulary.types[i] == TokenType::user_defined) bytes += vocabulary.tokens[i].size();
  return bytes;
}

std::uint32_t flags_of(TokenType type, std::string_view token) {
  if (type == TokenType::unused) return kTokenUnused;
  if (!needs_trust(type)) return 0;
  // Conversions keep the publisher's placeholders ("<unused42>") as control tokens.
  const bool placeholder = token.find("unused") != std::string_view::npos;
  return placeholder ? kTokenSpecial | kTokenUnused : kTokenSpecial;
}

// The parts as one text, and where its trusted stretches end.
struct Joined {
  struct Stretch {
    std::size_t end;
    bool trusted;
  };
  std::string text;
  std::vector<Stretch> stretches;
};

}  // namespace

std::size_t character_length(std::string_view text, std::size_t at) {
  const unsigned char first = static_cast<unsigned char>(text[at]);
  if (first < 0xC2) return 1;
  const std::size_t length = first < 0xE0 ? 2u : first < 0xF0 ? 3u : 4u;
  return at + length <= text.size() && is_utf8(text.substr(at, length)) ? length : 1;
}

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = character_length(text, at);
    if (length == 1 && static_cast<unsigned char>(text[at]) >= 0x80) break;
    at += length;
  }
  return at;
}

std::size_t fewest_tokens_of(std::string_view text, const std::bitset<256>& kept, std::size_t longest) {
  std::array<std::size_t, 256> counts{};
  for (const char c : text) ++counts[static_cast<unsigned char>(c)];
  std::size_t bytes = 0;
  for (std::size_t byte = 0; byte < counts.size(); ++byte) bytes += kept[byte] ? counts[byte] : 0;
  return (bytes + longest - 1) / longest;
}

VocabularyTokenizer::VocabularyTokenizer(Vocabulary vocabulary, StringTable pieces, bool match_user_defined)
    : vocabulary_(std::move(vocabulary)), pieces_(std::move(pieces)), matcher_(special_bytes(vocabulary_)), ends_(end_tokens(vocabulary_)) {
  flags_.reserve(vocabulary_.types.size());
  for (std::size_t i = 0; i < vocabulary_.types.size(); ++i) {
    const TokenType type = vocabulary_.types[i];
    if (needs_trust(type) || (match_user_defined && type == TokenType::user_defined))
      matcher_.add(pieces_[i], static_cast<std::int32_t>(i), !needs_trust(type));
    flags_.push_back(flags_of(type, vocabulary_.tokens[i]));
    longest_piece_ = std::max(longest_piece_, pieces_[i].size());
  }
  for (const std::int32_t id : ends_) flags_[static_cast<std::size_t>(id)] |= kTokenEnd;
}

std::vector<std::int32_t> VocabularyTokenizer::encode(std::span<const TextPart> parts, bool add_special) const {
  Joined joined;
  for (const TextPart& part : parts) {
    joined.text += prepared(part.text);
    if (!joined.stretches.empty() && joined.stretches.back().trusted == part.trusted) joined.stretches.back().end = joined.text.size();
    else joined.stretches.push_back({joined.text.size(), part.trusted});
  }
  std::vector<std::int32_t> ids;
  if (add_special && vocabulary_.add_bos) ids.push_back(vocabulary_.bos);
  MergeScratch scratch;
  const std::string_view text = joined.text;
  scratch.words.prepare(text.size());
  std::size_t run = 0;  // where the text after the last special token begins
  RunPlace place = RunPlace::begin;
  const auto finish_run = [&](std::size_t end) {
    if (end > run) {
      encode_run(text.substr(run, end - run), place, ids, scratch);
      place = RunPlace::inside;
    }
  };
  std::size_t at = 0;
  for (const Joined::Stretch& stretch : joined.stretches) {
    while (at < stretch.end) {
      if (!matcher_.may_start(text[at])) {
        ++at;
        continue;
      }
      const SpecialMatcher::Match match = matcher_.longest(text.substr(at), stretch.trusted ? stretch.end - at : 0);
      if (match.id < 0) {
        ++at;
        continue;
      }
      finish_run(at);
      ids.push_back(match.id);
      place = match.id == vocabulary_.bos && place != RunPlace::inside ? RunPlace::after_bos : RunPlace::inside;
      at += match.length;
      run = at;
    }
  }
  finish_run(text.size());
  if (add_special && vocabulary_.add_eos) ids.push_back(vocabulary_.eos);
  return ids;
}

TypedTokens VocabularyTokenizer::encode_pair(std::string_view first, std::string_view second) const {
  TypedTokens tokens;
  const auto append = [&](std::string_view text) {
    const std::vector<std::int32_t> ids = encode(text, false, false);
    tokens.ids.insert(tokens.ids.end(), ids.begin(), ids.end());
    if (vocabulary_.add_eos) tokens.ids.push_back(vocabulary_.eos);
  };
  if (vocabulary_.add_bos) tokens.ids.push_back(vocabulary_.bos);
  append(first);
  if (vocabulary_.add_sep) tokens.ids.push_back(vocabulary_.sep);
  append(second);
  tokens.types.assign(tokens.ids.size(), 0);
  return tokens;
}

std::string VocabularyTokenizer::decode(std::span<const std::int32_t> ids, bool special) const {
  std::string text;
  bool at_start = adds_space_prefix();
  for (const std::int32_t id : ids) {
    const bool is_special = (flags(id) & kTokenSpecial) != 0;
    if (is_special && id != vocabulary_.bos) at_start = false;
    if (is_special && !special) continue;
    std::string_view bytes = piece(id);
    if (at_start && !is_special && !bytes.empty()) {
      at_start = false;
      if (bytes.front() == ' ') bytes.remove_prefix(1);
    }
    text += bytes;
  }
  return text;
}

}  // namespace mekik::text
