// Unigram and WordPiece of tokenizer.json in the words of GGUF.
#include <algorithm>

#include "base/text.hpp"
#include "convert/sentencepiece.hpp"
#include "convert/tokens.hpp"
#include "text/tokenizer.hpp"

namespace mekik::convert {

namespace {

constexpr std::string_view kSign = "\xE2\x96\x81";

// A step, or the steps of a sequence of them.
std::vector<const json::value*> steps_of(const json::value& file, const char* section, const char* list) {
  std::vector<const json::value*> out;
  const json::value* one = json::find(file, section);
  if (one == nullptr || one->is_null()) return out;
  const json::value* all = type_of(*one) == "Sequence" ? json::find(*one, list) : nullptr;
  if (all == nullptr || !all->is_array()) return {one};
  for (const json::value& step : all->get_array()) out.push_back(&step);
  return out;
}

void normalizer_step(const json::value& step, Kind& out) {
  const std::string type = type_of(step);
  const json::value* pattern = json::find(step, "pattern");
  if (type == "Precompiled") {
    auto bytes = from_base64(text_of(json::find(step, "precompiled_charsmap")));
    if (!bytes.ok() || !out.charsmap.empty()) throw Unsaid{"its precompiled normalizer"};
    out.charsmap = *bytes;
  } else if (type == "Replace" && pattern != nullptr && text_of(json::find(*pattern, "Regex")) == " {2,}") {
    out.remove_extra_spaces = true;
  } else if (type == "Replace" && pattern != nullptr && text_of(json::find(*pattern, "String")) == " " &&
             text_of(json::find(step, "content")) == kSign) {
    return;  // the mark of a space, which SentencePiece sets itself
  } else if (type == "Prepend" && text_of(json::find(step, "prepend")) == kSign) {
    out.add_space = true;
  } else if (type != "Strip") {
    throw Unsaid{"normalizer " + mekik::quoted(type) + " of a Unigram tokenizer"};
  }
}

void pre_tokenizer_step(const json::value& step, Kind& out) {
  const std::string type = type_of(step);
  if (type == "WhitespaceSplit") {
    out.remove_extra_spaces = true;
  } else if (type == "Metaspace") {
    const std::string mark = text_of(json::find(step, "replacement"));
    if (!mark.empty() && mark != kSign) throw Unsaid{"a Unigram tokenizer that marks spaces with " + mekik::quoted(mark)};
    out.add_space = text_of(json::find(step, "prepend_scheme")) != "never" && flag_of(step, "add_prefix_space", true);
  } else {
    throw Unsaid{"pre-tokenizer " + mekik::quoted(type) + " of a Unigram tokenizer"};
  }
}

bool like_byte(const std::string& text) { return text.size() == 6 && text.compare(0, 3, "<0x") == 0 && text[5] == '>'; }

}  // namespace

Kind unigram_kind(const json::value& file, Tokens& tokens) {
  Kind out;
  out.name = "t5";
  out.add_space = out.remove_extra_spaces = false;
  for (const json::value* step : steps_of(file, "normalizer", "normalizers")) normalizer_step(*step, out);
  for (const json::value* step : steps_of(file, "pre_tokenizer", "pretokenizers")) pre_tokenizer_step(*step, out);
  const json::value& model = *json::find(file, "model");
  const json::value* vocabulary = json::find(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_array()) throw Unsaid{"a Unigram vocabulary that is no list"};
  const json::value* unknown = json::find(model, "unk_id");
  const bool bytes = flag_of(model, "byte_fallback", false);
  std::size_t id = 0;
  for (const json::value& entry : vocabulary->get_array()) {
    const json::array* pair = entry.if_array();
    if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_string() || !(*pair)[1].is_number())
      throw Unsaid{"a Unigram piece without a score"};
    const std::string text = text_of(&(*pair)[0]);
    const bool is_unknown = unknown != nullptr && unknown->is_int64() && unknown->get_int64() == static_cast<std::int64_t>(id);
    tokens.set(id++, text, is_unknown ? kUnknown : bytes && like_byte(text) ? kByte : kNormal, (*pair)[1].to_number<float>());
  }
  return out;
}

Kind wordpiece_kind(const json::value& file, Tokens& tokens) {
  const json::value& model = *json::find(file, "model");
  const json::value* normalizer = json::find(file, "normalizer");
  const json::value* pre = json::find(file, "pre_tokenizer");
  if (normalizer == nullptr || type_of(*normalizer) != "BertNormalizer" || pre == nullptr || type_of(*pre) != "BertPreTokenizer" ||
      !flag_of(*normalizer, "clean_text", true) || !flag_of(*normalizer, "handle_chinese_chars", true))
    throw Unsaid{"a WordPiece tokenizer that does not split as BERT's"};
  const json::value* prefix = json::find(model, "continuing_subword_prefix");
  if (prefix != nullptr && text_of(prefix) != "##") throw Unsaid{"a WordPiece tokenizer with another mark than ##"};
  Kind out;
  out.name = "bert";
  out.lowercase = flag_of(*normalizer, "lowercase", true);
  out.strip_accents = flag_of(*normalizer, "strip_accents", *out.lowercase);
  const json::value* vocabulary = json::find(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_object()) throw Unsaid{"a vocabulary that is no table"};
  const std::string unknown = text_of(json::find(model, "unk_token"));
  for (const auto& member : vocabulary->get_object()) {
    if (!member.value().is_int64() || member.value().get_int64() < 0) throw Unsaid{"a token without an id"};
    const std::string text{member.key().data(), member.key().size()};
    tokens.set(static_cast<std::size_t>(member.value().get_int64()), text, text == unknown ? kUnknown : kNormal);
  }
  return out;
}

void spell_wordpieces(Tokens& tokens) {
  for (std::size_t i = 0; i < tokens.texts.size(); ++i) {
    std::string& text = tokens.texts[i];
    if (tokens.types[i] == kControl || tokens.types[i] == kUnknown) {
      if (!text.starts_with('[') || !text.ends_with(']'))
        throw Unsaid{"a WordPiece tokenizer with the special token " + mekik::quoted(text)};
      tokens.types[i] = kControl;
    } else if (tokens.types[i] == kNormal) {
      text = text.starts_with("##") ? text.substr(2) : std::string{kSign} + text;
    }
  }
}

Status TokenizerKeys::write(GgufKeys& out) const {
  for (const auto& member : values_) {
    const std::string_view key = member.key();
    const json::array* list = member.value().if_array();
    if (key == "tokenizer.ggml.precompiled_charsmap") {
      std::string bytes;
      for (const json::value& byte : *list) bytes += static_cast<char>(byte.to_number<int>());
      out.u8s(key, bytes);
    } else if (key == "tokenizer.ggml.scores") {
      std::vector<float> scores;
      for (const json::value& score : *list) scores.push_back(score.to_number<float>());
      out.floats(key, scores);
    } else if (list != nullptr && list->empty()) {
      out.texts(key, {});
    } else {
      MEKIK_CHECK_OK(out.json(key, member.value()));
    }
  }
  return {};
}

void compare_tokenizers(const json::value& folder, const TokenizerKeys& keys, std::vector<std::string>& notes) {
  const auto first = text::Tokenizer::create(json::value(json::object{{"hf", folder}}));
  const auto second = text::Tokenizer::create(json::value(keys.values()));
  if (!first.ok()) throw Unsaid{"a tokenizer that we do not read: " + first.status().text};
  if (!second.ok()) throw Unsaid{"it: " + second.status().text};
  const auto differs = [&](std::string_view text) { return (*first)->encode(text, true, true) != (*second)->encode(text, true, true); };
  for (const std::string_view words :
       {"Hello world", "the lower of 2024, don't", "caf\xC3\xA9 na\xC3\xAFve", "\xE4\xBD\xA0\xE5\xA5\xBD", "f(x) = x**2"})
    if (differs(words)) throw Unsaid{"it: the file would make other tokens of " + mekik::quoted(std::string{words})};
  for (const std::string_view spaces : {"", " ", "two  spaces", " one before", "one after ", "a\nb\tc", "a \n b"})
    if (differs(spaces)) {
      notes.push_back("the file's tokenizer makes other tokens of some white space, as in " + mekik::quoted(std::string{spaces}));
      return;
    }
}

}  // namespace mekik::convert
