// Hugging Face's files as a loader gives them, and the tokenizers made of them.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/hf/config.hpp"
#include "text/hf/pipeline.hpp"

namespace mekik::text::hf {

// What the configuration files say about tokens: tokenizer_config.json, special_tokens_map.json, added_tokens.json,
// generation_config.json, config.json.
class TokenConfig {
 public:
  // `files`: the loader's object; all of its members are optional here.
  static Result<TokenConfig> read(const Section& files);

  struct Named {
    std::string name;  // "eos_token"
    std::string content;
    bool lstrip = false, rstrip = false, single_word = false, normalized = false;
  };
  const std::vector<Named>& named() const { return named_; }         // also additional_special_tokens
  const std::vector<AddedToken>& listed() const { return listed_; }  // added_tokens_decoder, or added_tokens.json
  // The content of "bos_token", or nothing when the files have none; `absent`: they do not mention it.
  std::string content(std::string_view name) const;
  bool mentions(std::string_view name) const;
  const std::vector<std::int64_t>& end_ids() const { return end_ids_; }  // generation_config and config
  std::int64_t bos_id() const { return bos_id_; }                        // of config.json, -1: none
  const Section& tokenizer() const { return tokenizer_; }                // tokenizer_config.json, maybe empty
  std::string tokenizer_class() const { return class_; }                 // without "Fast"

 private:
  TokenConfig(Section tokenizer) : tokenizer_(std::move(tokenizer)) {}
  Status read_named(const Section& section);
  Status read_listed();
  Status read_added(const Section& section);
  Status read_ids(const Section& section);
  Section tokenizer_;
  std::vector<Named> named_;
  std::vector<AddedToken> listed_;
  std::vector<std::string> mentioned_;
  std::vector<std::int64_t> end_ids_;
  std::int64_t bos_id_ = -1;
  std::string class_;
};

// {"content": .., "special": .., ..}; the id is -1 where it is not given.
Result<AddedToken> read_added_token(const json::value& value, const std::string& where);

// tokenizer.json.
Result<Pipeline> read_pipeline(const Section& json, const TokenConfig& config);
Result<std::unique_ptr<Tokenizer>> create_from_json(const Section& json, const TokenConfig& config);
// vocab.json with merges.txt, or vocab.txt: what tokenizer.json would be.
Result<json::object> describe_vocab_merges(const Section& files, const TokenConfig& config);
Result<json::object> describe_vocab_txt(const Section& files, const TokenConfig& config);
// The post_processor that adds BOS and EOS as the flags of tokenizer_config.json ask for; null where none does. `vocab`: their ids.
Result<json::value> flag_template(const TokenConfig& config, const json::object& vocab, const std::string& bos, const std::string& eos);
// tiktoken.model, or a tokenizer.model of that kind: what tokenizer.json would be.
bool is_tiktoken(std::string_view bytes);
Result<json::object> describe_tiktoken(std::string_view bytes, const TokenConfig& config);
// tokenizer.model.
Result<std::unique_ptr<Tokenizer>> create_from_sentencepiece(std::string_view model, const TokenConfig& config);

// The loader's meta("tokenizer") of a folder: {"hf": files}.
Result<std::unique_ptr<Tokenizer>> create(const json::value& files);

}  // namespace mekik::text::hf
