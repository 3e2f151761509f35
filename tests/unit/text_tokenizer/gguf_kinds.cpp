// The kinds of GGUF vocabularies besides the two large ones, and the steps of pre-tokenizers that are no patterns.
#include "support/catch.hpp"
#include "text/tokenizer_split.hpp"
#include "vocabularies.hpp"

using namespace mekik;
using test::Ids;

namespace {

json::object metadata(const std::string& model, const json::array& tokens, const json::array& types, const json::array& scores = {}) {
  json::object object{{"tokenizer.ggml.model", model}, {"tokenizer.ggml.tokens", tokens}, {"tokenizer.ggml.token_type", types}};
  if (!scores.empty()) object["tokenizer.ggml.scores"] = scores;
  return object;
}

json::object unigram() {
  json::object object = metadata("t5", {"<pad>", "</s>", "<unk>", "\u2581", "\u2581a", "b", "\u2581ab"}, {3, 3, 2, 1, 1, 1, 1},
                                 {0.0, 0.0, 0.0, -3.0, -1.0, -2.0, -2.5});
  object["tokenizer.ggml.unknown_token_id"] = 2;
  object["tokenizer.ggml.eos_token_id"] = 1;
  object["tokenizer.ggml.add_space_prefix"] = true;
  object["tokenizer.ggml.remove_extra_whitespaces"] = true;
  return object;
}

json::object wordpiece() {
  json::object object = metadata("bert", {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581hel", "lo", "\u2581!"}, {3, 3, 3, 3, 1, 1, 1});
  object["tokenizer.ggml.unknown_token_id"] = 1;
  object["tokenizer.ggml.cls_token_id"] = 2;
  object["tokenizer.ggml.seperator_token_id"] = 3;
  return object;
}

json::object spaced() {
  json::object object =
      metadata("gemma4", {"<bos>", "\u2581", "a", "\u2581a", "<0x0A>", "b", "<unk>", "<turn|>"}, {3, 1, 1, 1, 6, 1, 2, 3});
  object["tokenizer.ggml.merges"] = json::array{"\u2581 a"};
  object["tokenizer.ggml.bos_token_id"] = 0;
  object["tokenizer.ggml.unknown_token_id"] = 6;
  return object;
}

std::vector<std::string> pieces(std::string_view step, std::string_view text) {
  const std::array steps{step};
  const auto splitter = text::Splitter::compile(steps);
  const auto scratch = splitter->scratch();
  std::vector<std::string_view> found;
  splitter->split(text, *scratch, found);
  return {found.begin(), found.end()};
}

}  // namespace

TEST_CASE("t5: the best path of pieces, unknown characters as one, spaces in order") {
  const auto tokenizer = test::make(unigram());
  CHECK(tokenizer->encode("ab  b", true, false) == Ids{6, 3, 5, 1});
  CHECK(tokenizer->encode("  xx ", false, false) == Ids{3, 2});
  CHECK(tokenizer->encode("ab</s>b", false, true) == Ids{6, 1, 3, 5});
  CHECK(tokenizer->decode(Ids{6, 3, 5, 1}, false) == "ab b");
  CHECK(tokenizer->kind() == "sentencepiece unigram");
  auto broken = unigram();
  broken.erase("tokenizer.ggml.unknown_token_id");
  CHECK(text::Tokenizer::create(broken).status().text.find("unknown_token_id is missing") != std::string::npos);
}

TEST_CASE("bert: words of pieces in lower case without accents, and pairs with types") {
  const auto tokenizer = test::make(wordpiece());
  CHECK(tokenizer->encode("H\u00E9llo  !", true, false) == Ids{2, 4, 5, 6, 3});
  CHECK(tokenizer->encode("hello? [SEP]", false, true) == Ids{4, 5, 1, 3});
  const auto pair = tokenizer->encode_pair("hello", "!");
  CHECK(pair.ids == Ids{2, 4, 5, 3, 6, 3});
  CHECK(pair.types == Ids{0, 0, 0, 0, 1, 1});
  CHECK(tokenizer->decode(Ids{2, 4, 5, 6, 3}, false) == "hello!");
  auto cased = wordpiece();
  cased["tokenizer.ggml.normalizer.lowercase"] = false;
  CHECK(test::make(cased)->encode("Hello", false, false) == Ids{1});
}

TEST_CASE("gemma4: merges over UTF-8 with signs for spaces, bytes for the rest") {
  const auto tokenizer = test::make(spaced());
  CHECK(tokenizer->encode("a a\n", true, false) == Ids{0, 2, 3, 4});
  CHECK(tokenizer->encode("a<turn|>?", false, true) == Ids{2, 7, 6});
  CHECK(tokenizer->decode(Ids{0, 2, 3, 4}, false) == "a a\n");
  CHECK(tokenizer->ends() == Ids{7});
}

TEST_CASE("digits in groups of three from the right") {
  using Pieces = std::vector<std::string>;
  CHECK(pieces(text::kDigitThrees, "a1234567b12") == Pieces{"a", "1", "234", "567", "b", "12"});
  CHECK(pieces(text::kEndingDigitThrees, "1234 1234a ab12345") == Pieces{"1", "234", " 1234a ab", "12", "345"});
  CHECK(pieces(text::kEndingDigitThrees, "") == Pieces{});
  CHECK(pieces(text::kDigitThrees, std::string(100000, '7')).size() == 33334);
}
