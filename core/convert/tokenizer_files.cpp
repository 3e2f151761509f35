// tokenizer.ggml.* to tokenizer.json or tokenizer.model, with tokenizer_config.json.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "base/text.hpp"
#include "convert/sentencepiece.hpp"
#include "convert/tokenizer.hpp"
#include "text/tokenizer_split.hpp"

namespace mekik::convert {

namespace {

enum TokenType : std::int64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
constexpr std::string_view kPrefix = "tokenizer.ggml.";

class Ggml {
 public:
  explicit Ggml(const json::value& keys) : keys_{keys} {}
  const json::value* find(std::string_view key) const { return json::find(keys_, std::string{kPrefix} + std::string{key}); }
  std::string text(std::string_view key) const {
    const json::value* found = find(key);
    return found != nullptr && found->is_string() ? std::string{std::string_view{found->get_string()}} : std::string{};
  }
  bool flag(std::string_view key, bool otherwise) const {
    const json::value* found = find(key);
    return found != nullptr && found->is_bool() ? found->get_bool() : otherwise;
  }
  const json::array* list(std::string_view key) const {
    const json::value* found = find(key);
    return found != nullptr ? found->if_array() : nullptr;
  }
  std::int64_t id(std::string_view key) const {
    const json::value* found = find(key);
    return found != nullptr && found->is_number() ? found->to_number<std::int64_t>() : -1;
  }

 private:
  const json::value& keys_;
};

struct Tokens {
  std::vector<std::string> texts;
  std::vector<std::int64_t> types;
  std::string at(std::int64_t id) const {
    return id >= 0 && static_cast<std::size_t>(id) < texts.size() ? texts[static_cast<std::size_t>(id)] : std::string{};
  }
};

Tokens read_tokens(const Ggml& ggml) {
  Tokens out;
  const json::array* texts = ggml.list("tokens");
  const json::array* types = ggml.list("token_type");
  for (std::size_t i = 0; texts != nullptr && i < texts->size(); ++i) {
    const json::value& text = (*texts)[i];
    out.texts.emplace_back(text.is_string() ? std::string_view{text.get_string()} : std::string_view{});
    out.types.push_back(types != nullptr && i < types->size() && (*types)[i].is_number() ? (*types)[i].to_number<std::int64_t>() : kNormal);
  }
  return out;
}

// Tokens that are recognised whole in a text.
json::array added_tokens(const Tokens& tokens) {
  json::array out;
  for (std::size_t i = 0; i < tokens.texts.size(); ++i) {
    const std::int64_t type = tokens.types[i];
    if (type != kControl && type != kUserDefined && type != kUnknown) continue;
    out.push_back(json::object{{"id", i},
                               {"content", tokens.texts[i]},
                               {"single_word", false},
                               {"lstrip", false},
                               {"rstrip", false},
                               {"normalized", false},
                               {"special", type != kUserDefined}});
  }
  return out;
}

json::object byte_level() { return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}}; }

json::value pre_tokenizer(const text::PreTokenizer& known) {
  json::array steps;
  for (const std::string_view step : known.steps)
    steps.push_back(
        json::object{{"type", "Split"}, {"pattern", json::object{{"Regex", step}}}, {"behavior", "Isolated"}, {"invert", false}});
  steps.push_back(byte_level());
  return json::object{{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

// BOS in front and EOS behind, as the file asks for.
json::value post_processor(const Ggml& ggml, const Tokens& tokens, bool add_bos, bool add_eos) {
  const std::string bos = tokens.at(ggml.id("bos_token_id")), eos = tokens.at(ggml.id("eos_token_id"));
  if ((!add_bos || bos.empty()) && (!add_eos || eos.empty())) return byte_level();
  json::array single, pair;
  json::object special;
  const auto piece = [&](json::array& to, const std::string& token, std::int64_t id, int type) {
    to.push_back(json::object{{"SpecialToken", json::object{{"id", token}, {"type_id", type}}}});
    special[token] = json::object{{"id", token}, {"ids", json::array{id}}, {"tokens", json::array{json::value(token)}}};
  };
  const auto sequence = [](json::array& to, const char* which, int type) {
    to.push_back(json::object{{"Sequence", json::object{{"id", which}, {"type_id", type}}}});
  };
  const auto one = [&](json::array& to, const char* which, int type) {
    if (add_bos && !bos.empty()) piece(to, bos, ggml.id("bos_token_id"), type);
    sequence(to, which, type);
    if (add_eos && !eos.empty()) piece(to, eos, ggml.id("eos_token_id"), type);
  };
  one(single, "A", 0);
  one(pair, "A", 0);
  one(pair, "B", 1);
  return json::object{
      {"type", "TemplateProcessing"}, {"single", std::move(single)}, {"pair", std::move(pair)}, {"special_tokens", std::move(special)}};
}

// Byte-level BPE. False: its pre-tokenizer is not known.
bool byte_level_bpe(const Ggml& ggml, const Tokens& tokens, bool add_eos, std::map<std::string, std::string>& files, bool& add_bos) {
  const std::string pre = ggml.text("pre");
  const auto all = text::pre_tokenizers();
  const auto known = std::find_if(all.begin(), all.end(), [&](const text::PreTokenizer& one) { return one.name == pre; });
  if (known == all.end()) return false;
  add_bos = ggml.flag("add_bos_token", known->add_bos);
  json::object vocabulary;
  for (std::size_t i = 0; i < tokens.texts.size(); ++i) vocabulary.emplace(tokens.texts[i], i);
  json::array merges;
  if (const json::array* stored = ggml.list("merges")) merges = *stored;
  const json::object model{{"type", "BPE"},
                           {"dropout", nullptr},
                           {"unk_token", nullptr},
                           {"continuing_subword_prefix", nullptr},
                           {"end_of_word_suffix", nullptr},
                           {"fuse_unk", false},
                           {"byte_fallback", false},
                           {"ignore_merges", known->ignore_merges},
                           {"vocab", std::move(vocabulary)},
                           {"merges", std::move(merges)}};
  const json::object file{{"version", "1.0"},
                          {"truncation", nullptr},
                          {"padding", nullptr},
                          {"added_tokens", added_tokens(tokens)},
                          {"normalizer", known->nfc ? json::value{json::object{{"type", "NFC"}}} : json::value{}},
                          {"pre_tokenizer", pre_tokenizer(*known)},
                          {"post_processor", post_processor(ggml, tokens, add_bos, add_eos)},
                          {"decoder", byte_level()},
                          {"model", model}};
  files["tokenizer.json"] = json::serialize(file) + "\n";
  return true;
}

// GGUF spells tokens that are found in the text itself with the spaces of the text; SentencePiece has its mark there.
std::string with_marks(const std::string& text) {
  std::string out;
  for (const char c : text) c == ' ' ? out += "\xE2\x96\x81" : out += c;
  return out;
}

void sentencepiece(const Ggml& ggml, const Tokens& tokens, std::map<std::string, std::string>& files) {
  SentencePiece model;
  model.model = SentencePiece::kBpe;
  model.add_dummy_prefix = ggml.flag("add_space_prefix", true);
  model.remove_extra_whitespaces = false;
  const json::array* scores = ggml.list("scores");
  for (std::size_t i = 0; i < tokens.texts.size(); ++i) {
    const float score = scores != nullptr && i < scores->size() && (*scores)[i].is_number() ? (*scores)[i].to_number<float>() : 0.0f;
    const bool found = tokens.types[i] == kUserDefined;
    model.pieces.push_back({found ? with_marks(tokens.texts[i]) : tokens.texts[i], score, static_cast<std::int32_t>(tokens.types[i])});
    model.byte_fallback = model.byte_fallback || tokens.types[i] == kByte;
  }
  files["tokenizer.model"] = write_sentencepiece(model);
}

std::vector<float> scores_of(const Ggml& ggml, std::size_t count) {
  const json::array* scores = ggml.list("scores");
  std::vector<float> out(count, 0.0f);
  for (std::size_t i = 0; i < count && scores != nullptr && i < scores->size(); ++i)
    if ((*scores)[i].is_number()) out[i] = (*scores)[i].to_number<float>();
  return out;
}

std::string base64(const json::array& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<std::uint32_t>(bytes[i + j].to_number<int>()) & 255u : 0u);
    for (std::size_t j = 0; j < 4; ++j) out += i + j > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * j) & 63];
  }
  return out;
}

// Unigram: what SentencePiece does with spaces, as steps of tokenizer.json.
void unigram(const Ggml& ggml, const Tokens& tokens, bool add_bos, bool add_eos, std::map<std::string, std::string>& files) {
  json::array steps, pieces;
  if (const json::array* map = ggml.list("precompiled_charsmap"); map != nullptr && !map->empty())
    steps.push_back(json::object{{"type", "Precompiled"}, {"precompiled_charsmap", base64(*map)}});
  if (ggml.flag("remove_extra_whitespaces", false)) {
    steps.push_back(json::object{{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}});
    steps.push_back(json::object{{"type", "Replace"}, {"pattern", json::object{{"Regex", " {2,}"}}}, {"content", " "}});
  }
  const std::vector<float> scores = scores_of(ggml, tokens.texts.size());
  std::int64_t unknown = ggml.id("unknown_token_id");
  bool bytes = false;
  for (std::size_t i = 0; i < tokens.texts.size(); ++i) {
    if (unknown < 0 && tokens.types[i] == kUnknown) unknown = static_cast<std::int64_t>(i);
    bytes = bytes || tokens.types[i] == kByte;
    pieces.push_back(json::array{json::value(tokens.types[i] == kUserDefined ? with_marks(tokens.texts[i]) : tokens.texts[i]),
                                 static_cast<double>(scores[i])});
  }
  const json::object space{{"type", "Metaspace"},
                           {"replacement", "\xE2\x96\x81"},
                           {"prepend_scheme", ggml.flag("add_space_prefix", true) ? "always" : "never"},
                           {"split", true}};
  json::value model = json::object{{"type", "Unigram"}, {"vocab", std::move(pieces)}, {"byte_fallback", bytes}};
  if (unknown >= 0) model.as_object()["unk_id"] = unknown;
  json::value post = post_processor(ggml, tokens, add_bos, add_eos);
  if (json::find(post, "single") == nullptr) post = nullptr;
  const json::object file{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added_tokens(tokens)},
      {"normalizer", steps.empty() ? json::value() : json::value(json::object{{"type", "Sequence"}, {"normalizers", std::move(steps)}})},
      {"pre_tokenizer", space},
      {"post_processor", std::move(post)},
      {"decoder", space},
      {"model", std::move(model)}};
  files["tokenizer.json"] = json::serialize(file) + "\n";
}

// WordPiece: one word or piece of a word a line, pieces with ## in front.
void wordpiece(const Tokens& tokens, std::map<std::string, std::string>& files) {
  constexpr std::string_view kSign = "\xE2\x96\x81";
  std::string text;
  for (const std::string& token : tokens.texts) {
    const bool bracketed = token.starts_with('[') && token.ends_with(']');
    text += (token.starts_with(kSign) ? token.substr(kSign.size()) : bracketed ? token : "##" + token) + "\n";
  }
  files["vocab.txt"] = text;
}

constexpr std::pair<const char*, const char*> kSpecial[] = {
    {"bos", "bos_token_id"},     {"eos", "eos_token_id"}, {"unk", "unknown_token_id"}, {"sep", "seperator_token_id"},
    {"pad", "padding_token_id"}, {"cls", "cls_token_id"}, {"mask", "mask_token_id"}};

std::string tokenizer_config(const Ggml& ggml, const Tokens& tokens, const char* tokenizer_class, bool add_bos, bool add_eos, bool decoder,
                             const json::object& more = {}) {
  json::object out{{"tokenizer_class", tokenizer_class},
                   {"add_bos_token", add_bos},
                   {"add_eos_token", add_eos},
                   {"clean_up_tokenization_spaces", false}};
  for (const auto& member : more) out[member.key()] = member.value();
  for (const auto& [name, key] : kSpecial)
    if (const std::string token = tokens.at(ggml.id(key)); !token.empty()) out[std::string{name} + "_token"] = token;
  if (!decoder) return indented(out) + "\n";
  json::object added;
  for (const json::value& token : added_tokens(tokens)) {
    json::object one = token.get_object();
    const std::string id = json::serialize(one["id"]);
    one.erase("id");
    const std::string_view content = one["content"].get_string();
    if (content.find(' ') != std::string_view::npos) continue;  // the pieces say so, with marks
    added[id] = std::move(one);
  }
  out["added_tokens_decoder"] = std::move(added);
  out["legacy"] = false;
  out["add_prefix_space"] = ggml.flag("add_space_prefix", true);
  return indented(out) + "\n";
}

// The shortest digits that read back as the same number, and never as a whole one.
std::string real_text(double value) {
  if (std::isinf(value)) return value > 0 ? "1e999" : "-1e999";
  char digits[40];
  std::string out{digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
  return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

void write_indented(const json::value& value, std::size_t depth, std::string& out) {
  const std::string begin(2 * depth + 2, ' '), end(2 * depth, ' ');
  const json::array* list = value.if_array();
  const bool scalars = list != nullptr && std::none_of(list->begin(), list->end(), [](const json::value& v) { return v.is_structured(); });
  if (list != nullptr && !list->empty() && !scalars) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      out += (i == 0 ? "[\n" : ",\n") + begin;
      write_indented((*list)[i], depth + 1, out);
    }
    out += "\n" + end + "]";
  } else if (const json::object* object = value.if_object(); object != nullptr && !object->empty()) {
    bool first = true;
    for (const auto& member : *object) {
      out += (first ? "{\n" : ",\n") + begin + json::serialize(json::value(member.key())) + ": ";
      first = false;
      write_indented(member.value(), depth + 1, out);
    }
    out += "\n" + end + "}";
  } else if (value.is_double()) {
    out += real_text(value.get_double());
  } else {
    out += json::serialize(value);
  }
}

}  // namespace

std::string indented(const json::value& value) {
  std::string out;
  write_indented(value, 0, out);
  return out;
}

Status tokenizer_to_files(const json::value& tokenizer, json::object& config, std::map<std::string, std::string>& files,
                          std::vector<std::string>& notes) {
  const Ggml ggml{tokenizer};
  const Tokens tokens = read_tokens(ggml);
  for (const auto& [name, key] : kSpecial)
    if (ggml.id(key) >= 0) config[std::string{name} + "_token_id"] = ggml.id(key);
  const std::string kind = ggml.text("model");
  const bool add_eos = ggml.flag("add_eos_token", false);
  bool add_bos = ggml.flag("add_bos_token", kind == "llama");
  if (kind == "gpt2" && byte_level_bpe(ggml, tokens, add_eos, files, add_bos)) {
    files["tokenizer_config.json"] = tokenizer_config(ggml, tokens, "PreTrainedTokenizerFast", add_bos, add_eos, false);
  } else if (kind == "t5") {
    unigram(ggml, tokens, ggml.flag("add_bos_token", false), ggml.flag("add_eos_token", true), files);
    files["tokenizer_config.json"] = tokenizer_config(ggml, tokens, "PreTrainedTokenizerFast", false, false, false);
  } else if (kind == "bert" && ggml.flag("add_bos_token", true) && ggml.flag("add_sep_token", true)) {
    wordpiece(tokens, files);
    const bool lower = ggml.flag("normalizer.lowercase", true);
    json::object more{{"do_lower_case", lower}, {"strip_accents", ggml.flag("normalizer.strip_accents", lower)}};
    for (const auto& [name, key, otherwise] :
         {std::tuple{"unk", "unknown_token_id", 100}, std::tuple{"cls", "cls_token_id", 101}, std::tuple{"sep", "seperator_token_id", 102}})
      if (const std::string token = tokens.at(ggml.id(key) >= 0 ? ggml.id(key) : otherwise); !token.empty())
        more[std::string{name} + "_token"] = token;
    files["tokenizer_config.json"] = tokenizer_config(ggml, tokens, "BertTokenizer", false, false, false, more);
  } else if (kind == "llama") {
    sentencepiece(ggml, tokens, files);
    files["tokenizer_config.json"] = tokenizer_config(ggml, tokens, "LlamaTokenizer", add_bos, add_eos, true);
  } else {
    notes.push_back("the tokenizer is left out, for its kind is " + mekik::quoted(kind) +
                    (kind == "gpt2" ? ", pre-tokenizer " + mekik::quoted(ggml.text("pre")) : ""));
    return {};
  }
  json::object generation;
  json::array ends;
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"})
    if (ggml.id(key) >= 0 && std::find(ends.begin(), ends.end(), json::value(ggml.id(key))) == ends.end()) ends.push_back(ggml.id(key));
  if (ggml.id("bos_token_id") >= 0) generation["bos_token_id"] = ggml.id("bos_token_id");
  if (ends.size() == 1) generation["eos_token_id"] = ends[0];
  else if (!ends.empty()) generation["eos_token_id"] = ends;
  files["generation_config.json"] = indented(generation) + "\n";
  return {};
}

}  // namespace mekik::convert
