// tokenizer.json or tokenizer.model to tokenizer.ggml.*.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/text.hpp"
#include "convert/sentencepiece.hpp"
#include "convert/tokenizer.hpp"
#include "convert/tokens.hpp"
#include "text/hf/files.hpp"
#include "text/tokenizer_split.hpp"

namespace mekik::convert {

namespace {

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCommon[] = {"gpt-2",  "smollm",      "llama-bpe",      "dbrx",      "qwen2",  "qwen35", "deepseek-llm",
                                        "tekken", "deepseek-v3", "deepseek-coder", "command-r", "gpt-4o", "falcon", "bloom"};

// Literal characters of other scripts as our table spells them.
std::string spelled(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size();) {
    const auto lead = static_cast<unsigned char>(pattern[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (length == 1 || i + length > pattern.size()) {
      out += pattern[i++];
      continue;
    }
    std::uint32_t point = lead & (0xFFu >> (length + 1));
    for (std::size_t j = 1; j < length; ++j) point = point << 6 | (static_cast<unsigned char>(pattern[i + j]) & 63u);
    char hex[16];
    std::snprintf(hex, sizeof hex, "\\x{%X}", point);
    out += hex;
    i += length;
  }
  return out;
}

void collect_steps(const json::value& pre, std::vector<std::string>& out) {
  const std::string type = type_of(pre);
  if (type == "Sequence") {
    if (const json::value* all = json::find(pre, "pretokenizers"); all != nullptr && all->is_array())
      for (const json::value& one : all->get_array()) collect_steps(one, out);
  } else if (type == "ByteLevel") {
    if (flag_of(pre, "add_prefix_space", false)) throw Unsaid{"a byte-level tokenizer that adds a space in front"};
    if (flag_of(pre, "use_regex", true)) out.emplace_back(kGpt2);
  } else if (type == "Digits" && flag_of(pre, "individual_digits", false)) {
    out.emplace_back(R"(\p{N})");
  } else if (type == "Split") {
    const json::value* pattern = json::find(pre, "pattern");
    const std::string regex = pattern != nullptr ? text_of(json::find(*pattern, "Regex")) : std::string{};
    const bool whole = text_of(json::find(pre, "behavior")) == "Isolated" || flag_of(pre, "invert", false);
    if (regex.empty() || !whole) throw Unsaid{"a pre-tokenizer that splits at a fixed text"};
    out.push_back(spelled(regex));
  } else {
    throw Unsaid{"pre-tokenizer " + mekik::quoted(type)};
  }
}

bool normalises_nfc(const json::value* normalizer) {
  if (normalizer == nullptr || normalizer->is_null()) return false;
  const std::string type = type_of(*normalizer);
  if (type == "NFC") return true;
  const json::value* all = json::find(*normalizer, "normalizers");
  if (type == "Sequence" && all != nullptr && all->is_array() && all->get_array().empty()) return false;
  if (type == "Sequence" && all != nullptr && all->is_array() && all->get_array().size() == 1) return normalises_nfc(&all->get_array()[0]);
  throw Unsaid{"normalizer " + mekik::quoted(type)};
}

// The name under which GGUF knows these patterns.
std::string pre_name(const json::value& file, const json::value& model) {
  const json::value* pre = json::find(file, "pre_tokenizer");
  std::vector<std::string> steps;
  if (pre != nullptr && !pre->is_null()) collect_steps(*pre, steps);
  const bool nfc = normalises_nfc(json::find(file, "normalizer")), ignore_merges = flag_of(model, "ignore_merges", false);
  // Several names may have the same patterns; those that every reader knows come first.
  std::string found;
  for (const text::PreTokenizer& known : text::pre_tokenizers()) {
    const bool same = std::equal(steps.begin(), steps.end(), known.steps.begin(), known.steps.end());
    if (!same || known.nfc != nfc || known.ignore_merges != ignore_merges) continue;
    const bool common = std::find(std::begin(kCommon), std::end(kCommon), known.name) != std::end(kCommon);
    if (common) return std::string{known.name};
    if (found.empty()) found = known.name;
  }
  if (!found.empty()) return found;
  throw Unsaid{"its pre-tokenizer's pattern " + mekik::quoted(steps.empty() ? std::string{} : steps.back())};
}

void read_added(const json::value& file, Tokens& tokens) {
  const json::value* added = json::find(file, "added_tokens");
  if (added == nullptr || !added->is_array()) return;
  for (const json::value& token : added->get_array()) {
    const json::value* id = json::find(token, "id");
    if (id == nullptr || !id->is_int64() || id->get_int64() < 0) throw Unsaid{"an added token without an id"};
    const auto at = static_cast<std::size_t>(id->get_int64());
    const float score = at < tokens.scores.size() ? tokens.scores[at] : 0.0f;
    const bool unknown = at < tokens.types.size() && tokens.types[at] == kUnknown;
    tokens.set(at, text_of(json::find(token, "content")),
               unknown                            ? kUnknown
               : flag_of(token, "special", false) ? kControl
                                                  : kUserDefined,
               score);
  }
}

std::vector<std::string> read_merges(const json::value& model) {
  std::vector<std::string> out;
  const json::value* merges = json::find(model, "merges");
  if (merges == nullptr || !merges->is_array()) throw Unsaid{"a BPE without merges"};
  for (const json::value& merge : merges->get_array()) {
    if (merge.is_string()) {
      out.push_back(text_of(&merge));
      continue;
    }
    if (!merge.is_array() || merge.get_array().size() != 2) throw Unsaid{"a merge that is no pair"};
    const std::string left = text_of(&merge.get_array()[0]), right = text_of(&merge.get_array()[1]);
    if (left.find(' ') != std::string::npos || right.find(' ') != std::string::npos) throw Unsaid{"a merge of a token with a space"};
    out.push_back(left + " " + right);
  }
  return out;
}

void read_vocabulary(const json::value& model, Tokens& tokens) {
  const json::value* vocabulary = json::find(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_object()) throw Unsaid{"a vocabulary that is no table"};
  for (const auto& member : vocabulary->get_object()) {
    if (!member.value().is_int64() || member.value().get_int64() < 0) throw Unsaid{"a token without an id"};
    tokens.set(static_cast<std::size_t>(member.value().get_int64()), std::string{member.key().data(), member.key().size()}, kNormal);
  }
}

// A BPE whose tokens are text with U+2581 for spaces: what SentencePiece made. Its merges become scores: the sooner, the higher.
bool like_sentencepiece(const json::value& file, const json::value& model) {
  if (flag_of(model, "byte_fallback", false)) return true;
  const json::value* pre = json::find(file, "pre_tokenizer");
  return pre != nullptr && type_of(*pre) == "Metaspace";
}

bool adds_space(const json::value& file) {
  bool out = false;
  const auto look = [&](const json::value& one) {
    if (type_of(one) == "Prepend") out = true;
    if (type_of(one) == "Metaspace") out = text_of(json::find(one, "prepend_scheme")) != "never" && flag_of(one, "add_prefix_space", true);
  };
  for (const char* key : {"normalizer", "pre_tokenizer"}) {
    const json::value* part = json::find(file, key);
    if (part == nullptr || part->is_null()) continue;
    look(*part);
    for (const char* list : {"normalizers", "pretokenizers"})
      if (const json::value* all = json::find(*part, list); all != nullptr && all->is_array())
        for (const json::value& one : all->get_array()) look(one);
  }
  return out;
}

void score_by_merges(const json::value& model, Tokens& tokens) {
  const std::vector<std::string> merges = read_merges(model);
  const std::string unknown = text_of(json::find(model, "unk_token"));
  for (std::size_t i = 0; i < tokens.texts.size(); ++i) {
    const std::string& text = tokens.texts[i];
    if (!unknown.empty() && text == unknown) tokens.types[i] = kUnknown;
    else if (text.size() == 6 && text.compare(0, 3, "<0x") == 0 && text[5] == '>') tokens.types[i] = kByte;
    if (tokens.types[i] == kNormal) tokens.scores[i] = -static_cast<float>(merges.size()) - 1;
    else if (tokens.types[i] != kUnused) tokens.scores[i] = 0;
  }
  for (std::size_t rank = merges.size(); rank-- > 0;) {
    std::string made = merges[rank];
    made.erase(made.find(' '), 1);
    if (const auto found = tokens.ids.find(made); found != tokens.ids.end())
      tokens.scores[static_cast<std::size_t>(found->second)] = -static_cast<float>(rank);
  }
}

std::optional<std::int32_t> token_id(const Tokens& tokens, const json::value* named) {
  std::string text = text_of(named);
  if (named != nullptr && named->is_object()) text = text_of(json::find(*named, "content"));
  const auto found = tokens.ids.find(text);
  return text.empty() || found == tokens.ids.end() ? std::nullopt : std::optional{found->second};
}

// Ids of special tokens: by name in tokenizer_config.json or special_tokens_map.json, else by number in config.json.
std::map<std::string, std::int32_t> special_ids(const json::value& hf, const Tokens& tokens) {
  std::map<std::string, std::int32_t> out;
  for (const char* name : {"bos", "eos", "unk", "sep", "pad", "cls", "mask"}) {
    std::optional<std::int32_t> id;
    for (const char* file : {"tokenizer_config", "special_tokens_map"})
      if (const json::value* from = json::find(hf, file); from != nullptr && !id)
        id = token_id(tokens, json::find(*from, std::string{name} + "_token"));
    if (const json::value* config = json::find(hf, "config"); config != nullptr && !id) {
      const json::value* number = json::find(*config, std::string{name} + "_token_id");
      if (number != nullptr && number->is_array() && !number->get_array().empty()) number = &number->get_array()[0];
      if (number != nullptr && number->is_int64() && number->get_int64() >= 0 &&
          number->get_int64() < static_cast<std::int64_t>(tokens.texts.size()))
        id = static_cast<std::int32_t>(number->get_int64());
    }
    if (id) out[name] = *id;
  }
  return out;
}

// What generation_config.json ends at besides eos.
void other_ends(const json::value& hf, std::map<std::string, std::int32_t>& ids, const Tokens& tokens) {
  const json::value* generation = json::find(hf, "generation_config");
  const json::value* ends = generation != nullptr ? json::find(*generation, "eos_token_id") : nullptr;
  if (ends == nullptr) return;
  std::vector<json::value> all =
      ends->is_array() ? std::vector<json::value>(ends->get_array().begin(), ends->get_array().end()) : std::vector<json::value>{*ends};
  const char* names[] = {"eot", "eom"};
  std::size_t used = 0;
  for (const json::value& end : all) {
    if (!end.is_int64() || end.get_int64() < 0 || end.get_int64() >= static_cast<std::int64_t>(tokens.texts.size())) continue;
    const auto id = static_cast<std::int32_t>(end.get_int64());
    if (ids.count("eos") == 0) ids["eos"] = id;
    else if (id != ids["eos"] && used < std::size(names)) ids[names[used++]] = id;
  }
}

// Whether a text of its own begins with BOS and ends with EOS (in BERT, with CLS and SEP): what the post-processor says, else the
// configuration.
void add_flags(const json::value& hf, const json::value* file, const std::map<std::string, std::int32_t>& ids, const Tokens& tokens,
               const std::string& kind, TokenizerKeys& out) {
  const json::value* config = json::find(hf, "tokenizer_config");
  const bool words = kind == "bert", listed = config != nullptr && json::find(*config, "add_bos_token") != nullptr;
  const bool t5 = config != nullptr && text_of(json::find(*config, "tokenizer_class")).starts_with("T5Tokenizer");
  bool bos = config != nullptr ? flag_of(*config, "add_bos_token", kind == "llama") : kind == "llama";
  bool eos = config != nullptr && flag_of(*config, "add_eos_token", t5 && file == nullptr);
  const std::int32_t none = -2;
  const auto id = [&](const char* name) { return ids.count(name) != 0 ? ids.at(name) : none; };
  const std::int32_t opens = words ? id("cls") : id("bos"), closes = words ? id("sep") : id("eos");
  const auto look = [&](const json::value& one) {
    const json::value* single = json::find(one, "single");
    if (type_of(one) == "BertProcessing" || type_of(one) == "RobertaProcessing") bos = eos = true;
    if (type_of(one) != "TemplateProcessing" || single == nullptr || !single->is_array() || single->get_array().empty()) return;
    const auto id_of = [&](const json::value& piece) -> std::int32_t {
      const json::value* special = json::find(piece, "SpecialToken");
      return special != nullptr ? token_id(tokens, json::find(*special, "id")).value_or(-1) : -1;
    };
    bos = id_of(single->get_array().front()) == opens;
    eos = single->get_array().size() > 1 && id_of(single->get_array().back()) == closes;
  };
  const json::value* post = file != nullptr ? json::find(*file, "post_processor") : nullptr;
  if (post != nullptr && !post->is_null()) {
    if (!listed) bos = false;
    look(*post);
    if (const json::value* all = json::find(*post, "processors"); all != nullptr && all->is_array())
      for (const json::value& one : all->get_array()) look(one);
  }
  out.put("add_bos_token", bos);
  out.put(words ? "add_sep_token" : "add_eos_token", eos);
}

void write_ids(const std::map<std::string, std::int32_t>& ids, TokenizerKeys& out) {
  constexpr std::pair<const char*, const char*> kKeys[] = {
      {"bos", "bos_token_id"},       {"eos", "eos_token_id"},     {"unk", "unknown_token_id"},
      {"sep", "seperator_token_id"}, {"pad", "padding_token_id"}, {"cls", "cls_token_id"},
      {"mask", "mask_token_id"},     {"eot", "eot_token_id"},     {"eom", "eom_token_id"}};
  for (const auto& [name, key] : kKeys)
    if (const auto found = ids.find(name); found != ids.end()) out.put(key, found->second);
}

// Tokens that are found in the text itself are spelled with the spaces of the text.
void spaces_for_marks(Tokens& tokens) {
  constexpr std::string_view kMark = "\xE2\x96\x81";
  for (std::size_t i = 0; i < tokens.texts.size(); ++i)
    if (tokens.types[i] == kUserDefined)
      for (std::size_t at = tokens.texts[i].find(kMark); at != std::string::npos; at = tokens.texts[i].find(kMark, at + 1))
        tokens.texts[i].replace(at, kMark.size(), " ");
}

Kind from_sentencepiece(const std::string& bytes, Tokens& tokens) {
  auto read = read_sentencepiece(bytes);
  if (!read.ok()) throw Unsaid{read.status().text};
  const bool unigram = read->model == SentencePiece::kUnigram;
  if (!unigram && read->model != SentencePiece::kBpe) throw Unsaid{"a SentencePiece model that is neither BPE nor Unigram"};
  if (!unigram && read->remove_extra_whitespaces) throw Unsaid{"a SentencePiece model that drops spaces"};
  for (std::size_t i = 0; i < read->pieces.size(); ++i) tokens.set(i, read->pieces[i].text, read->pieces[i].type, read->pieces[i].score);
  Kind out;
  out.name = unigram ? "t5" : "llama";
  out.add_space = read->add_dummy_prefix;
  if (unigram) out.remove_extra_spaces = read->remove_extra_whitespaces;
  if (unigram) out.charsmap = read->precompiled_charsmap;
  return out;
}

Kind from_json(const json::value& file, Tokens& tokens) {
  const json::value& model = *json::find(file, "model");
  const std::string type = type_of(model);
  if (type == "Unigram" || (type.empty() && json::find(model, "unk_id") != nullptr)) return unigram_kind(file, tokens);
  if (type == "WordPiece") return wordpiece_kind(file, tokens);
  if (!type.empty() && type != "BPE") throw Unsaid{"a tokenizer of type " + type};
  read_vocabulary(model, tokens);
  Kind out;
  out.name = like_sentencepiece(file, model) ? "llama" : "gpt2";
  if (out.name == "llama") {
    out.add_space = adds_space(file);
    score_by_merges(model, tokens);
  } else {
    out.merges = read_merges(model);
    out.pre = pre_name(file, model);
  }
  return out;
}

// tokenizer.json, or what it would be of older files.
std::optional<json::value> described(const json::value& hf) {
  if (const json::value* file = json::find(hf, "tokenizer_json"); file != nullptr && json::find(*file, "model") != nullptr) return *file;
  const text::hf::Section files{hf.as_object(), ""};
  auto config = text::hf::TokenConfig::read(files);
  if (!config.ok()) throw Unsaid{config.status().text};
  if (const std::string packed = text_of(json::find(hf, "sentencepiece_base64")); !packed.empty()) {
    const auto bytes = from_base64(packed);
    if (!bytes.ok()) throw Unsaid{bytes.status().text};
    if (!text::hf::is_tiktoken(*bytes)) return std::nullopt;
    auto made = text::hf::describe_tiktoken(*bytes, *config);
    if (!made.ok()) throw Unsaid{"it: " + made.status().text};
    return json::value(*made);
  }
  const bool words = json::find(hf, "vocab_txt") != nullptr;
  if (!words && json::find(hf, "vocab_json") == nullptr) return std::nullopt;
  auto made = words ? text::hf::describe_vocab_txt(files, *config) : text::hf::describe_vocab_merges(files, *config);
  if (!made.ok()) throw Unsaid{"it: " + made.status().text};
  return json::value(*made);
}

json::array list_of(const std::string& bytes) {
  json::array out;
  for (const char byte : bytes) out.push_back(static_cast<unsigned char>(byte));
  return out;
}

void convert_to_gguf(const json::value& hf, std::uint64_t vocabulary, TokenizerKeys& out, std::vector<std::string>& notes) {
  const std::optional<json::value> file = described(hf);
  Tokens tokens;
  Kind kind;
  const std::string pieces = text_of(json::find(hf, "sentencepiece_base64"));
  if (!pieces.empty() && (!file || like_sentencepiece(*file, *json::find(*file, "model")))) {
    auto bytes = from_base64(pieces);
    if (!bytes.ok()) throw Unsaid{bytes.status().text};
    kind = from_sentencepiece(*bytes, tokens);
    if (file) kind.add_space = adds_space(*file);
  } else if (file) {
    kind = from_json(*file, tokens);
  } else {
    throw Unsaid{"its files"};
  }
  if (file) read_added(*file, tokens);
  auto ids = special_ids(hf, tokens);
  other_ends(hf, ids, tokens);
  if (kind.name == "bert")  // by their usual names where nobody says others
    for (const auto& [name, usual] : {std::pair{"unk", "[UNK]"}, {"sep", "[SEP]"}, {"pad", "[PAD]"}, {"cls", "[CLS]"}, {"mask", "[MASK]"}})
      if (const auto found = tokens.ids.find(usual); ids.count(name) == 0 && found != tokens.ids.end()) ids[name] = found->second;
  const Tokens as_read = tokens;
  if (kind.name == "llama" || kind.name == "t5") spaces_for_marks(tokens);
  if (kind.name == "bert") spell_wordpieces(tokens);
  for (std::size_t id = 0; id < std::max<std::size_t>(tokens.texts.size(), vocabulary); ++id)
    if (id >= tokens.texts.size() || tokens.texts[id].empty()) tokens.set(id, "[PAD" + std::to_string(id) + "]", kUnused, -10000.0f);
  out.put("model", json::value(kind.name));
  out.put("pre", json::value(kind.pre.empty() ? "default" : kind.pre));
  out.put("tokens", json::array(tokens.texts.begin(), tokens.texts.end()));
  if (kind.scored()) out.put("scores", json::array(tokens.scores.begin(), tokens.scores.end()));
  out.put("token_type", json::array(tokens.types.begin(), tokens.types.end()));
  if (kind.name == "gpt2") out.put("merges", json::array(kind.merges.begin(), kind.merges.end()));
  if (kind.add_space) out.put("add_space_prefix", *kind.add_space);
  if (kind.remove_extra_spaces) out.put("remove_extra_whitespaces", *kind.remove_extra_spaces);
  if (!kind.charsmap.empty()) out.put("precompiled_charsmap", list_of(kind.charsmap));
  if (kind.lowercase) out.put("normalizer.lowercase", *kind.lowercase);
  if (kind.strip_accents) out.put("normalizer.strip_accents", *kind.strip_accents);
  write_ids(ids, out);
  add_flags(hf, file ? &*file : nullptr, ids, as_read, kind.name, out);
  if (kind.name == "t5" || kind.name == "bert") compare_tokenizers(hf, out, notes);
}

}  // namespace

Status tokenizer_to_gguf(const json::value& tokenizer, std::uint64_t vocabulary, GgufKeys& out, std::vector<std::string>& notes) {
  const json::value* hf = json::find(tokenizer, "hf");
  if (hf == nullptr) return internal_error("the tokenizer is not a folder's");
  try {
    TokenizerKeys keys;
    std::vector<std::string> own;
    convert_to_gguf(*hf, vocabulary, keys, own);
    GgufKeys made = out;
    MEKIK_CHECK_OK(keys.write(made));
    out = std::move(made);
    notes.insert(notes.end(), own.begin(), own.end());
  } catch (const Unsaid& unsaid) {
    no_tokenizer(out, notes);
    notes.back() = "the tokenizer is left out, for GGUF has no words for " + unsaid.what;
  }
  return {};
}

void no_tokenizer(GgufKeys& out, std::vector<std::string>& notes) {
  out.text("tokenizer.ggml.model", "no_vocab");
  notes.push_back("the model has no tokenizer, so the file has none");
}

}  // namespace mekik::convert
