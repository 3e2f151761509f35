// What the vectors of tests/tokenizers cannot say: refusals, trust, end tokens, patterns.
#include <functional>

#include "support/catch.hpp"
#include "text/hf/regex.hpp"
#include "vocabularies.hpp"

using namespace mekik;
using test::Ids;
using text::TextPart;

namespace {

json::value parsed(const std::string& text) {
  auto value = json::parse(text);
  if (!value.ok()) throw std::runtime_error(value.status().text + " in " + text);
  return *value;
}

// a 0, b 1, ab 2, <unk> 3, space 4, <s> 5, </s> 6, <x> 7 (not special), "Q" 8.
json::object small() {
  return parsed(
             R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<unk>": 3, " ": 4}, "merges": [["a", "b"]], "unk_token": "<unk>"},
    "added_tokens": [{"id": 5, "content": "<s>", "special": true}, {"id": 6, "content": "</s>", "special": true},
                     {"id": 7, "content": "<x>", "special": false, "normalized": false}, {"id": 8, "content": "Q", "normalized": true}]})")
      .as_object();
}

std::unique_ptr<text::Tokenizer> made(json::object json, const std::string& more = "{}") {
  json::object files = parsed(more).as_object();
  files["tokenizer_json"] = std::move(json);
  return test::make(json::object{{"hf", files}});
}

std::string base64(const std::string& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto byte = [&](std::size_t i) { return at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u; };
    const std::uint32_t bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (std::size_t i = 0; i < 4; ++i) out += at + i <= bytes.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

std::string refusal(const std::string& key, const std::string& value) {
  json::object json = small();
  json[key] = parsed(value);
  const auto tokenizer = text::Tokenizer::create(json::object{{"hf", json::object{{"tokenizer_json", json}}}});
  return tokenizer.ok() ? "accepted" : tokenizer.status().text;
}

std::string matches(const std::string& pattern, const std::string& text) {
  auto regex = text::hf::Regex::compile(pattern, "test");
  if (!regex.ok()) return regex.status().text;
  text::hf::MatchScratch scratch;
  std::string out;
  regex->each(text, scratch, [&](std::size_t begin, std::size_t end) { out += "[" + text.substr(begin, end - begin) + "]"; });
  return out;
}

}  // namespace

TEST_CASE("unknown kinds of a tokenizer.json are refused by name") {
  using Catch::Matchers::Contains;
  CHECK_THAT(refusal("normalizer", R"({"type": "Nosuch"})"),
             Contains("tokenizer.json.normalizer: the kind \"Nosuch\" of normalizer is not known"));
  CHECK_THAT(refusal("normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "NFX"}]})"),
             Contains("normalizers[1]: the kind \"NFX\""));
  CHECK_THAT(refusal("normalizer", R"({"type": "Replace", "content": ""})"), Contains("normalizer.pattern is missing"));
  CHECK_THAT(refusal("normalizer", R"({"type": "Replace", "pattern": {"Regex": "(a"}, "content": ""})"),
             Contains("pattern.Regex: the pattern \"(a\""));
  CHECK_THAT(refusal("normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "AAAA"})"), Contains("too short"));
  CHECK_THAT(refusal("pre_tokenizer", R"({"type": "Nosuch"})"), Contains("the kind \"Nosuch\" of pre-tokenizer"));
  CHECK_THAT(refusal("pre_tokenizer", R"({"type": "Punctuation", "behavior": "Odd"})"), Contains("behavior is not Removed, Isolated"));
  CHECK_THAT(refusal("pre_tokenizer", R"({"type": "Metaspace", "replacement": "ab"})"), Contains("replacement is not one character"));
  CHECK_THAT(refusal("pre_tokenizer", R"({"type": "FixedLength", "length": 0})"), Contains("length is not at least 1"));
  CHECK_THAT(refusal("decoder", R"({"type": "Nosuch"})"), Contains("the kind \"Nosuch\" of decoder"));
  CHECK_THAT(refusal("post_processor", R"({"type": "Nosuch"})"), Contains("the kind \"Nosuch\" of post-processor"));
  CHECK_THAT(refusal("post_processor", R"({"type": "BertProcessing", "cls": ["x", 99], "sep": ["y", 1]})"),
             Contains("cls[1] is 99, no id"));
  CHECK_THAT(refusal("model", R"({"type": "Nosuch"})"), Contains("the kind \"Nosuch\" of model is not known"));
  CHECK_THAT(refusal("model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]})"), Contains("the vocabulary lacks \"b\""));
  CHECK_THAT(refusal("model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b c"]})"), Contains("not two tokens and a space"));
  CHECK_THAT(refusal("model", R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})"), Contains("the id -1, outside 0 to"));
  CHECK_THAT(refusal("model", R"({"type": "BPE", "vocab": {}, "merges": []})"), Contains("has 0 entries"));
  CHECK_THAT(refusal("model", R"({"type": "Unigram", "vocab": [["a", 0]], "unk_id": 4})"),
             Contains("unk_id is 4, but the vocabulary has the ids 0 to 0"));
  CHECK_THAT(refusal("version", "\"2.0\""), Contains("version is \"2.0\""));
}

TEST_CASE("folders without a known tokenizer say what they lack") {
  using Catch::Matchers::Contains;
  const auto said = [](const std::string& files) {
    const auto tokenizer = text::Tokenizer::create(json::object{{"hf", parsed(files)}});
    return tokenizer.ok() ? "accepted" : tokenizer.status().text;
  };
  CHECK_THAT(said("{}"), Contains("neither tokenizer.json, nor tokenizer.model"));
  CHECK_THAT(said(R"({"vocab_txt": "a\nb\n"})"), Contains("vocab.txt lacks \"[CLS]\""));
  CHECK_THAT(said(R"({"vocab_txt": "a", "tokenizer_config": {"tokenizer_class": "OddTokenizer"}})"),
             Contains("tokenizer_class \"OddTokenizer\" is not known"));
  CHECK_THAT(said(R"({"sentencepiece_base64": "!"})"), Contains("tokenizer.model: byte 0 is not base64"));
  CHECK_THAT(said(R"({"sentencepiece_base64": "CgX/"})"), Contains("tokenizer.model is damaged"));
  CHECK_THAT(said(R"({"sentencepiece_base64": "", "tokenizer_config": {"tokenizer_class": "XLMRobertaTokenizer"}})"),
             Contains("XLMRobertaTokenizer"));
}

TEST_CASE("a tokenizer.model alone: classes that put BOS in front") {
  std::string model;  // <unk>, <s>, </s>, "▁a" of SentencePiece's protobuf
  for (const auto& [text, type] : {std::pair{std::string{"<unk>"}, '\2'},
                                   {"<s>", '\3'},
                                   {"</s>", '\3'},
                                   {"\xE2\x96\x81"
                                    "a",
                                    '\1'}}) {
    const std::string piece = std::string{"\x0A"} + static_cast<char>(text.size()) + text + "\x18" + type;
    model += std::string{"\x0A"} + static_cast<char>(piece.size()) + piece;
  }
  const auto ids = [&](const std::string& config) {
    return test::make(json::object{{"hf", json::object{{"sentencepiece_base64", base64(model)}, {"tokenizer_config", parsed(config)}}}})
        ->encode("a", true, false);
  };
  CHECK(ids(R"({"tokenizer_class": "LlamaTokenizer"})") == Ids{3});
  for (const char* name : {"BaichuanTokenizer", "InternLMTokenizer", "InternLM2Tokenizer", "InternLM3Tokenizer"}) {
    CHECK(ids(std::string{R"({"tokenizer_class": ")"} + name + "\"}") == Ids{1, 3});
    CHECK(ids(std::string{R"({"add_bos_token": false, "tokenizer_class": ")"} + name + "\"}") == Ids{3});
  }
}

TEST_CASE("vocabularies of tiktoken: merged by rank, cut as their class says") {
  const auto create = [](const std::string& lines, const std::string& config) {
    return text::Tokenizer::create(
        json::object{{"hf", json::object{{"sentencepiece_base64", base64(lines)}, {"tokenizer_config", parsed(config)}}}});
  };
  std::string lines;
  for (int byte = 0; byte < 256; ++byte) lines += base64(std::string(1, static_cast<char>(byte))) + " " + std::to_string(byte) + "\n";
  const std::string you = "\xE4\xBD\xA0";
  for (const std::string& token :
       {std::string{"bc"}, std::string{"ab"}, std::string{"abc"}, std::string{"12"}, you, you.substr(0, 2), "x" + you})
    lines += base64(token) + " " + std::to_string(std::count(lines.begin(), lines.end(), '\n')) + "\n";
  const std::string added =
      R"({"add_bos_token": true, "bos_token": "[B]", "added_tokens_decoder": {"300": {"content": "[B]", "special": true}})";
  const auto tokenizer = create(lines, added + "}");
  REQUIRE(tokenizer.ok());
  CHECK((*tokenizer)->encode("abc", false, false) == Ids{258});  // a word of the vocabulary, whatever its merges
  CHECK((*tokenizer)->encode("abcab", false, false) == Ids{258, 257});
  CHECK((*tokenizer)->encode("1234", false, false) == Ids{259, 51, 52});
  CHECK((*tokenizer)->encode("y" + you, false, false) == Ids{121, 260});  // merged of a token that comes behind it
  CHECK((*tokenizer)->encode("x" + you, false, false) == Ids{262});
  CHECK((*tokenizer)->encode("[B]a", true, true) == Ids{300, 300, 97});
  const auto kimi = create(lines, added + R"(, "tokenizer_class": "TikTokenTokenizer"})");
  REQUIRE(kimi.ok());
  CHECK((*kimi)->encode("x" + you, false, false) == Ids{120, 260});  // Chinese is apart
  const auto said = [&](const std::string& text) { return create(text, "{}").status().text; };
  using Catch::Matchers::Contains;
  CHECK_THAT(said("YQ== 0\nYg==\n"), Contains("line 2 of the tiktoken vocabulary is not a token in base64"));
  CHECK_THAT(said("YQ== 0\nYQ== 1\n"), Contains("line 2 of the tiktoken vocabulary has a token that was there before"));
  CHECK_THAT(said("YQ== 0\nYg== 0\n"), Contains("two tokens of the tiktoken vocabulary have the number 0"));
  CHECK_THAT(said("YQ== 99999999\n"), Contains("line 1 of the tiktoken vocabulary has the number 99999999"));
}

TEST_CASE("special tokens of a tokenizer.json are recognised in trusted text only") {
  auto json = small();
  json["normalizer"] = parsed(R"({"type": "Lowercase"})");
  const auto tokenizer = made(json);
  const auto encode = [&](const std::vector<TextPart>& parts) { return tokenizer->encode(parts, false); };
  CHECK(encode({{"<s>ab</s>", true}}) == Ids{5, 2, 6});
  CHECK(tokenizer->encode("<s><x>", false, false) == Ids{3, 3, 3, 7});  // one unknown character each
  CHECK(encode({{"<s>", true}, {"<s>", false}, {"<x>", false}}) == Ids{5, 3, 3, 3, 7});
  CHECK(encode({{"<s", true}, {">", true}, {"a", false}}) == Ids{5, 0});
  CHECK(encode({{"<s", true}, {">", false}}).size() == 3);
  CHECK(encode({{"<s", false}, {">", true}}).size() == 3);
  CHECK(encode({{"a", false}, {"b", true}}) == Ids{2});           // apart from that, one text
  CHECK(tokenizer->encode("QqB", false, false) == Ids{8, 8, 1});  // "Q" is found after the text is in lower case
}

TEST_CASE("tokens of the configuration files: special, end, BOS") {
  const std::string config =
      R"({"tokenizer_config": {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "additional_special_tokens": ["<x>"]},
    "generation_config": {"eos_token_id": [6, 2]}, "config": {"eos_token_id": 1, "bos_token_id": 0}})";
  const auto tokenizer = made(small(), config);
  CHECK(tokenizer->bos() == 5);
  CHECK(tokenizer->eos() == 6);
  CHECK(tokenizer->ends() == Ids{1, 2, 6});
  CHECK((tokenizer->flags(6) & text::kTokenEnd) != 0);
  CHECK((tokenizer->flags(7) & text::kTokenSpecial) != 0);
  CHECK(made(small(), R"({"added_tokens": {"<y>": 9}})")->encode("<y>", false, false) == Ids{9});
  CHECK(made(small())->bos() == -1);
  CHECK(made(small(), R"({"config": {"bos_token_id": 5, "eos_token_id": 6}})")->bos() == 5);
  CHECK(made(small(), R"({"config": {"eos_token_id": 6}})")->eos() == 6);
  CHECK(made(small(), R"({"tokenizer_config": {"bos_token": null}, "config": {"bos_token_id": 5}})")->bos() == -1);
}

TEST_CASE("pieces are the bytes that tokens stand for") {
  auto json = small();
  json["model"] = parsed(R"({"type": "BPE", "vocab": {"\u0120a": 0, "\u00e2": 1, "<0x41>": 2}, "merges": []})");
  json["decoder"] = parsed(R"({"type": "ByteLevel"})");
  const auto bytes = made(json);
  CHECK(bytes->piece(0) == " a");
  CHECK(bytes->piece(1) == "\xE2");
  CHECK(bytes->decode(Ids{0, 1}, false) == " a\xEF\xBF\xBD");
  CHECK(bytes->token(99).empty());
  json["decoder"] = parsed(R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]})");
  CHECK(made(json)->piece(2) == "A");
}

TEST_CASE("patterns mean what they mean to Oniguruma") {
  CHECK(matches(R"(\s+$)", "a  \n b  ") == "[  ][  ]");
  CHECK(matches("^a", "a\na") == "[a][a]");
  CHECK(matches("(?m:a.b)", "a\nb") == "[a\nb]");
  CHECK(matches(R"(\h+)", "xface9g") == "[face9]");
  CHECK(matches("[a-z&&[^aeiou]]+", "abcde") == "[bcd]");
  CHECK(matches("[^a-c&&[b-z]]+", "abcd z1") == "[a][d z1]");
  CHECK(matches("[a[0-9]_]+", "a1_b2") == "[a1_][2]");
  CHECK(matches(R"(\w+)", "a\xCC\x81_\xE2\x82\xAC") == "[a\xCC\x81_]");
  CHECK(matches(R"([^\W\d]+)", "a1b") == "[a][b]");
  CHECK(matches("a{,2}", "aaa") == "[aa][a]");
  CHECK(matches("x*", "axb") == "[][x][]");
  CHECK(matches("(?~a)", "a").find("absence operators are not supported") != std::string::npos);
  std::string run(100000, ' ');
  CHECK(matches(R"(\s+$)", run + "x").empty());
  CHECK(matches(R"((?:[a-z&&[^q]]\p{M}*)+)", std::string(100000, 'a')).size() == 100002);
}

TEST_CASE("a tokenizer's steps that make too much of a text are refused by name") {
  const auto message_of = [](const std::function<void()>& run) -> std::string {
    try {
      run();
    } catch (const text::TextRefused& refused) {
      return refused.what();
    }
    return "accepted";
  };
  const auto refused = [&](const std::string& key, const std::string& value, const std::string& of = "aaaa") {
    json::object json = small();
    json[key] = parsed(value);
    const auto tokenizer = made(std::move(json));
    return message_of([&] { tokenizer->encode(of, true, false); });
  };
  const auto times = [](int n, const std::string& step, const std::string& list) {
    std::string all;
    for (int i = 0; i < n; ++i) all += (i == 0 ? "" : ",") + step;
    return R"({"type": "Sequence", ")" + list + "\": [" + all + "]}";
  };
  const std::string twice = R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";
  CHECK(refused("normalizer", times(8, twice, "normalizers")) == "accepted");
  CHECK(refused("normalizer", times(40, twice, "normalizers")) ==
        "tokenizer.json.normalizer.normalizers[18] makes more than 1.0 MiB of a text of 4 B; that has no end in sight");
  CHECK_THAT(refused("pre_tokenizer", times(40, R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})", "pretokenizers"),
                     "\u00E9"),
             Catch::Matchers::Contains("tokenizer.json.pre_tokenizer.pretokenizers["));
  // Grows and shrinks again: never large, but without end.
  const std::string wide = R"({"type": "Replace", "pattern": {"Regex": "a"}, "content": ")" + std::string(1000, 'b') + "\"}";
  const std::string narrow = R"({"type": "Replace", "pattern": {"Regex": "b+"}, "content": "a"})";
  CHECK_THAT(refused("normalizer", times(400, wide + "," + narrow, "normalizers"), std::string(100000, 'a')),
             Catch::Matchers::Contains("makes more than"));
  // A pattern that would have to try everything.
  CHECK_THAT(refused("pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "(a|a)+[xy]z"}, "behavior": "Isolated"})",
                     std::string(64, 'a') + "z"),
             Catch::Matchers::Contains("tokenizer.json.pre_tokenizer has a pattern that gives up on this text"));
  const std::string before = R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";
  CHECK_THAT(refusal("decoder", times(40, before, "decoders")), Catch::Matchers::Contains("tokenizer.json.decoder.decoders["));
  json::object fused = small();
  fused["decoder"] = parsed(times(1, R"({"type": "Fuse"})", "decoders"));
  json::array& steps = fused["decoder"].as_object()["decoders"].as_array();
  for (int i = 0; i < 40; ++i) steps.push_back(parsed(R"({"type": "Replace", "pattern": {"String": "bb"}, "content": "bbbb"})"));
  const auto tokenizer = made(std::move(fused));
  CHECK_THAT(message_of([&] { tokenizer->decode(Ids(8, 1), false); }), Catch::Matchers::Contains("tokenizer.json.decoder.decoders["));
}

TEST_CASE("a text's fewest tokens are known where no step can leave text out") {
  const auto fewest = [](const std::function<void(json::object&)>& change, const std::string& text = std::string(1000, 'a')) {
    json::object json = small();
    change(json);
    return made(std::move(json))->fewest_tokens(text);
  };
  const auto with = [&](const std::string& key, const std::string& value) {
    return fewest([&](json::object& json) { json[key] = parsed(value); });
  };
  CHECK(fewest([](json::object&) {}) == 200);  // "<unk>" has 5 bytes
  CHECK(fewest([](json::object& json) { json["model"].as_object()["fuse_unk"] = true; }) == 0);
  CHECK(fewest([](json::object& json) { json["model"].as_object().erase("unk_token"); }) == 0);
  CHECK(with("normalizer", R"({"type": "NFC"})") == 25);
  CHECK(with("normalizer", R"({"type": "Replace", "pattern": {"String": "aa"}, "content": "b"})") == 67);
  for (const char* lossy : {R"({"type": "StripAccents"})", R"({"type": "Strip"})", R"({"type": "Nmt"})", R"({"type": "BertNormalizer"})",
                            R"({"type": "Replace", "pattern": {"String": "a"}, "content": ""})",
                            R"({"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"})"})
    CHECK(with("normalizer", lossy) == 0);
  CHECK(with("pre_tokenizer", R"({"type": "Split", "pattern": {"String": "b"}, "behavior": "Isolated"})") == 200);
  CHECK(with("pre_tokenizer", R"({"type": "Split", "pattern": {"String": "b"}, "behavior": "Removed"})") == 0);
  CHECK(with("pre_tokenizer", R"({"type": "Whitespace"})") == 0);
  // Of letters alone: of the alphabet of bytes this vocabulary has a and b.
  const auto letters = [](json::object& json) {
    json["pre_tokenizer"] = parsed(R"({"type": "ByteLevel", "add_prefix_space": false})");
    json["model"].as_object().erase("unk_token");
  };
  CHECK(fewest(letters) == 200);
  CHECK(fewest(letters, std::string(1000, 'c')) == 0);
  // A token that takes the white space around it.
  const auto strips = [](json::object& json) { json["added_tokens"].as_array()[0].as_object()["lstrip"] = true; };
  CHECK(fewest(strips) == 200);
  CHECK(fewest(strips, std::string(1000, ' ')) == 0);
}

TEST_CASE("of added tokens that the normalizer makes equal the first is found") {
  json::object json = small();
  json["normalizer"] = parsed(R"({"type": "Lowercase"})");
  json["added_tokens"].as_array().push_back(parsed(R"({"id": 9, "content": "q", "normalized": true})"));
  CHECK(made(std::move(json))->encode("q", false, false) == made(small())->encode("Q", false, false));
}

TEST_CASE("templates, sequences and replacements have a size") {
  using Catch::Matchers::Contains;
  std::string ids, pieces;
  for (int i = 0; i < 1000; ++i) ids += i == 0 ? "0" : ",0";
  for (int i = 0; i < 200; ++i) pieces += R"({"SpecialToken": {"id": "x", "type_id": 0}},)";
  const auto of = [&](const std::string& list) {
    const std::string all = "[" + list + R"({"Sequence": {"id": "A", "type_id": 0}}])";
    return R"({"type": "TemplateProcessing", "single": )" + all + R"(, "pair": [], "special_tokens": {"x": {"id": "x", "ids": [)" + ids +
           "]}}}";
  };
  CHECK(refusal("post_processor", of(R"({"SpecialToken": {"id": "x", "type_id": 0}},)")) == "accepted");
  CHECK_THAT(refusal("post_processor", of(pieces)),
             Contains("post_processor.single is not a template with at most 65536 ids of special tokens"));
  CHECK_THAT(refusal("post_processor", of(pieces + pieces)), Contains("post_processor.single is not a list of at most 256 pieces"));
  for (const auto& [key, list, step] : {std::tuple{"decoder", "decoders", "Fuse"}, {"post_processor", "processors", "ByteLevel"}}) {
    std::string steps;
    for (int i = 0; i < 1001; ++i) steps += std::string{i == 0 ? "" : ","} + R"({"type": ")" + step + "\"}";
    CHECK_THAT(refusal(key, std::string{R"({"type": "Sequence", ")"} + list + "\": [" + steps + "]}"), Contains("more than 1000 steps"));
  }
}
