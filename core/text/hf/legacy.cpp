// Folders from before tokenizer.json: vocab.json with merges.txt, and vocab.txt. They are described as the tokenizer.json that
// transformers would make of them.
#include "base/text.hpp"
#include "text/hf/files.hpp"

namespace mekik::text::hf {

namespace {

json::object template_piece(std::string_view kind, std::string_view id, int type) {
  return {{kind, json::object{{"id", id}, {"type_id", type}}}};
}

// Special tokens of the configuration, or the defaults of the class.
std::string token_or(const TokenConfig& config, std::string_view name, std::string_view fallback) {
  const std::string content = config.content(name);
  return content.empty() ? std::string{fallback} : content;
}

std::int64_t id_of(const json::object& vocab, const std::string& token) {
  const json::value* id = vocab.if_contains(token);
  return id != nullptr && id->is_int64() ? id->get_int64() : -1;
}

json::array added_tokens(const json::object& vocab, const std::vector<std::string>& contents) {
  json::array list;
  for (const std::string& content : contents)
    if (id_of(vocab, content) >= 0)
      list.push_back(json::object{{"content", content}, {"special", true}, {"normalized", false}, {"id", id_of(vocab, content)}});
  return list;
}

json::object byte_level(bool prefix, bool pattern) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"trim_offsets", true}, {"use_regex", pattern}};
}

json::array lines_of(std::string_view text) {
  json::array lines;
  for (std::string& line : split(text, '\n')) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && !line.starts_with("#version")) lines.push_back(json::value(line));
  }
  return lines;
}

void add_qwen2(json::object& whole) {
  constexpr std::string_view kPattern =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  whole["normalizer"] = json::object{{"type", "NFC"}};
  whole["pre_tokenizer"] = json::object{
      {"type", "Sequence"},
      {"pretokenizers",
       json::array{
           json::object{{"type", "Split"}, {"pattern", json::object{{"Regex", kPattern}}}, {"behavior", "Isolated"}, {"invert", false}},
           byte_level(false, false)}}};
}

}  // namespace

Result<json::value> flag_template(const TokenConfig& config, const json::object& vocab, const std::string& bos, const std::string& eos) {
  MEKIK_TRY(add_bos, config.tokenizer().flag("add_bos_token", false));
  MEKIK_TRY(add_eos, config.tokenizer().flag("add_eos_token", false));
  if (!add_bos && !add_eos) return json::value{};
  json::object specials;
  json::array single, pair;
  const auto special = [&](json::array& pieces, bool wanted, const std::string& token, int type) {
    if (!wanted) return;
    specials[token] = json::object{{"id", token}, {"ids", json::array{id_of(vocab, token)}}, {"tokens", json::array{json::value(token)}}};
    pieces.push_back(template_piece("SpecialToken", token, type));
  };
  const auto text = [&](json::array& pieces, std::string_view id, int type) {
    special(pieces, add_bos, bos, type);
    pieces.push_back(template_piece("Sequence", id, type));
    special(pieces, add_eos, eos, type);
  };
  text(single, "A", 0);
  text(pair, "A", 0);
  text(pair, "B", 1);
  return json::value(json::object{{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", specials}});
}

Result<json::object> describe_vocab_merges(const Section& files, const TokenConfig& config) {
  MEKIK_TRY(vocab, files.need_section("vocab_json"));
  MEKIK_TRY(merges, files.need_text("merges_txt"));
  const std::string name = config.tokenizer_class();
  const bool gpt2 = name.empty() || name == "GPT2Tokenizer", qwen2 = name == "Qwen2Tokenizer";
  const bool roberta = name == "RobertaTokenizer" || name == "BartTokenizer";
  if (!gpt2 && !qwen2 && !roberta)
    return unsupported("tokenizer_class " + quoted(name) +
                       " is not known with vocab.json and merges.txt alone (known are GPT2Tokenizer, RobertaTokenizer, BartTokenizer and "
                       "Qwen2Tokenizer); save the tokenizer with transformers, so that the folder has a tokenizer.json");
  MEKIK_TRY(prefix, config.tokenizer().flag("add_prefix_space", false));
  json::object model{{"type", "BPE"}, {"vocab", vocab.object()}, {"merges", lines_of(merges)}};
  json::object whole{{"decoder", byte_level(prefix, true)}, {"pre_tokenizer", byte_level(prefix, true)}};
  const std::string end = roberta ? "</s>" : "<|endoftext|>";
  const std::string bos = token_or(config, "bos_token", roberta ? "<s>" : qwen2 ? "" : end), eos = token_or(config, "eos_token", end);
  if (qwen2) add_qwen2(whole);
  if (roberta) {
    const std::string cls = token_or(config, "cls_token", "<s>"), sep = token_or(config, "sep_token", "</s>");
    whole["added_tokens"] = added_tokens(vocab.object(), {"<s>", "<pad>", "</s>", "<unk>", "<mask>"});
    whole["post_processor"] = json::object{{"type", "RobertaProcessing"},
                                           {"cls", json::array{json::value(cls), id_of(vocab.object(), cls)}},
                                           {"sep", json::array{json::value(sep), id_of(vocab.object(), sep)}}};
    model["unk_token"] = token_or(config, "unk_token", "<unk>");
  } else {
    whole["added_tokens"] = added_tokens(vocab.object(), {eos});
    MEKIK_TRY(around, flag_template(config, vocab.object(), bos, eos));
    whole["post_processor"] = around;
  }
  whole["model"] = std::move(model);
  return whole;
}

Result<json::object> describe_vocab_txt(const Section& files, const TokenConfig& config) {
  MEKIK_TRY(text, files.need_text("vocab_txt"));
  const std::string name = config.tokenizer_class();
  if (!name.empty() && name != "BertTokenizer" && name != "DistilBertTokenizer" && name != "ElectraTokenizer" && name != "MPNetTokenizer")
    return unsupported("tokenizer_class " + quoted(name) +
                       " is not known with vocab.txt alone (known are BertTokenizer, DistilBertTokenizer and ElectraTokenizer); save the "
                       "tokenizer with transformers, so that the folder has a tokenizer.json");
  if (name == "MPNetTokenizer") return unsupported("tokenizer_class \"MPNetTokenizer\" needs a tokenizer.json");
  MEKIK_TRY(lower, config.tokenizer().flag("do_lower_case", true));
  MEKIK_TRY(chinese, config.tokenizer().flag("tokenize_chinese_chars", true));
  MEKIK_TRY(accents, config.tokenizer().flag("strip_accents", lower));
  json::object vocab;
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    while (!lines[i].empty() && std::string_view{" \t\r\v\f"}.find(lines[i].back()) != std::string_view::npos) lines[i].pop_back();
    vocab[lines[i]] = static_cast<std::int64_t>(i);
  }
  const std::string cls = token_or(config, "cls_token", "[CLS]"), sep = token_or(config, "sep_token", "[SEP]"),
                    unk = token_or(config, "unk_token", "[UNK]");
  if (id_of(vocab, cls) < 0 || id_of(vocab, sep) < 0) return invalid("vocab.txt lacks " + quoted(id_of(vocab, cls) < 0 ? cls : sep));
  json::object whole;
  whole["normalizer"] = json::object{{"type", "BertNormalizer"},
                                     {"clean_text", true},
                                     {"handle_chinese_chars", chinese},
                                     {"strip_accents", accents},
                                     {"lowercase", lower}};
  whole["pre_tokenizer"] = json::object{{"type", "BertPreTokenizer"}};
  whole["decoder"] = json::object{{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  whole["post_processor"] = json::object{{"type", "BertProcessing"},
                                         {"cls", json::array{json::value(cls), id_of(vocab, cls)}},
                                         {"sep", json::array{json::value(sep), id_of(vocab, sep)}}};
  whole["added_tokens"] =
      added_tokens(vocab, {token_or(config, "pad_token", "[PAD]"), unk, cls, sep, token_or(config, "mask_token", "[MASK]")});
  whole["model"] = json::object{
      {"type", "WordPiece"}, {"vocab", vocab}, {"unk_token", unk}, {"continuing_subword_prefix", "##"}, {"max_input_chars_per_word", 100}};
  return whole;
}

}  // namespace mekik::text::hf
