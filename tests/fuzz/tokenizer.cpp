// Any metadata and any text. An odd first byte: the rest is JSON metadata, a zero byte and text. An even one: the bytes describe a
// small vocabulary of either kind, which is whole often enough to reach the merging. Whatever is accepted gives ids within the
// vocabulary, the text back where nothing is normalised, and streams what it decodes. JSON may also be the files of a Hugging Face folder.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/text.hpp"
#include "text/tokenizer.hpp"
#include "text/tokenizer_split.hpp"

namespace {

using namespace mekik;

void require(bool holds) {
  if (!holds) std::abort();
}

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : left_{reinterpret_cast<const char*>(data), size} {}
  unsigned one() {
    if (left_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(left_.front());
    left_.remove_prefix(1);
    return byte;
  }
  std::string take(std::size_t n) {
    const std::string text{left_.substr(0, n)};
    left_.remove_prefix(text.size());
    return text;
  }
  std::string_view rest() const { return left_; }

 private:
  std::string_view left_;
};

std::string spelled(int byte) {
  const auto itself = [](int b) { return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE; };
  char32_t other = 0x100;
  for (int b = 0; b < byte; ++b) other += itself(b) ? 0u : 1u;
  std::string text;
  append_utf8(text, itself(byte) ? static_cast<char32_t>(byte) : other);
  return text;
}

struct Tables {
  json::array tokens, types, scores, merges;
  void add(const std::string& token, unsigned type, double score) {
    for (const json::value& known : tokens)
      if (known.as_string() == token) return;
    tokens.push_back(json::value(token));
    types.push_back(type);
    scores.push_back(score);
  }
  std::string token(std::size_t i) const {
    const json::string& text = tokens[i % tokens.size()].as_string();
    return {text.data(), text.size()};
  }
};

json::object byte_level(Bytes& bytes) {
  static const std::vector<std::string> alphabet = [] {
    std::vector<std::string> texts;
    for (int byte = 0; byte < 256; ++byte) texts.push_back(spelled(byte));
    return texts;
  }();
  Tables tables;
  for (const std::string& text : alphabet) {
    tables.tokens.push_back(json::value(text));
    tables.types.push_back(1);
    tables.scores.push_back(0);
  }
  for (unsigned n = bytes.one() % 16; n > 0; --n) {
    const std::size_t left = bytes.one() + (bytes.one() & 1) * 256, right = bytes.one() + (bytes.one() & 1) * 256;
    const std::string l = tables.token(left), r = tables.token(right);
    tables.add(l + r, 1, 0);
    tables.merges.push_back(json::value(l + " " + r));
  }
  for (unsigned n = bytes.one() % 4; n > 0; --n) tables.add(bytes.take(bytes.one() % 6), bytes.one() % 7, 0);
  json::object metadata;
  metadata["tokenizer.ggml.model"] = "gpt2";
  const auto table = text::pre_tokenizers();
  metadata["tokenizer.ggml.pre"] = json::value(table[bytes.one() % table.size()].name);
  metadata["tokenizer.ggml.tokens"] = tables.tokens;
  metadata["tokenizer.ggml.token_type"] = tables.types;
  metadata["tokenizer.ggml.merges"] = tables.merges;
  return metadata;
}

json::object sentencepiece(Bytes& bytes) {
  Tables tables;
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < 256; ++byte) {
    tables.tokens.push_back(json::value(std::string{"<0x"} + digits[byte >> 4] + digits[byte & 15] + ">"));
    tables.types.push_back(6);
    tables.scores.push_back(0);
  }
  tables.add("\xE2\x96\x81", 1, -1);
  for (unsigned n = bytes.one() % 32; n > 0; --n) {
    const unsigned type = bytes.one() % 8;
    tables.add(bytes.take(bytes.one() % 5), type > 5 ? 1 : type, static_cast<double>(bytes.one()) - 128);
  }
  json::object metadata;
  metadata["tokenizer.ggml.model"] = "llama";
  metadata["tokenizer.ggml.tokens"] = tables.tokens;
  metadata["tokenizer.ggml.token_type"] = tables.types;
  metadata["tokenizer.ggml.scores"] = tables.scores;
  metadata["tokenizer.ggml.add_space_prefix"] = (bytes.one() & 1) != 0;
  return metadata;
}

// The text as the pieces of its ids must give it back, or nothing when the metadata loses or changes some.
bool comes_back(const json::object& metadata, const text::Tokenizer& tokenizer, const std::string& text, std::string& expected) {
  if (metadata.at("tokenizer.ggml.model").as_string() == "gpt2") {
    expected = text;
    for (const text::PreTokenizer& pre : text::pre_tokenizers())
      if (metadata.at("tokenizer.ggml.pre").as_string() == pre.name) return !pre.nfc && !tokenizer.adds_space_prefix();
    return false;
  }
  expected.clear();
  for (std::size_t at = 0; at < text.size(); ++at)
    if (text.compare(at, 3, "\xE2\x96\x81") == 0) expected += ' ', at += 2;
    else expected += text[at];
  return !tokenizer.adds_space_prefix();
}

void check_text(const json::object& metadata, const text::Tokenizer& tokenizer, Bytes& bytes, bool whole) {
  std::vector<text::TextPart> parts;
  for (unsigned n = bytes.one() % 4; n > 0; --n) {
    const bool trusted = (bytes.one() & 1) != 0;
    parts.push_back({bytes.take(bytes.one()), trusted});
  }
  parts.push_back({std::string{bytes.rest()}, false});
  const std::vector<std::int32_t> ids = tokenizer.encode(parts, true);
  std::string pieces;
  text::Detokenizer detokenizer{tokenizer, true, tokenizer.adds_space_prefix()};
  std::string streamed;
  for (const std::int32_t id : ids) {
    require(id >= 0 && static_cast<std::uint32_t>(id) < tokenizer.size());
    pieces += tokenizer.piece(id);
    const std::string text = detokenizer.push(id);
    require(is_utf8(text));
    streamed += text;
  }
  streamed += detokenizer.finish();
  require(is_utf8(streamed));
  const bool described = metadata.contains("hf");  // whose decoders make more of a text than its pieces
  if (!tokenizer.adds_space_prefix() && !described) require(streamed == utf8_replace_invalid(tokenizer.decode(ids, true)));
  if (described) {
    require(is_utf8(tokenizer.decode(ids, true)));
    const auto pair = tokenizer.encode_pair(parts.front().text, parts.back().text);
    require(pair.ids.size() == pair.types.size());
  }
  if (!whole) return;
  std::string expected;
  const std::string& text = parts.back().text;
  const std::vector<std::int32_t> plain = tokenizer.encode(text, false, false);
  if (comes_back(metadata, tokenizer, text, expected)) require(tokenizer.decode(plain, true) == expected);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes{data, size};
  const unsigned kind = bytes.one();
  json::object metadata;
  if ((kind & 1) != 0) {
    const std::string text = bytes.take(bytes.rest().find('\0'));
    bytes.one();
    const auto parsed = json::parse(text);
    if (!parsed.ok() || !parsed->is_object()) return 0;
    metadata = parsed->as_object();
  } else {
    metadata = (kind & 2) != 0 ? byte_level(bytes) : sentencepiece(bytes);
  }
  const auto tokenizer = text::Tokenizer::create(metadata);
  if (!tokenizer.ok()) {
    require(!tokenizer.status().text.empty());
    return 0;
  }
  try {
    check_text(metadata, **tokenizer, bytes, (kind & 1) == 0);
  } catch (const text::TextRefused& refused) {  // only what a file describes can be without end
    require((kind & 1) != 0 && refused.what()[0] != 0);
  }
  return 0;
}
