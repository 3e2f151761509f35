// Small vocabularies, small enough to work out the right ids by hand.
#pragma once
#include <string>

#include "base/json.hpp"
#include "base/text.hpp"
#include "text/tokenizer.hpp"

namespace mekik::test {

// GPT-2's spelling of a byte.
inline std::string spelled(int byte) {
  const auto itself = [](int b) { return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE; };
  char32_t other = 0x100;
  for (int b = 0; b < byte; ++b) other += itself(b) ? 0u : 1u;
  std::string text;
  append_utf8(text, itself(byte) ? static_cast<char32_t>(byte) : other);
  return text;
}

// Ids 0 to 255: the bytes. 256 "ab", 257 "abc", 258 " a" (spelled with U+0120), 259 "bc", 260 <|end|>, 261 <|im_start|>, 262 "[user]".
// Merges in this order: b c, a b, ab c, (space) a. "abc" merges to a + bc, since bc comes first, unless the piece is taken whole.
inline json::object byte_level() {
  json::array tokens, types;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(json::value(spelled(byte)));
  for (const char* token : {"ab", "abc",
                            "\xC4\xA0"
                            "a",
                            "bc", "<|end|>", "<|im_start|>", "[user]"})
    tokens.push_back(json::value(token));
  for (std::size_t i = 0; i < tokens.size(); ++i) types.push_back(i == 260 || i == 261 ? 3 : i == 262 ? 4 : 1);
  json::object metadata;
  metadata["tokenizer.ggml.model"] = "gpt2";
  metadata["tokenizer.ggml.pre"] = "gpt-2";
  metadata["tokenizer.ggml.tokens"] = tokens;
  metadata["tokenizer.ggml.token_type"] = types;
  metadata["tokenizer.ggml.merges"] = json::array{"b c", "a b", "ab c",
                                                  "\xC4\xA0"
                                                  " a"};
  metadata["tokenizer.ggml.bos_token_id"] = 261;
  metadata["tokenizer.ggml.eos_token_id"] = 260;
  return metadata;
}

// 0 <unk>, 1 <s>, 2 </s>, 3 to 258 the bytes, then:
// 259 "▁", 260 "a", 261 "b", 262 "ab" (-1), 263 "▁a" (-2), 264 "▁ab" (-3), 265 "  " (authors', three bytes less than "▁▁"),
// 266 "bb" (unused, -0.5), 267 "abb" (-9).
inline json::object sentencepiece() {
  json::array tokens{"<unk>", "<s>", "</s>"}, types{2, 3, 3}, scores{0, 0, 0};
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < 256; ++byte) {
    tokens.push_back(json::value(std::string{"<0x"} + digits[byte >> 4] + digits[byte & 15] + ">"));
    types.push_back(6);
    scores.push_back(0);
  }
  const auto add = [&](const char* token, double score, int type) {
    tokens.push_back(json::value(token));
    scores.push_back(score);
    types.push_back(type);
  };
  add("\xE2\x96\x81", -20, 1);
  add("a", -21, 1);
  add("b", -22, 1);
  add("ab", -1, 1);
  add("\xE2\x96\x81"
      "a",
      -2, 1);
  add("\xE2\x96\x81"
      "ab",
      -3, 1);
  add("  ", -4, 4);
  add("bb", -0.5, 5);
  add("abb", -9, 1);
  json::object metadata;
  metadata["tokenizer.ggml.model"] = "llama";
  metadata["tokenizer.ggml.tokens"] = tokens;
  metadata["tokenizer.ggml.token_type"] = types;
  metadata["tokenizer.ggml.scores"] = scores;
  metadata["tokenizer.ggml.bos_token_id"] = 1;
  metadata["tokenizer.ggml.eos_token_id"] = 2;
  metadata["tokenizer.ggml.unknown_token_id"] = 0;
  return metadata;
}

using Ids = std::vector<std::int32_t>;

inline std::unique_ptr<text::Tokenizer> make(const json::object& metadata) {
  auto tokenizer = text::Tokenizer::create(metadata);
  if (!tokenizer.ok()) throw std::runtime_error(tokenizer.status().text);
  return std::move(*tokenizer);
}

}  // namespace mekik::test
