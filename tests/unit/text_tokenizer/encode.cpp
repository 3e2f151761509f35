#include <thread>

#include "support/catch.hpp"
#include "vocabularies.hpp"

using namespace mekik;
using test::Ids;
using text::TextPart;

TEST_CASE("byte-level BPE merges by rank inside the pieces of its pattern") {
  const auto tokenizer = test::make(test::byte_level());
  CHECK(tokenizer->encode("abc", false, false) == Ids{'a', 259});
  CHECK(tokenizer->encode("ab", false, false) == Ids{256});
  CHECK(tokenizer->encode("b a", false, false) == Ids{'b', 258});
  CHECK(tokenizer->encode("", false, false).empty());
  CHECK(tokenizer->encode("a\xC3\xA9", false, false) == Ids{'a', 0xC3, 0xA9});
  CHECK(tokenizer->kind() == "bpe, pre gpt-2");
  CHECK(tokenizer->size() == 263);
}

TEST_CASE("a pre-tokenizer with ignore_merges takes whole pieces first") {
  auto metadata = test::byte_level();
  metadata["tokenizer.ggml.pre"] = "llama-bpe";
  const auto tokenizer = test::make(metadata);
  CHECK(tokenizer->encode("abc", false, false) == Ids{257});
  CHECK(tokenizer->encode("a", true, false) == Ids{261, 'a'});  // this family adds BOS unless the file says no
  metadata["tokenizer.ggml.add_bos_token"] = false;
  CHECK(test::make(metadata)->encode("a", true, false) == Ids{'a'});
}

TEST_CASE("NFC is applied where the model was trained on it, and only there") {
  auto metadata = test::byte_level();
  CHECK(test::make(metadata)->encode("e\xCC\x81", false, false) == Ids{'e', 0xCC, 0x81});
  metadata["tokenizer.ggml.pre"] = "qwen2";
  const auto tokenizer = test::make(metadata);
  CHECK(tokenizer->encode("e\xCC\x81", false, false) == Ids{0xC3, 0xA9});
  CHECK(tokenizer->encode("\xE2\x84\xA6", false, false) == Ids{0xCE, 0xA9});                        // OHM SIGN is OMEGA
  CHECK(tokenizer->encode("\xE1\x84\x80\xE1\x85\xA1", false, false) == Ids{0xEA, 0xB0, 0x80});      // Hangul jamo compose
  CHECK(tokenizer->encode("q\xCC\x81\xCC\xA3", false, false) == Ids{'q', 0xCC, 0xA3, 0xCC, 0x81});  // marks below come first
  std::string marks = "q";
  for (int i = 0; i < 100000; ++i) marks += i % 2 == 0 ? "\xCC\x81" : "\xCC\xA3";
  CHECK(tokenizer->encode(marks, false, false).size() == marks.size());
}

TEST_CASE("bytes that are not UTF-8 are kept") {
  const auto tokenizer = test::make(test::byte_level());
  const std::string text = "ab\xFF\xF0\x9F\xC0\x80 a\xE6";
  CHECK(tokenizer->encode(text, false, false) == Ids{256, 0xFF, 0xF0, 0x9F, 0xC0, 0x80, 258, 0xE6});
  CHECK(test::make(test::sentencepiece())->encode("a\xFF", false, false) == Ids{263, 3 + 0xFF});
}

TEST_CASE("special tokens are recognised in trusted text only, longest first, across trusted parts") {
  const auto tokenizer = test::make(test::byte_level());
  const auto encode = [&](const std::vector<TextPart>& parts) { return tokenizer->encode(parts, false); };
  CHECK(encode({{"<|end|>", true}}) == Ids{260});
  CHECK(encode({{"<|end|>", false}}).size() == 7);
  CHECK(encode({{"<|en", true}, {"d|>", true}}) == Ids{260});
  CHECK(encode({{"<|en", true}, {"d|>", false}}).size() == 7);
  CHECK(encode({{"<|en", false}, {"d|>", true}}).size() == 7);
  CHECK(encode({{"", true}, {"<|end|", false}, {">", true}}).size() == 7);
  CHECK(encode({{"<|im_start|>", true}, {"ab", false}, {"<|end|>", true}}) == Ids{261, 256, 260});
  CHECK(encode({{"a", true}, {"b", false}}) == Ids{256});                  // otherwise one text
  CHECK(encode({{"x[us", false}, {"er]x", true}}) == Ids{'x', 262, 'x'});  // what authors added is text, wherever it stands
}

TEST_CASE("the longest special token wins at each place") {
  auto metadata = test::byte_level();
  auto& tokens = metadata["tokenizer.ggml.tokens"].as_array();
  auto& types = metadata["tokenizer.ggml.token_type"].as_array();
  for (const char* token : {"<|end|>!", "<"}) {
    tokens.push_back(json::value(token == std::string_view{"<"} ? "<|" : token));
    types.push_back(3);
  }
  const auto tokenizer = test::make(metadata);
  CHECK(tokenizer->encode("<|end|>!<|end|>?<|x", false, true) == Ids{263, 260, '?', 264, 'x'});
  // Cut short by the end of trust, the shorter one is taken.
  const std::vector<TextPart> parts{{"<|end|>", true}, {"!", false}};
  CHECK(tokenizer->encode(parts, false) == Ids{260, '!'});
}

TEST_CASE("SentencePiece BPE merges by score, adds its space once, and falls back to bytes") {
  const auto tokenizer = test::make(test::sentencepiece());
  CHECK(tokenizer->encode("ab", false, false) == Ids{264});
  CHECK(tokenizer->encode("", false, false).empty());
  CHECK(tokenizer->encode("", true, false) == Ids{1});
  CHECK(tokenizer->encode("a", true, false) == Ids{1, 263});
  CHECK(tokenizer->encode("\xC3\xA9", false, false) == Ids{259, 3 + 0xC3, 3 + 0xA9});
  CHECK(tokenizer->encode("<s>a", false, true) == Ids{1, 263});
  CHECK(tokenizer->encode("a</s>a", false, true) == Ids{263, 2, 260});
  CHECK(tokenizer->encode("</s>a", false, true) == Ids{2, 260});
  CHECK(tokenizer->encode("a  a", false, false) == Ids{263, 265, 260});  // the authors' two spaces before any merging
  CHECK(tokenizer->encode("a\xE2\x96\x81\x61", false, false) == Ids{263, 263});
  CHECK(tokenizer->kind() == "sentencepiece bpe");
  auto metadata = test::sentencepiece();
  metadata["tokenizer.ggml.add_space_prefix"] = false;
  CHECK(test::make(metadata)->encode("ab a", false, false) == Ids{262, 263});
}

TEST_CASE("an unused token may be a step of merging but never comes out") {
  auto metadata = test::sentencepiece();
  metadata["tokenizer.ggml.add_space_prefix"] = false;
  const auto tokenizer = test::make(metadata);
  CHECK(tokenizer->encode("bb", false, false) == Ids{261, 261});
  CHECK(tokenizer->encode("abb", false, false) == Ids{267});  // bb merges first, then a + bb
}

TEST_CASE("characters become the unknown token where bytes are missing") {
  auto metadata = test::sentencepiece();
  metadata["tokenizer.ggml.token_type"].as_array()[3 + 0xC3] = 1;
  const auto tokenizer = test::make(metadata);
  CHECK(tokenizer->encode("\xC3\xA9", false, false) == Ids{259, 0});
}

TEST_CASE("long runs take n log n time, whichever way they merge") {
  const auto bytes = test::make(test::byte_level());
  const auto pieces = test::make(test::sentencepiece());
  std::string text;
  for (int i = 0; i < 200000; ++i) text += "abc"[i % 3];
  CHECK(bytes->encode(text, false, false).size() == 133333);
  CHECK(pieces->decode(pieces->encode(text, false, false), false) == text);
}

TEST_CASE("the same words give the same ids whether or not they are remembered") {
  const auto tokenizer = test::make(test::byte_level());
  std::string text;
  Ids expected;
  for (int i = 0; i < 2000; ++i) {
    const std::string word = " a" + std::string(static_cast<std::size_t>(i % 23), "abcxyz"[i % 6]);
    text += word;
    const Ids ids = tokenizer->encode(word, false, false);
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  CHECK(tokenizer->encode(text, false, false) == expected);
}

TEST_CASE("one tokenizer serves many threads") {
  const auto tokenizer = test::make(test::byte_level());
  const std::string text(3000, 'a');
  const Ids expected = tokenizer->encode(text + " abc", false, false);
  std::vector<Ids> results(4);
  {
    std::vector<std::jthread> threads;
    for (Ids& result : results)
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) result = tokenizer->encode(text + " abc", false, false);
      });
  }
  for (const Ids& result : results) CHECK(result == expected);
}

TEST_CASE("two texts are joined as the metadata asks for, with a type for every id") {
  auto metadata = test::byte_level();
  const auto plain = test::make(metadata)->encode_pair("ab", "<|end|>");
  CHECK(plain.ids.size() == 1 + 7);  // texts are not trusted
  CHECK(plain.types == Ids(8, 0));
  metadata["tokenizer.ggml.add_bos_token"] = true;
  metadata["tokenizer.ggml.add_eos_token"] = true;
  metadata["tokenizer.ggml.add_sep_token"] = true;
  CHECK(text::Tokenizer::create(metadata).status().text.find("seperator_token_id") != std::string::npos);
  metadata["tokenizer.ggml.seperator_token_id"] = 262;
  const auto tokenizer = test::make(metadata);
  CHECK(tokenizer->encode_pair("ab", "b").ids == Ids{261, 256, 260, 262, 'b', 260});
  CHECK(tokenizer->encode_typed("ab", true).ids == Ids{261, 256, 260});
  CHECK(tokenizer->encode_typed("ab", false).types == Ids{0});
}
