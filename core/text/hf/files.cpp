#include "text/hf/files.hpp"

#include <algorithm>
#include <array>

#include "base/log.hpp"
#include "text/hf/charsmap.hpp"

namespace mekik::text::hf {

namespace {

constexpr std::array<std::string_view, 7> kNames{"bos_token", "eos_token", "unk_token", "sep_token",
                                                 "pad_token", "cls_token", "mask_token"};
constexpr std::array<std::string_view, 2> kLists{"additional_special_tokens", "extra_special_tokens"};

// "</s>", or {"content": "</s>", "lstrip": false, ..}.
Result<TokenConfig::Named> read_one(const json::value& value, std::string_view name, const std::string& where) {
  TokenConfig::Named named;
  named.name = name;
  if (const json::string* text = value.if_string(); text != nullptr) {
    named.content.assign(text->data(), text->size());
    return named;
  }
  MEKIK_TRY(section, Section::of(value, where));
  MEKIK_TRY(content, section.need_text("content"));
  MEKIK_TRY(lstrip, section.flag("lstrip", false));
  MEKIK_TRY(rstrip, section.flag("rstrip", false));
  MEKIK_TRY(single, section.flag("single_word", false));
  MEKIK_TRY(normalized, section.flag("normalized", false));
  named.content = content;
  named.lstrip = lstrip;
  named.rstrip = rstrip;
  named.single_word = single;
  named.normalized = normalized;
  return named;
}

// A token id, or a list of them. What is neither never ends a text, so it is told.
void add_ids(const json::value* value, const std::string& where, std::vector<std::int64_t>& ids) {
  if (value == nullptr) return;
  if (const json::array* list = value->if_array(); list != nullptr) {
    for (const json::value& id : *list) add_ids(&id, where, ids);
    return;
  }
  if (value->is_int64() && value->get_int64() >= 0) ids.push_back(value->get_int64());
  else log::warning("tokenizer", where + " has " + json::serialize(*value) + ", which is no token id; it ends nothing");
}

const json::object& empty_object() {
  static const json::object kEmpty;
  return kEmpty;
}

Result<Section> optional_section(const Section& files, std::string_view key, const std::string& name) {
  const json::value* value = files.find(key);
  if (value == nullptr) return Section{empty_object(), name};
  return Section::of(*value, name);
}

}  // namespace

Result<TokenConfig> TokenConfig::read(const Section& files) {
  MEKIK_TRY(tokenizer, optional_section(files, "tokenizer_config", "tokenizer_config.json"));
  MEKIK_TRY(map, optional_section(files, "special_tokens_map", "special_tokens_map.json"));
  MEKIK_TRY(generation, optional_section(files, "generation_config", "generation_config.json"));
  MEKIK_TRY(model, optional_section(files, "config", "config.json"));
  TokenConfig config{tokenizer};
  // Folders without added_tokens_decoder are of the time when special_tokens_map.json had the last word.
  const bool map_first = !tokenizer.has("added_tokens_decoder");
  MEKIK_CHECK_OK(config.read_named(map_first ? map : tokenizer));
  MEKIK_CHECK_OK(config.read_named(map_first ? tokenizer : map));
  MEKIK_TRY(older, optional_section(files, "added_tokens", "added_tokens.json"));
  MEKIK_CHECK_OK(tokenizer.has("added_tokens_decoder") ? config.read_listed() : config.read_added(older));
  MEKIK_CHECK_OK(config.read_ids(generation));
  MEKIK_CHECK_OK(config.read_ids(model));
  if (const json::value* text = model.find("text_config"); text != nullptr && text->is_object())
    MEKIK_CHECK_OK(config.read_ids(Section{text->get_object(), "config.json: text_config"}));
  MEKIK_TRY(name, tokenizer.text("tokenizer_class", ""));
  config.class_ = name.ends_with("Fast") ? name.substr(0, name.size() - 4) : name;
  return config;
}

Status TokenConfig::read_named(const Section& section) {
  for (const std::string_view name : kNames) {
    if (!section.mentions(name) || mentions(name)) continue;
    mentioned_.emplace_back(name);
    const json::value* value = section.find(name);
    if (value == nullptr) continue;
    MEKIK_TRY(named, read_one(*value, name, section.path(name)));
    if (!named.content.empty()) named_.push_back(std::move(named));
  }
  for (const std::string_view name : kLists) {
    const json::value* value = section.find(name);
    if (value == nullptr || mentions(name)) continue;
    mentioned_.emplace_back(name);
    std::vector<const json::value*> tokens;
    if (const json::array* list = value->if_array(); list != nullptr)
      for (const json::value& token : *list) tokens.push_back(&token);
    if (const json::object* map = value->if_object(); map != nullptr)
      for (const auto& [key, token] : *map) tokens.push_back(&token);
    for (const json::value* token : tokens) {
      MEKIK_TRY(named, read_one(*token, name, section.path(name)));
      if (!named.content.empty()) named_.push_back(std::move(named));
    }
  }
  return {};
}

// {"<|im_start|>": 32000, ..}, of older folders.
Status TokenConfig::read_added(const Section& section) {
  for (const auto& [key, value] : section.object()) {
    AddedToken token;
    token.content = key;
    if (!value.is_int64() || value.get_int64() < 0 || value.get_int64() > 0x7FFFFFFF) return section.wrong(key, "a token id");
    token.id = static_cast<std::int32_t>(value.get_int64());
    for (const Named& named : named_) token.special = token.special || named.content == token.content;
    token.normalized = !token.special;
    listed_.push_back(std::move(token));
  }
  std::sort(listed_.begin(), listed_.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return {};
}

Status TokenConfig::read_listed() {
  MEKIK_TRY(list, tokenizer_.need_section("added_tokens_decoder"));
  for (const auto& [key, value] : list.object()) {
    const std::string where = list.path(std::string_view{key});
    MEKIK_TRY(token, read_added_token(value, where));
    std::int64_t id = 0;
    for (const char c : std::string_view{key}) {
      if (c < '0' || c > '9' || id > 0xFFFFFFF) return invalid(where + ": the key is no token id");
      id = id * 10 + (c - '0');
    }
    token.id = static_cast<std::int32_t>(std::min<std::int64_t>(id, 0x7FFFFFFF));
    listed_.push_back(std::move(token));
  }
  std::sort(listed_.begin(), listed_.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return {};
}

Status TokenConfig::read_ids(const Section& section) {
  add_ids(section.find("eos_token_id"), section.path("eos_token_id"), end_ids_);
  if (bos_id_ < 0)
    if (const json::value* bos = section.find("bos_token_id"); bos != nullptr && bos->is_int64()) bos_id_ = bos->get_int64();
  return {};
}

std::string TokenConfig::content(std::string_view name) const {
  for (const Named& named : named_)
    if (named.name == name) return named.content;
  return {};
}

bool TokenConfig::mentions(std::string_view name) const {
  return std::find(mentioned_.begin(), mentioned_.end(), name) != mentioned_.end();
}

Result<AddedToken> read_added_token(const json::value& value, const std::string& where) {
  AddedToken token;
  MEKIK_TRY(section, Section::of(value, where));
  constexpr std::size_t kLongest = std::size_t{1} << 16;
  MEKIK_TRY(content, section.need_text("content"));
  if (content.size() > kLongest) return section.wrong("content", "a text of at most 64 KiB");
  MEKIK_TRY(special, section.flag("special", false));
  MEKIK_TRY(single, section.flag("single_word", false));
  MEKIK_TRY(lstrip, section.flag("lstrip", false));
  MEKIK_TRY(rstrip, section.flag("rstrip", false));
  MEKIK_TRY(normalized, section.flag("normalized", !special));
  MEKIK_TRY(id, section.integer("id", -1));
  token.content = content;
  token.special = special;
  token.single_word = single;
  token.lstrip = lstrip;
  token.rstrip = rstrip;
  token.normalized = normalized;
  token.id = static_cast<std::int32_t>(std::clamp<std::int64_t>(id, -1, 0x7FFFFFFF));
  return token;
}

Result<std::unique_ptr<Tokenizer>> create(const json::value& value) {
  MEKIK_TRY(files, Section::of(value, ""));
  MEKIK_TRY(config, TokenConfig::read(files));
  if (files.has("tokenizer_json")) {
    MEKIK_TRY(whole, Section::of(*files.find("tokenizer_json"), "tokenizer.json"));
    return create_from_json(whole, config);
  }
  if (files.has("sentencepiece_base64")) {
    MEKIK_TRY(encoded, files.need_text("sentencepiece_base64"));
    auto bytes = decode_base64(encoded);
    if (!bytes) return std::move(bytes.status()).in("tokenizer.model");
    if (!is_tiktoken(*bytes)) return create_from_sentencepiece(*bytes, config);
    MEKIK_TRY(made, describe_tiktoken(*bytes, config));
    return create_from_json(Section{made, "tiktoken.model"}, config);
  }
  const bool merges = files.has("vocab_json") && files.has("merges_txt");
  if (!merges && !files.has("vocab_txt"))
    return unsupported(
        "the folder has no tokenizer that is known: neither tokenizer.json, nor tokenizer.model, nor tiktoken.model, nor vocab.json with "
        "merges.txt, nor "
        "vocab.txt");
  MEKIK_TRY(made, merges ? describe_vocab_merges(files, config) : describe_vocab_txt(files, config));
  return create_from_json(Section{made, merges ? "vocab.json and merges.txt" : "vocab.txt"}, config);
}

}  // namespace mekik::text::hf
