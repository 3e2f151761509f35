#include "text/tokenizer_sentencepiece.hpp"

namespace mekik::text {

bool SentencePieceOptions::prefixed(RunPlace place) const {
  return prefix == Prefixed::all || place == RunPlace::begin || (prefix == Prefixed::first && place == RunPlace::after_bos);
}

std::string with_spaces(std::string_view text) {
  constexpr std::string_view kSpaceSign = "\xE2\x96\x81";
  std::string out;
  out.reserve(text.size());
  std::size_t at = 0;
  for (std::size_t sign; (sign = text.find(kSpaceSign, at)) != std::string_view::npos; at = sign + kSpaceSign.size())
    out.append(text, at, sign - at).push_back(' ');
  return out.append(text, at);
}

StringTable sentencepiece_pieces(const Vocabulary& vocabulary) {
  StringTable pieces;
  pieces.reserve(vocabulary.size(), std::size_t{vocabulary.size()} * 8);
  for (std::size_t i = 0; i < vocabulary.size(); ++i)
    pieces.push(vocabulary.types[i] == TokenType::byte ? std::string(1, static_cast<char>(spelled_byte(vocabulary.tokens[i])))
                                                       : with_spaces(vocabulary.tokens[i]));
  return pieces;
}

bool is_spelled_with_spaces(const Vocabulary& vocabulary, std::size_t i) {
  return vocabulary.tokens[i].find(' ') != std::string_view::npos;
}

std::vector<hf::PrefixTrie::Entry> user_defined_raw(const Vocabulary& vocabulary, const SentencePieceOptions& options) {
  std::vector<hf::PrefixTrie::Entry> entries;
  for (std::size_t i = 0; options.whole_user_defined && i < vocabulary.size(); ++i)
    if (vocabulary.types[i] == TokenType::user_defined) entries.emplace_back(vocabulary.tokens[i], static_cast<std::int32_t>(i));
  return entries;
}

std::vector<hf::PrefixTrie::Entry> user_defined_normal(const Vocabulary& vocabulary, const StringTable& pieces,
                                                       const SentencePieceOptions& options) {
  std::vector<hf::PrefixTrie::Entry> entries = user_defined_raw(vocabulary, options);
  std::erase_if(entries, [&](const auto& entry) { return is_spelled_with_spaces(vocabulary, static_cast<std::size_t>(entry.second)); });
  for (auto& [text, id] : entries) text = pieces[static_cast<std::size_t>(id)];
  return entries;
}

Result<SpmRules> read_spm_rules(const json::object& metadata, bool dummy_prefix) {
  SpmRules rules;
  rules.dummy_prefix = dummy_prefix;
  constexpr std::string_view kExtra = "tokenizer.ggml.remove_extra_whitespaces", kMap = "tokenizer.ggml.precompiled_charsmap";
  if (const json::value* value = metadata.if_contains(kExtra); value != nullptr) {
    if (!value->is_bool()) return invalid(std::string{kExtra} + " is not true or false");
    rules.remove_extra_spaces = value->get_bool();
  }
  const json::value* map = metadata.if_contains(kMap);
  if (map == nullptr) return rules;
  const json::array* bytes = map->if_array();
  if (bytes == nullptr) return invalid(std::string{kMap} + " is not an array");
  if (bytes->empty()) return rules;
  std::string blob;
  for (const json::value& byte : *bytes) {
    const bool good = byte.is_int64() ? byte.get_int64() >= -128 && byte.get_int64() < 256 : byte.is_uint64() && byte.get_uint64() < 256;
    if (!good) return invalid(std::string{kMap} + "[" + std::to_string(blob.size()) + "] is no byte");
    blob += static_cast<char>(byte.is_int64() ? byte.get_int64() : static_cast<std::int64_t>(byte.get_uint64()));
  }
  auto read = hf::Charsmap::read(blob);
  if (!read) return std::move(read.status()).in(kMap);
  rules.charsmap = std::move(*read);
  return rules;
}

}  // namespace mekik::text
