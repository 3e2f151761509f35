#include "text/tokenizer_vocabulary.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.hpp"

namespace mekik::text {

namespace {

constexpr std::size_t kMaxTokens = std::size_t{1} << 22;
constexpr std::size_t kMaxTokenBytes = std::size_t{1} << 16;
constexpr std::size_t kMaxVocabularyBytes = std::size_t{1} << 26;

// Names under which published models keep the tokens that end a turn or a text. Only control tokens count, so that a model
// in whose vocabulary "</s>" is ordinary HTML does not stop there.
constexpr std::array<std::string_view, 21> kEndTokens{
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<turn|>",
    "<|end|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "[|endofturn|]",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
};

Result<const json::array*> optional_array(const json::object& metadata, std::string_view key, std::size_t tokens) {
  const json::value* value = metadata.if_contains(key);
  if (value == nullptr) return static_cast<const json::array*>(nullptr);
  const json::array* array = value->if_array();
  if (array == nullptr) return invalid(std::string{key} + " is not an array");
  if (array->size() != tokens)
    return invalid(std::string{key} + " has " + std::to_string(array->size()) + " entries for " + std::to_string(tokens) +
                   " tokens; the file is damaged or badly converted");
  return array;
}

Result<std::int32_t> optional_id(const json::object& metadata, std::string_view key, std::size_t tokens) {
  const json::value* value = metadata.if_contains(key);
  if (value == nullptr) return -1;
  const bool negative = value->is_int64() && value->get_int64() < 0;
  if (!value->is_int64() && !value->is_uint64()) return invalid(std::string{key} + " is not an integer");
  const std::uint64_t id = value->is_int64() ? static_cast<std::uint64_t>(value->get_int64()) : value->get_uint64();
  if (negative || id >= tokens)
    return invalid(std::string{key} + " is " + (negative ? std::to_string(value->get_int64()) : std::to_string(id)) +
                   ", but the vocabulary has the ids 0 to " + std::to_string(tokens - 1));
  return static_cast<std::int32_t>(id);
}

Result<bool> optional_bool(const json::object& metadata, std::string_view key, bool fallback) {
  const json::value* value = metadata.if_contains(key);
  if (value == nullptr) return fallback;
  if (!value->is_bool()) return invalid(std::string{key} + " is not true or false");
  return value->get_bool();
}

Status read_tokens(const json::object& metadata, Vocabulary& vocabulary) {
  constexpr std::string_view key = "tokenizer.ggml.tokens";
  const json::value* value = metadata.if_contains(key);
  const json::array* array = value == nullptr ? nullptr : value->if_array();
  if (array == nullptr) return invalid(std::string{key} + (value == nullptr ? " is missing" : " is not an array"));
  if (array->empty() || array->size() > kMaxTokens)
    return invalid(std::string{key} + " has " + std::to_string(array->size()) + " entries; it must have 1 to " +
                   std::to_string(kMaxTokens));
  std::size_t total = 0;
  for (std::size_t i = 0; i < array->size(); ++i) {
    const json::string* text = (*array)[i].if_string();
    const std::string where = text == nullptr || text->size() > kMaxTokenBytes ? std::string{key} + "[" + std::to_string(i) + "]" : "";
    if (text == nullptr) return invalid(where + " is not a string");
    if (text->size() > kMaxTokenBytes)
      return invalid(where + " has " + std::to_string(text->size()) + " bytes; at most " + std::to_string(kMaxTokenBytes) + " make sense");
    total += text->size();
  }
  if (total > kMaxVocabularyBytes) return invalid(std::string{key} + " has more than 64 MiB of text");
  vocabulary.tokens.reserve(array->size(), total);
  vocabulary.by_token.reserve(array->size());
  for (std::size_t i = 0; i < array->size(); ++i) {
    const json::string& text = *(*array)[i].if_string();
    vocabulary.tokens.push({text.data(), text.size()});
    if (text.empty()) continue;  // holes of some conversions: they stand for nothing and are never found
    const std::int32_t other = vocabulary.by_token.add(vocabulary.tokens, static_cast<std::int32_t>(i));
    if (other >= 0)
      return invalid(std::string{key} + "[" + std::to_string(other) + "] and [" + std::to_string(i) + "] are both " + quoted(text));
  }
  return {};
}

Status read_types(const json::object& metadata, Vocabulary& vocabulary) {
  const std::size_t n = vocabulary.tokens.size();
  MEKIK_TRY(array, optional_array(metadata, "tokenizer.ggml.token_type", n));
  vocabulary.types.assign(n, TokenType::normal);
  if (array == nullptr) return {};
  for (std::size_t i = 0; i < n; ++i) {
    const json::value& value = (*array)[i];
    const std::string_view token = vocabulary.tokens[i];
    const std::uint64_t type = value.is_int64()    ? static_cast<std::uint64_t>(value.get_int64())
                               : value.is_uint64() ? value.get_uint64()
                                                   : 7;
    if (type > 6)
      return invalid("tokenizer.ggml.token_type[" + std::to_string(i) + "] is " + json::serialize(value) + "; token types are 0 to 6");
    vocabulary.types[i] = static_cast<TokenType>(type);
    if (vocabulary.types[i] == TokenType::byte && spelled_byte(token) < 0)
      return invalid("token " + std::to_string(i) + " is a byte token, but spelled " + quoted(token) + " instead of <0x00> to <0xFF>");
  }
  return {};
}

Status read_scores(const json::object& metadata, bool needed, Vocabulary& vocabulary) {
  constexpr std::string_view key = "tokenizer.ggml.scores";
  MEKIK_TRY(array, optional_array(metadata, key, vocabulary.tokens.size()));
  if (array == nullptr && needed)
    return invalid(std::string{key} + " is missing; a SentencePiece vocabulary cannot be used without its scores");
  if (array == nullptr) return {};
  vocabulary.scores.reserve(array->size());
  for (const json::value& value : *array) {
    const double score = value.is_double()   ? value.get_double()
                         : value.is_int64()  ? static_cast<double>(value.get_int64())
                         : value.is_uint64() ? static_cast<double>(value.get_uint64())
                                             : std::nan("");
    if (std::isnan(score))
      return invalid(std::string{key} + "[" + std::to_string(vocabulary.scores.size()) + "] is " + json::serialize(value) +
                     ", not a number");
    vocabulary.scores.push_back(static_cast<float>(std::clamp(score, -3.0e38, 3.0e38)));
  }
  return {};
}

}  // namespace

int spelled_byte(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return -1;
  int byte = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return -1;
    byte = byte * 16 + digit;
  }
  return byte;
}

Result<std::string> optional_text(const json::object& metadata, std::string_view key) {
  const json::value* value = metadata.if_contains(key);
  if (value == nullptr) return std::string{};
  const json::string* text = value->if_string();
  if (text == nullptr) return invalid(std::string{key} + " is not a string");
  return std::string{text->data(), text->size()};
}

Result<Vocabulary> read_vocabulary(const json::object& metadata, const VocabularyDefaults& defaults) {
  Vocabulary vocabulary;
  MEKIK_CHECK_OK(read_tokens(metadata, vocabulary));
  MEKIK_CHECK_OK(read_types(metadata, vocabulary));
  MEKIK_CHECK_OK(read_scores(metadata, defaults.needs_scores, vocabulary));
  const std::size_t n = vocabulary.tokens.size();
  const std::array<std::pair<std::string_view, std::int32_t*>, 6> ids{{{"tokenizer.ggml.bos_token_id", &vocabulary.bos},
                                                                       {"tokenizer.ggml.eos_token_id", &vocabulary.eos},
                                                                       {"tokenizer.ggml.eot_token_id", &vocabulary.eot},
                                                                       {"tokenizer.ggml.eom_token_id", &vocabulary.eom},
                                                                       {"tokenizer.ggml.unknown_token_id", &vocabulary.unknown},
                                                                       {"tokenizer.ggml.seperator_token_id", &vocabulary.sep}}};
  for (const auto& [key, id] : ids) {
    MEKIK_TRY(value, optional_id(metadata, key, n));
    *id = value;
  }
  // Nothing here uses these, but an id outside the vocabulary means that the file is damaged.
  for (const std::string_view key : {"tokenizer.ggml.padding_token_id", "tokenizer.ggml.cls_token_id", "tokenizer.ggml.mask_token_id"}) {
    MEKIK_TRY(ignored, optional_id(metadata, key, n));
    static_cast<void>(ignored);
  }
  MEKIK_TRY(add_bos, optional_bool(metadata, "tokenizer.ggml.add_bos_token", defaults.add_bos && vocabulary.bos >= 0));
  MEKIK_TRY(add_eos, optional_bool(metadata, "tokenizer.ggml.add_eos_token", defaults.add_eos && vocabulary.eos >= 0));
  MEKIK_TRY(add_sep, optional_bool(metadata, "tokenizer.ggml.add_sep_token", defaults.add_sep && vocabulary.sep >= 0));
  MEKIK_TRY(add_space_prefix, optional_bool(metadata, "tokenizer.ggml.add_space_prefix", defaults.add_space_prefix));
  if (add_bos && vocabulary.bos < 0) return invalid("tokenizer.ggml.add_bos_token is true, but there is no tokenizer.ggml.bos_token_id");
  if (add_eos && vocabulary.eos < 0) return invalid("tokenizer.ggml.add_eos_token is true, but there is no tokenizer.ggml.eos_token_id");
  if (add_sep && vocabulary.sep < 0)
    return invalid("tokenizer.ggml.add_sep_token is true, but there is no tokenizer.ggml.seperator_token_id");
  vocabulary.add_bos = add_bos;
  vocabulary.add_sep = add_sep;
  vocabulary.add_eos = add_eos;
  vocabulary.add_space_prefix = add_space_prefix;
  return vocabulary;
}

std::vector<std::int32_t> end_tokens(const Vocabulary& vocabulary) {
  std::vector<std::int32_t> ends;
  const auto control = [&](std::string_view name) {
    const std::int32_t id = vocabulary.by_token.find(vocabulary.tokens, name);
    return id >= 0 && vocabulary.type(id) == TokenType::control ? id : -1;
  };
  // Where a model separates the messages of one answer with <|end|>, other tokens end it.
  const bool end_is_separator =
      (control("<|return|>") >= 0 && control("<|call|>") >= 0) || (control("<|flush|>") >= 0 && control("<|calls|>") >= 0);
  for (const std::string_view name : kEndTokens)
    if (name != "<|end|>" || !end_is_separator) ends.push_back(control(name));
  ends.insert(ends.end(), {vocabulary.eos, vocabulary.eot, vocabulary.eom});
  ends.insert(ends.end(), vocabulary.more_ends.begin(), vocabulary.more_ends.end());
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  if (!ends.empty() && ends.front() < 0) ends.erase(ends.begin());
  return ends;
}

}  // namespace mekik::text
