// Kinds of GGUF files that are what a tokenizer.json describes: WordPiece (BERT), and Gemma 4's BPE over UTF-8.
#include "text/hf/files.hpp"
#include "text/tokenizer_base.hpp"

namespace mekik::text {

namespace {

json::object special_piece(std::string_view token) { return {{"SpecialToken", json::object{{"id", token}, {"type_id", 0}}}}; }
json::object text_piece(std::string_view text, int type) { return {{"Sequence", json::object{{"id", text}, {"type_id", type}}}}; }

json::array added_tokens(const Vocabulary& vocabulary) {
  json::array list;
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const TokenType type = vocabulary.types[i];
    if (type != TokenType::control && type != TokenType::unknown && type != TokenType::user_defined) continue;
    if (vocabulary.tokens[i].empty()) continue;
    list.push_back(json::object{{"content", vocabulary.tokens[i]}, {"special", type != TokenType::user_defined}, {"normalized", false}});
  }
  return list;
}

Result<std::unique_ptr<Tokenizer>> assemble(const json::object& described, const Vocabulary& vocabulary, std::string kind) {
  static const json::object kNoFiles;
  MEKIK_TRY(config, hf::TokenConfig::read(hf::Section{kNoFiles, ""}));
  MEKIK_TRY(parts, hf::read_pipeline(hf::Section{described, "the tokenizer of the GGUF file"}, config));
  parts.bos = vocabulary.bos;
  parts.eos = vocabulary.eos;
  parts.ends = end_tokens(vocabulary);
  parts.kind = std::move(kind);
  return std::unique_ptr<Tokenizer>{std::make_unique<hf::PipelineTokenizer>(std::move(parts))};
}

// [CLS] A [SEP] and [CLS] A [SEP] B [SEP], the second text with type 1.
json::object bert_template(const Vocabulary& vocabulary, std::int32_t cls) {
  const auto special = [&](std::int32_t id, std::string_view name) {
    return json::object{
        {"id", name}, {"ids", json::array{id}}, {"tokens", json::array{json::value(vocabulary.tokens[static_cast<std::size_t>(id)])}}};
  };
  json::array single, pair;
  json::object specials;
  if (vocabulary.add_bos && cls >= 0) {
    specials["cls"] = special(cls, "cls");
    single.push_back(special_piece("cls"));
  }
  single.push_back(text_piece("A", 0));
  if (vocabulary.add_sep) {
    specials["sep"] = special(vocabulary.sep, "sep");
    single.push_back(special_piece("sep"));
  }
  pair = single;
  pair.push_back(text_piece("B", 1));
  if (vocabulary.add_sep) pair.push_back(json::object{{"SpecialToken", json::object{{"id", "sep"}, {"type_id", 1}}}});
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", specials}};
}

// BOS A EOS, and the same again for a second text, as far as the vocabulary asks for them.
json::object bos_eos_template(const Vocabulary& vocabulary) {
  json::array single, pair;
  json::object specials;
  const auto special = [&](json::array& pieces, bool wanted, std::int32_t id) {
    if (!wanted) return;
    const std::string_view token = vocabulary.tokens[static_cast<std::size_t>(id)];
    specials[token] = json::object{{"id", token}, {"ids", json::array{id}}, {"tokens", json::array{json::value(token)}}};
    pieces.push_back(special_piece(token));
  };
  const auto text = [&](json::array& pieces, std::string_view name) {
    special(pieces, vocabulary.add_bos, vocabulary.bos);
    pieces.push_back(text_piece(name, 0));
    special(pieces, vocabulary.add_eos, vocabulary.eos);
  };
  text(single, "A");
  text(pair, "A");
  text(pair, "B");
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", specials}};
}

Result<bool> optional_flag(const json::object& metadata, std::string_view key, bool fallback) {
  const json::value* value = metadata.if_contains(key);
  if (value == nullptr) return fallback;
  if (!value->is_bool()) return invalid(std::string{key} + " is not true or false");
  return value->get_bool();
}

// The ids that BERT's first vocabulary has, where the file does not say others.
void add_default(json::object& metadata, std::string_view key, std::string_view same_as, std::int64_t id, std::size_t tokens) {
  if (metadata.contains(key)) return;
  if (const json::value* other = same_as.empty() ? nullptr : metadata.if_contains(same_as); other != nullptr)
    metadata[key] = json::value(*other);
  else if (static_cast<std::size_t>(id) < tokens) metadata[key] = id;
}

}  // namespace

// The vocabulary is spelled with U+2581 in front of what begins a word, and without ## in front of what continues one.
Result<std::unique_ptr<Tokenizer>> create_wordpiece(const json::object& original) {
  constexpr std::string_view kSign = "\xE2\x96\x81", kPieces = "##";
  json::object metadata = original;
  const json::value* list = metadata.if_contains("tokenizer.ggml.tokens");
  const std::size_t count = list != nullptr && list->is_array() ? list->get_array().size() : 0;
  add_default(metadata, "tokenizer.ggml.bos_token_id", "tokenizer.ggml.cls_token_id", 101, count);
  add_default(metadata, "tokenizer.ggml.seperator_token_id", "", 102, count);
  add_default(metadata, "tokenizer.ggml.unknown_token_id", "", 100, count);
  MEKIK_TRY(vocabulary, read_vocabulary(metadata, {.add_bos = true, .add_sep = true}));
  MEKIK_TRY(lower, optional_flag(metadata, "tokenizer.ggml.normalizer.lowercase", true));
  MEKIK_TRY(accents, optional_flag(metadata, "tokenizer.ggml.normalizer.strip_accents", lower));
  if (vocabulary.unknown < 0) return invalid("tokenizer.ggml.unknown_token_id is missing");
  json::object vocab;
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const std::string_view token = vocabulary.tokens[i];
    const bool bracketed = token.starts_with('[') && token.ends_with(']');
    const std::string spelled = token.starts_with(kSign) ? std::string{token.substr(kSign.size())}
                                : bracketed              ? std::string{token}
                                                         : std::string{kPieces} + std::string{token};
    vocab[spelled] = static_cast<std::int64_t>(i);
  }
  json::object described{{"normalizer", json::object{{"type", "BertNormalizer"},
                                                     {"clean_text", true},
                                                     {"handle_chinese_chars", true},
                                                     {"strip_accents", accents},
                                                     {"lowercase", lower}}},
                         {"pre_tokenizer", json::object{{"type", "BertPreTokenizer"}}},
                         {"decoder", json::object{{"type", "WordPiece"}, {"prefix", kPieces}, {"cleanup", true}}},
                         {"post_processor", bert_template(vocabulary, vocabulary.bos)},
                         {"added_tokens", added_tokens(vocabulary)}};
  described["model"] = json::object{{"type", "WordPiece"},
                                    {"vocab", std::move(vocab)},
                                    {"unk_token", vocabulary.tokens[static_cast<std::size_t>(vocabulary.unknown)]},
                                    {"continuing_subword_prefix", kPieces},
                                    {"max_input_chars_per_word", 100}};
  return assemble(described, vocabulary, "wordpiece");
}

Result<std::unique_ptr<Tokenizer>> create_spaced_bpe(const json::object& metadata) {
  constexpr std::string_view kSign = "\xE2\x96\x81";
  MEKIK_TRY(vocabulary, read_vocabulary(metadata, {}));
  MEKIK_TRY(pre, optional_text(metadata, "tokenizer.ggml.pre"));
  if (pre != "sarvam-moe") vocabulary.add_bos = vocabulary.bos >= 0;  // files of this kind say otherwise by mistake
  const json::value* merges = metadata.if_contains("tokenizer.ggml.merges");
  if (merges == nullptr || !merges->is_array()) return invalid("tokenizer.ggml.merges is missing, or is not an array");
  json::array pairs;
  for (const json::value& merge : merges->get_array()) {
    const json::string* text = merge.if_string();
    const std::size_t space = text == nullptr ? std::string_view::npos : std::string_view{text->data(), text->size()}.find(' ', 1);
    if (space == std::string_view::npos)
      return invalid("tokenizer.ggml.merges: " + json::serialize(merge) + " is not two tokens and a space");
    const std::string_view both{text->data(), text->size()};
    pairs.push_back(json::array{json::value(both.substr(0, space)), json::value(both.substr(space + 1))});
  }
  json::object vocab;
  for (std::size_t i = 0; i < vocabulary.size(); ++i)
    if (!vocabulary.tokens[i].empty()) vocab[vocabulary.tokens[i]] = static_cast<std::int64_t>(i);
  const auto replace = [](std::string_view from, std::string_view to) {
    return json::object{{"type", "Replace"}, {"pattern", json::object{{"String", from}}}, {"content", to}};
  };
  json::object described{{"normalizer", replace(" ", kSign)}, {"added_tokens", added_tokens(vocabulary)}};
  described["decoder"] =
      json::object{{"type", "Sequence"},
                   {"decoders", json::array{replace(kSign, " "), json::object{{"type", "ByteFallback"}}, json::object{{"type", "Fuse"}}}}};
  described["model"] =
      json::object{{"type", "BPE"}, {"vocab", std::move(vocab)}, {"merges", std::move(pairs)}, {"byte_fallback", true}, {"fuse_unk", true}};
  if (vocabulary.unknown >= 0)
    described["model"].as_object()["unk_token"] = vocabulary.tokens[static_cast<std::size_t>(vocabulary.unknown)];
  described["post_processor"] = bos_eos_template(vocabulary);
  return assemble(described, vocabulary, "bpe over UTF-8");
}

}  // namespace mekik::text
