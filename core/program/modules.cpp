// Folders of sentence-transformers: what leads from the rows to an embedding, and what is done to a text before it.
#include <algorithm>

#include "base/text.hpp"
#include "program/model_reader.hpp"

namespace mekik::program {

namespace {

constexpr const char* kPooling = "1_Pooling/config.json";
constexpr std::string_view kMode = "pooling_mode_";

std::string text_of(const json::value& object, std::string_view key) {
  const json::value* found = json::find(object, key);
  return found != nullptr && found->is_string() ? std::string{found->get_string()} : std::string{};
}

std::string known_mode(std::string_view name) {
  if (name == "cls" || name == "cls_token") return "cls";
  if (name == "mean" || name == "mean_tokens") return "mean";
  if (name == "lasttoken" || name == "last") return "last";
  if (name == "max" || name == "max_tokens") return "max";
  if (name == "weightedmean" || name == "weightedmean_tokens") return "weightedmean";
  return name == "mean_sqrt_len_tokens" ? "mean_sqrt_len" : "";
}

// The names of the modes that are true.
std::vector<std::string> modes_of(const json::value& pooling, std::string& wrong) {
  std::vector<std::string> out;
  for (const auto& member : pooling.get_object()) {
    const std::string_view key{member.key().data(), member.key().size()};
    if (key.substr(0, kMode.size()) != kMode || member.value().is_null()) continue;
    if (!member.value().is_bool()) wrong = std::string{key} + " must be true or false";
    else if (member.value().get_bool()) out.emplace_back(key.substr(kMode.size()));
  }
  return out;
}

}  // namespace

// modules.json may name what is computed: a transformer, one way of pooling, linears and a length of 1. Gives the way of pooling, empty
// where nothing names one. What is not computed is a Mistake that only embeddings mind.
std::string ModelReader::pooling_module(bool chosen) {
  if (meta_.format != "hf") return chosen ? options_.pooling : std::string{};
  const auto refuse = [&](const std::string& what) { throw Mistake{page_.main.origin, what, {}, true}; };
  bool pools = false;
  const json::value& modules = beside("modules.json");
  if (modules.is_array())
    for (const json::value& module : modules.get_array()) {
      const std::string type = text_of(module, "type"), path = text_of(module, "path"), kind = type.substr(type.rfind('.') + 1);
      if (kind == "Pooling" && path != "1_Pooling")
        refuse("modules.json has the module Pooling in " + mekik::quoted(path) + "; it is read from \"1_Pooling\"");
      if (kind == "Pooling" && !beside(kPooling).is_object())
        refuse("modules.json names 1_Pooling, but " + std::string{kPooling} + " is missing or damaged; fetch it");
      pools = pools || kind == "Pooling";
      if (kind != "Pooling" && kind != "Transformer" && kind != "Dense" && kind != "Normalize" && kind != "Dropout")
        refuse("modules.json names a module of type " + mekik::quoted(type) + ", which is not computed");
    }
  if (chosen) return options_.pooling;
  if (modules.is_array() && !pools) refuse("modules.json names no module Pooling; say how to pool, model.pooling = \"mean\" or another");
  const json::value& pooling = beside(kPooling);
  if (!pooling.is_object()) return {};
  const auto computed = [&](const std::string& key, const std::string& name) {
    const std::string mode = known_mode(name);
    if (mode.empty())
      refuse(std::string{kPooling} + ": " + key + " is not computed; cls, mean, lasttoken, max, weightedmean and mean_sqrt_len_tokens are");
    return mode;
  };
  if (const json::value* one = json::find(pooling, "pooling_mode"); one != nullptr && !one->is_null())
    return computed("pooling_mode " + json::serialize(*one), text_of(pooling, "pooling_mode"));
  std::string wrong_kind;
  const std::vector<std::string> modes = modes_of(pooling, wrong_kind);
  if (!wrong_kind.empty()) refuse(std::string{kPooling} + ": " + wrong_kind);
  if (modes.size() > 1)
    refuse(std::string{kPooling} + ": " + std::string{kMode} + join(modes, " and " + std::string{kMode}) +
           " are both set, and would stand one behind the other; one is computed");
  if (modes.empty() && json::find(pooling, "pooling_mode_mean_tokens") != nullptr) refuse(std::string{kPooling} + ": no mode is set");
  return modes.empty() ? std::string{} : computed(std::string{kMode} + modes[0], modes[0]);
}

// What sentence-transformers does to a text before the model and nobody does here.
void ModelReader::warn_of_texts(std::uint64_t context) {
  if (meta_.format != "hf") return;
  const json::value& transformer = beside("sentence_bert_config.json");
  const json::value* lower = transformer.is_object() ? json::find(transformer, "do_lower_case") : nullptr;
  if (lower != nullptr && lower->is_bool() && lower->get_bool())
    warnings_.push_back("sentence_bert_config.json: do_lower_case is set, but texts are taken as they are; make them lower case before");
  const json::value* most = transformer.is_object() ? json::find(transformer, "max_seq_length") : nullptr;
  if (most != nullptr && most->is_int64() && most->get_int64() > 0 && static_cast<std::uint64_t>(most->get_int64()) < context)
    notes_.push_back("sentence_bert_config.json cuts texts after " + std::to_string(most->get_int64()) +
                     " tokens (max_seq_length); here they are taken whole");
  const json::value& texts = beside("config_sentence_transformers.json");
  const std::string name = texts.is_object() ? text_of(texts, "default_prompt_name") : std::string{};
  const json::value* prompts = name.empty() ? nullptr : json::find(texts, "prompts");
  const std::string prompt = prompts != nullptr && prompts->is_object() ? text_of(*prompts, name) : std::string{};
  if (!prompt.empty())
    warnings_.push_back("config_sentence_transformers.json puts the prompt " + mekik::quoted(prompt) + " (" + mekik::quoted(name) +
                        ") in front of texts; here they are taken as they are");
}

}  // namespace mekik::program
