// Puts together what a tokenizer.json describes, and the tokens that the configuration files name.
#include <algorithm>
#include <unordered_map>

#include "base/log.hpp"
#include "base/text.hpp"
#include "text/hf/files.hpp"

namespace mekik::text::hf {

namespace {

// Gives every token its id as the library does: the vocabulary's, or the next free one in the order of the list.
class AddedList {
 public:
  AddedList(const TokenTable& tokens, const Normalizers& normalizers)
      : tokens_(tokens), normalizers_(normalizers), next_(static_cast<std::int32_t>(tokens.count())) {}

  void add(AddedToken token) {
    if (token.content.empty()) return log::warning("tokenizer", "an added token has no content; it is left out");
    const auto known = places_.find(token.content);
    const std::int32_t in_vocabulary = tokens_.find(token.content);
    const std::int32_t id = known != places_.end() ? list_[known->second].id : in_vocabulary >= 0 ? in_vocabulary : next_++;
    if (token.id >= 0 && token.id != id && moved_++ == 0)
      first_moved_ = quoted(token.content) + ", listed as " + std::to_string(token.id) + ", is " + std::to_string(id);
    token.id = id;
    token.pattern = token.content;
    if (token.normalized) {
      Text text{token.content, {}, false, &bound_};
      normalize(normalizers_, text, scratch_);
      token.pattern = std::move(text.bytes);
    }
    if (known != places_.end()) {
      token.special = token.special || list_[known->second].special;
      list_[known->second] = std::move(token);
      return;
    }
    places_.emplace(token.content, list_.size());
    list_.push_back(std::move(token));
  }

  bool has(const std::string& content) const { return places_.contains(content); }
  void make_special(const std::string& content) { list_[places_.at(content)].special = true; }
  std::int32_t id(const std::string& content) const {
    const auto known = places_.find(content);
    return known != places_.end() ? list_[known->second].id : tokens_.find(content);
  }
  std::vector<AddedToken> take() {
    if (moved_ > 0)
      log::warning("tokenizer",
                   std::to_string(moved_) +
                       " added tokens have other ids than the file lists (as with the library that wrote it); the first: " + first_moved_);
    return std::move(list_);
  }
  std::int32_t limit() const {
    std::int32_t limit = tokens_.limit();
    for (const AddedToken& token : list_) limit = std::max(limit, token.id + 1);
    return limit;
  }

 private:
  const TokenTable& tokens_;
  const Normalizers& normalizers_;
  MatchScratch scratch_;
  Bound bound_{std::size_t{1} << 20};  // all tokens together
  std::vector<AddedToken> list_;
  std::unordered_map<std::string, std::size_t> places_;
  std::int32_t next_;
  std::size_t moved_ = 0;
  std::string first_moved_;
};

Status read_added(const Section& json, const TokenConfig& config, AddedList& list) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  if (json.has("added_tokens")) {
    MEKIK_TRY(tokens, json.need_array("added_tokens"));
    if (tokens->size() > kMost) return json.wrong("added_tokens", "a list of at most 1048576 tokens");
    for (std::size_t i = 0; i < tokens->size(); ++i) {
      MEKIK_TRY(token, read_added_token((*tokens)[i], json.path("added_tokens") + "[" + std::to_string(i) + "]"));
      list.add(std::move(token));
    }
  }
  // Tokens that only tokenizer_config.json knows. A special token without an id would need a row that the model does not have.
  for (const AddedToken& token : config.listed())
    if (!list.has(token.content)) list.add(token);
  for (const TokenConfig::Named& named : config.named()) {
    if (list.has(named.content)) list.make_special(named.content);
    else if (list.id(named.content) >= 0)
      list.add({named.content, -1, named.single_word, named.lstrip, named.rstrip, named.normalized, true, {}});
  }
  return {};
}

// The ids under which generation ends; what is outside of the vocabulary cannot be generated.
std::vector<std::int32_t> end_ids(std::int32_t eos, const TokenConfig& config, std::int32_t limit) {
  std::vector<std::int32_t> ends;
  if (eos >= 0) ends.push_back(eos);
  for (const std::int64_t id : config.end_ids()) {
    if (id >= 0 && id < limit) ends.push_back(static_cast<std::int32_t>(id));
    else if (id >= limit)
      log::warning("tokenizer",
                   "the end token " + std::to_string(id) + " is outside of the vocabulary (0 to " + std::to_string(limit - 1) + ")");
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

Status read_steps(const Section& json, Pipeline& parts) {
  if (json.has("normalizer")) {
    MEKIK_TRY(section, json.need_section("normalizer"));
    MEKIK_CHECK_OK(read_normalizer(section, parts.normalizers));
  }
  if (json.has("pre_tokenizer")) {
    MEKIK_TRY(section, json.need_section("pre_tokenizer"));
    MEKIK_CHECK_OK(read_pre_tokenizer(section, parts.pre_tokenizers));
  }
  if (json.has("decoder")) {
    MEKIK_TRY(section, json.need_section("decoder"));
    MEKIK_TRY(decoder, Decoder::read(section));
    parts.decoder = std::move(decoder);
  }
  for (const std::string_view key : {"truncation", "padding"})
    if (json.has(key)) log::info("tokenizer", json.path(key) + " is left aside: texts are neither cut nor padded here");
  return {};
}

}  // namespace

Result<Pipeline> read_pipeline(const Section& json, const TokenConfig& config) {
  MEKIK_TRY(version, json.text("version", "1.0"));
  if (version != "1.0") return unsupported(json.path("version") + " is " + quoted(version) + ", not \"1.0\"");
  Pipeline parts;
  MEKIK_TRY(model_section, json.need_section("model"));
  MEKIK_TRY(model, read_model(model_section));
  parts.model = std::move(model);
  MEKIK_CHECK_OK(read_steps(json, parts));
  AddedList added{parts.model->tokens(), parts.normalizers};
  MEKIK_CHECK_OK(read_added(json, config, added));
  const std::int32_t limit = added.limit();
  if (json.has("post_processor")) {
    MEKIK_TRY(section, json.need_section("post_processor"));
    MEKIK_TRY(processor, PostProcessor::read(section, limit));
    parts.post_processor = std::move(processor);
  }
  const auto named = [&](std::string_view name) {
    const std::string content = config.content(name);
    const std::int32_t id = content.empty() ? -1 : added.id(content);
    if (!content.empty() && id < 0)
      log::warning("tokenizer", "the " + std::string{name} + " " + quoted(content) + " is no token of the vocabulary; there is none");
    return id;
  };
  parts.bos = named("bos_token");
  if (parts.bos < 0 && !config.mentions("bos_token") && config.bos_id() < limit) parts.bos = static_cast<std::int32_t>(config.bos_id());
  parts.eos = named("eos_token");
  parts.ends = end_ids(parts.eos, config, limit);
  if (parts.eos < 0 && !config.mentions("eos_token") && !parts.ends.empty()) parts.eos = parts.ends.front();
  parts.added = added.take();
  parts.kind = json.name() + ", " + parts.model->kind();
  return parts;
}

Result<std::unique_ptr<Tokenizer>> create_from_json(const Section& json, const TokenConfig& config) {
  MEKIK_TRY(parts, read_pipeline(json, config));
  return std::unique_ptr<Tokenizer>{std::make_unique<PipelineTokenizer>(std::move(parts))};
}

}  // namespace mekik::text::hf
