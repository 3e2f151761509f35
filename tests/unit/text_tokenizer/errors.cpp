#include <functional>

#include "support/catch.hpp"
#include "text/tokenizer_split.hpp"
#include "vocabularies.hpp"

using namespace mekik;

namespace {

std::string refusal(json::object metadata, const std::function<void(json::object&)>& change) {
  change(metadata);
  const auto tokenizer = text::Tokenizer::create(metadata);
  return tokenizer.ok() ? "accepted" : tokenizer.status().text;
}

void check(const json::object& metadata, const std::string& key, const json::value& value, const std::string& expected) {
  INFO(key << " = " << json::serialize(value).substr(0, 60));
  CHECK_THAT(refusal(metadata, [&](json::object& m) { m["tokenizer.ggml." + key] = value; }), Catch::Matchers::Contains(expected));
}

void check_missing(const json::object& metadata, const std::string& key, const std::string& expected) {
  INFO(key << " missing");
  CHECK_THAT(refusal(metadata, [&](json::object& m) { m.erase("tokenizer.ggml." + key); }), Catch::Matchers::Contains(expected));
}

json::value with(const json::object& metadata, const std::string& key, std::size_t index, const json::value& value) {
  json::array array = metadata.at("tokenizer.ggml." + key).as_array();
  array[index] = value;
  return array;
}

}  // namespace

TEST_CASE("unknown kinds and pre-tokenizers are refused by name, never replaced") {
  const auto metadata = test::byte_level();
  check(metadata, "model", "rwkv", "tokenizer.ggml.model = \"rwkv\" is not supported");
  check_missing(metadata, "model", "tokenizer.ggml.model is missing");
  check(metadata, "model", 3, "tokenizer.ggml.model is not a string");
  check(metadata, "pre", "nosuch", "tokenizer.ggml.pre = \"nosuch\" is not known; known are gpt-2, ");
  check(metadata, "pre", "default", "\"default\" is not known");
  check_missing(metadata, "pre", "tokenizer.ggml.pre is missing");
  CHECK(text::Tokenizer::create(json::value{}).status().text == "the model has no tokenizer metadata");
}

TEST_CASE("tables are checked against each other") {
  for (const auto& metadata : {test::byte_level(), test::sentencepiece()}) {
    check_missing(metadata, "tokens", "tokenizer.ggml.tokens is missing");
    check(metadata, "tokens", json::array{}, "has 0 entries");
    check(metadata, "tokens", "x", "tokenizer.ggml.tokens is not an array");
    check(metadata, "tokens", with(metadata, "tokens", 7, 7), "tokenizer.ggml.tokens[7] is not a string");
    check(metadata, "tokens", with(metadata, "tokens", 7, metadata.at("tokenizer.ggml.tokens").as_array()[3]),
          "tokens[3] and [7] are both");
    check(metadata, "tokens", with(metadata, "tokens", 260, json::value(std::string(70000, 'x'))), "[260] has 70000 bytes");
    check(metadata, "token_type", json::array{1, 1}, "tokenizer.ggml.token_type has 2 entries for 26");
    check(metadata, "token_type", with(metadata, "token_type", 5, 9), "token_type[5] is 9");
    check(metadata, "token_type", with(metadata, "token_type", 5, -1), "token_type[5] is -1");
    check(metadata, "token_type", with(metadata, "token_type", 261, 6), "token 261 is a byte token, but spelled");
    check(metadata, "bos_token_id", 999999, "tokenizer.ggml.bos_token_id is 999999, but the vocabulary has the ids 0 to 26");
    check(metadata, "eos_token_id", -1, "tokenizer.ggml.eos_token_id is -1");
    check(metadata, "padding_token_id", 4294967295u, "padding_token_id is 4294967295");
    check(metadata, "eot_token_id", "x", "eot_token_id is not an integer");
    check(metadata, "add_bos_token", 1, "add_bos_token is not true or false");
    check(metadata, "remove_extra_whitespaces", 1, "remove_extra_whitespaces is not true or false");
    check(metadata, "precompiled_charsmap", json::array{1, 2}, "precompiled_charsmap: the precompiled normalisation table is too short");
    check(metadata, "precompiled_charsmap", json::array{1, 300}, "precompiled_charsmap[1] is no byte");
  }
}

TEST_CASE("byte tokens are spelled <0x00> to <0xFF>") {
  const auto metadata = test::sentencepiece();
  for (const char* token : {"<0x-1>", "<0xZZ>", "<0x1>", "<0x123>", "0x41", "<0X41>", "<0x 1>", ""})
    check(metadata, "tokens", with(metadata, "tokens", 50, token), "token 50 is a byte token, but spelled \"" + std::string{token} + "\"");
}

TEST_CASE("scores") {
  const auto metadata = test::sentencepiece();
  check_missing(metadata, "scores", "tokenizer.ggml.scores is missing");
  check(metadata, "scores", json::array{1.0}, "tokenizer.ggml.scores has 1 entries for 268 tokens");
  check(metadata, "scores", with(metadata, "scores", 4, "x"), "tokenizer.ggml.scores[4] is \"x\", not a number");
  check(metadata, "scores", with(metadata, "scores", 4, std::numeric_limits<double>::quiet_NaN()), "tokenizer.ggml.scores[4]");
}

TEST_CASE("merges name tokens of the vocabulary") {
  const auto metadata = test::byte_level();
  check_missing(metadata, "merges", "tokenizer.ggml.merges is missing");
  check(metadata, "merges", json::array{"a b", "ab"}, "tokenizer.ggml.merges[1] is \"ab\", not two tokens and a space");
  check(metadata, "merges", json::array{"a "}, "not two tokens and a space");
  check(metadata, "merges", json::array{"xyz b"}, "names the token \"xyz\", which the vocabulary lacks");
  check(metadata, "merges", json::array{"a xyz"}, "names the token \"xyz\"");
  check(metadata, "merges", json::array{"b a"}, "names the token \"ba\"");
  check(metadata, "merges", json::array{5}, "tokenizer.ggml.merges[0] is not a string");
}

TEST_CASE("BOS and EOS that are asked for must exist") {
  auto metadata = test::byte_level();
  metadata.erase("tokenizer.ggml.bos_token_id");
  metadata.erase("tokenizer.ggml.eos_token_id");
  check(metadata, "add_bos_token", true, "there is no tokenizer.ggml.bos_token_id");
  check(metadata, "add_eos_token", true, "there is no tokenizer.ggml.eos_token_id");
  const auto tokenizer = test::make(metadata);
  CHECK(tokenizer->bos() == -1);
  CHECK(tokenizer->eos() == -1);
}

TEST_CASE("every pre-tokenizer of the table compiles, loses nothing, and is linear in long runs") {
  for (const text::PreTokenizer& pre : text::pre_tokenizers()) {
    INFO(pre.name);
    auto splitter = text::Splitter::compile(pre.steps);
    REQUIRE(splitter.status().text == "");
    const auto scratch = splitter->scratch();
    std::vector<std::string_view> pieces;
    for (const char* unit :
         {"a", "A", " ", "\n", " \n", "1", "_", "\xE6\xAD\xAA", "\xCC\x81", "aA", "'", "\xC2\xA0", "\xF0\x9F\xA6\x80", "a 1'\n\t"}) {
      std::string text;
      while (text.size() < 30000) text += unit;
      for (const char* end : {"", "x", "5", "!"}) {
        const std::string whole = text + end;
        splitter->split(whole, *scratch, pieces);
        std::string joined;
        for (const std::string_view piece : pieces) joined += piece;
        REQUIRE(joined == whole);
      }
    }
  }
}

TEST_CASE("digits are grouped as in training") {
  const auto groups = [](const std::string& name) {
    for (const text::PreTokenizer& pre : text::pre_tokenizers()) {
      if (pre.name != name) continue;
      auto splitter = text::Splitter::compile(pre.steps);
      std::vector<std::string_view> pieces;
      splitter->split("1234567", *splitter->scratch(), pieces);
      return pieces.size();
    }
    return std::size_t{0};
  };
  CHECK(groups("gpt-2") == 1);
  CHECK(groups("llama-bpe") == 3);
  CHECK(groups("qwen2") == 7);
  CHECK(groups("smollm") == 7);
  CHECK(groups("deepseek-v3") == 3);
}
