#include "support/catch.hpp"
#include "text/token_view.hpp"
#include "vocabularies.hpp"

using namespace mekik;
using test::Ids;
using text::Detokenizer;

namespace {

std::string stream(const text::Tokenizer& tokenizer, const Ids& ids, bool special, bool at_start) {
  Detokenizer detokenizer{tokenizer, special, at_start};
  std::string text;
  for (const std::int32_t id : ids) {
    const std::string part = detokenizer.push(id);
    CHECK(is_utf8(part));
    text += part;
  }
  return text + detokenizer.finish();
}

}  // namespace

TEST_CASE("pieces, spellings and flags") {
  const auto tokenizer = test::make(test::byte_level());
  CHECK(tokenizer->piece(0) == std::string_view("\0", 1));
  CHECK(tokenizer->piece(258) == " a");
  CHECK(tokenizer->token(258) == "\xC4\xA0\x61");
  CHECK(tokenizer->piece(260) == "<|end|>");
  CHECK(tokenizer->flags(260) == (text::kTokenSpecial | text::kTokenEnd));
  CHECK(tokenizer->flags(262) == 0);
  CHECK(tokenizer->bos() == 261);
  CHECK(tokenizer->ends() == Ids{260});
  for (const std::int32_t id : {-1, 263, 2147483647}) {
    CHECK(tokenizer->piece(id).empty());
    CHECK(tokenizer->token(id).empty());
    CHECK(tokenizer->flags(id) == 0);
  }
  const auto pieces = test::make(test::sentencepiece());
  CHECK(pieces->piece(264) == " ab");
  CHECK(pieces->piece(3 + 0xE6) == "\xE6");
  CHECK(pieces->flags(266) == text::kTokenUnused);
}

TEST_CASE("a stream of tokens never cuts a character") {
  const auto tokenizer = test::make(test::byte_level());
  Detokenizer detokenizer{*tokenizer, false};
  CHECK(detokenizer.push(0xE6).empty());
  CHECK(detokenizer.push(0xAD).empty());
  CHECK(detokenizer.push(0xAA) == "\xE6\xAD\xAA");
  CHECK(detokenizer.push(0xF0).empty());
  CHECK(detokenizer.push('a') ==
        "\xEF\xBF\xBD"
        "a");
  CHECK(detokenizer.push(0xFF) == "\xEF\xBF\xBD");
  CHECK(detokenizer.push(0xF0).empty());
  CHECK(detokenizer.push(0x9F).empty());
  CHECK(detokenizer.finish() == "\xEF\xBF\xBD");
  CHECK(detokenizer.finish().empty());
}

TEST_CASE("invalid bytes are replaced by maximal subparts, in a stream as in one go") {
  const auto tokenizer = test::make(test::byte_level());
  std::uint32_t random = 1;
  for (int round = 0; round < 2000; ++round) {
    Ids ids;
    for (int i = 0; i < 8; ++i) {
      constexpr std::array<int, 12> kBytes{0xF0, 0x9F, 0x90, 0x80, 0xE6, 0xED, 0xA0, 0xC3, 0xC0, 0xF4, 0x41, 0xBF};
      random = random * 1664525u + 1013904223u;
      ids.push_back(kBytes[(random >> 16) % kBytes.size()]);
    }
    REQUIRE(stream(*tokenizer, ids, false, false) == utf8_replace_invalid(tokenizer->decode(ids, false)));
  }
}

TEST_CASE("special tokens are shown on demand") {
  const auto tokenizer = test::make(test::byte_level());
  const Ids ids{261, 256, 262, 260};
  CHECK(tokenizer->decode(ids, false) == "ab[user]");
  CHECK(tokenizer->decode(ids, true) == "<|im_start|>ab[user]<|end|>");
  CHECK(stream(*tokenizer, ids, false, true) == "ab[user]");
  CHECK(stream(*tokenizer, ids, true, true) == "<|im_start|>ab[user]<|end|>");
}

TEST_CASE("a SentencePiece model's one leading space is dropped at the start of a text") {
  const auto tokenizer = test::make(test::sentencepiece());
  CHECK(tokenizer->decode(Ids{1, 264, 264}, false) == "ab ab");
  CHECK(tokenizer->decode(Ids{259, 263}, false) == " a");
  CHECK(stream(*tokenizer, {1, 264, 264}, false, true) == "ab ab");
  CHECK(stream(*tokenizer, {264, 264}, false, false) == " ab ab");  // an answer goes on where the prompt ended
  auto metadata = test::sentencepiece();
  metadata["tokenizer.ggml.add_space_prefix"] = false;
  CHECK(test::make(metadata)->decode(Ids{264}, false) == " ab");
  CHECK(stream(*test::make(metadata), {264}, false, true) == " ab");
}

TEST_CASE("every id of the metadata and well-known control tokens end an answer") {
  auto metadata = test::byte_level();
  CHECK(test::make(metadata)->ends() == Ids{260});
  auto& tokens = metadata["tokenizer.ggml.tokens"].as_array();
  auto& types = metadata["tokenizer.ggml.token_type"].as_array();
  for (const char* token : {"<|im_end|>", "</s>", "<|stop|>"}) {
    tokens.push_back(json::value(token));
    types.push_back(token == std::string_view{"</s>"} ? 1 : 3);
  }
  CHECK(test::make(metadata)->ends() == Ids{260, 263});
  metadata["tokenizer.ggml.eot_token_id"] = 265;
  metadata["tokenizer.ggml.eom_token_id"] = 261;
  const auto tokenizer = test::make(metadata);
  CHECK(tokenizer->ends() == Ids{260, 261, 263, 265});
  CHECK((tokenizer->flags(265) & text::kTokenEnd) != 0);
}

TEST_CASE("a view of tokens shows spaces, bytes and what is special") {
  CHECK(text::visible_piece(" a\n\t\r") ==
        "\xC2\xB7"
        "a\xE2\x8F\x8E\xE2\x87\xA5\xE2\x90\x8D");
  CHECK(text::visible_piece("\xF0\x9F") ==
        "\xE2\x80\xB9"
        "F0\xE2\x80\xBA\xE2\x80\xB9"
        "9F\xE2\x80\xBA");
  CHECK(text::visible_piece("\xE2\x80\x8B\x1B") == "\xE2\x80\xB9U+200B\xE2\x80\xBA\xE2\x80\xB9U+001B\xE2\x80\xBA");
  const auto tokenizer = test::make(test::byte_level());
  const Ids ids{256, 258, 0xF0, 260};
  CHECK(text::token_view(*tokenizer, ids, false) ==
        "4 tokens\nab|\xC2\xB7"
        "a|\xE2\x80\xB9"
        "F0\xE2\x80\xBA|<|end|>\n"
        "     256  ab\n"
        "     258  \xC2\xB7"
        "a\n"
        "     240  \xE2\x80\xB9"
        "F0\xE2\x80\xBA  (part of a character)\n"
        "     260  <|end|>  (special, ends)\n");
  CHECK(text::token_view(*tokenizer, {}, false) == "0 tokens\n");
  CHECK(text::token_view(*tokenizer, Ids{260}, true) ==
        "1 token\n\x1B[1;35m<|end|>\x1B[0m\n     260  \x1B[1;35m<|end|>\x1B[0m  (special, ends)\n");
}
