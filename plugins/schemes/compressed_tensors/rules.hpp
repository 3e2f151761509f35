// What quantization_config says of one module: config_groups with their targets, ignore, and what this scheme does not read.
#pragma once
#include "../common/pattern.hpp"

namespace mekik_compressed {

using mekik::checkpoint::find;
using mekik::checkpoint::Json;
using mekik::checkpoint::need_object;
using mekik::checkpoint::need_texts;
using mekik::checkpoint::Object;
using mekik::checkpoint::object_at;
using mekik::checkpoint::text_at;
using mekik::checkpoint::unsupported;
using mekik::checkpoint::whole_at;
using mekik::checkpoint::word_at;
using mekik::checkpoint::wrong;

struct Rules {
  std::uint32_t bits = 8;
  bool symmetric = true, integer = true, activations = false, ordered = false;
  std::string strategy = "tensor";
  std::uint64_t group = 0, block_n = 0, block_k = 0;
};

// One entry of `targets` or `ignore` against a module's name: 3 the name itself, 2 an expression, 1 a class that it may be of, 0 no.
inline int matches(const std::string& target, const std::string& module) {
  if (target.starts_with("re:")) return mekik::checkpoint::name_matches(target.substr(3), module) ? 2 : 0;
  if (target == module) return 3;
  return target == "Linear" || target == "Embedding" ? 1 : 0;
}

inline int best_match(const Json* list, const std::string& module) {
  int best = 0;
  if (list == nullptr || !list->is_array()) return 0;
  for (const Json& entry : list->get_array())
    if (entry.is_string()) best = std::max(best, matches(std::string{entry.get_string()}, module));
  return best;
}

inline bool ignored(const Object& config, const std::string& module) { return best_match(find(config, "ignore"), module) > 1; }

// Things that change what the numbers mean, or where they are.
inline void refuse_unknown(const Object& config) {
  if (const Object* sparse = object_at(config, "sparsity_config"))
    if (const std::string format = text_at(*sparse, "format", "dense"); format != "dense")
      unsupported("quantization_config: the weights are stored sparse (" + format + "); decompress the checkpoint with its own tool first");
  if (const Object* transforms = object_at(config, "transform_config"))
    if (const Object* groups = object_at(*transforms, "config_groups"); groups != nullptr && !groups->empty())
      unsupported("quantization_config: transform_config rotates weights or activations, which is not read here");
  static constexpr const char* kFormats[] = {
      "pack-quantized",       "int-quantized",        "float-quantized", "naive-quantized", "nvfp4-pack-quantized",
      "mxfp4-pack-quantized", "mxfp6-pack-quantized", "mxfp8-quantized", "mixed-precision", "dense"};
  const std::string format = text_at(config, "format", "dense");
  if (std::find(std::begin(kFormats), std::end(kFormats), format) == std::end(kFormats))
    unsupported("quantization_config: format \"" + format + "\" is not read here; decompress the checkpoint with its own tool first");
}

inline Rules read_rules(const Object& group) {
  Rules rules;
  const Object* weights = object_at(group, "weights");
  if (weights == nullptr) wrong("quantization_config: the group of a packed weight has no \"weights\"");
  const std::int64_t bits = whole_at(*weights, "num_bits", 8), size = whole_at(*weights, "group_size", 0);
  if (bits < 1 || bits > 8) wrong("quantization_config: num_bits " + std::to_string(bits) + " is none of 1 to 8");
  if (size < -1 || size > 65536) wrong("quantization_config: group_size " + std::to_string(size) + " cannot be");
  rules.bits = static_cast<std::uint32_t>(bits);
  rules.group = size > 0 ? static_cast<std::uint64_t>(size) : 0;
  rules.symmetric = mekik::checkpoint::flag_at(*weights, "symmetric", true);
  rules.integer = word_at(*weights, "type", {"int", "float"}) == "int";
  rules.strategy = word_at(*weights, "strategy", {"tensor", "channel", "group", "block", "tensor_group", "token", "attn_head"});
  if (find(*weights, "strategy") == nullptr) rules.strategy = rules.group != 0 ? "group" : "tensor";
  if (const Json* order = find(*weights, "actorder"); order != nullptr && order->is_bool()) rules.ordered = order->get_bool();
  else {
    const std::string word = word_at(*weights, "actorder", {"none", "group", "weight", "static", "dynamic"});
    rules.ordered = word == "group" || word == "dynamic";
  }
  rules.activations = object_at(group, "input_activations") != nullptr;
  const Json* block = find(*weights, "block_structure");
  if (block != nullptr && block->is_array() && block->get_array().size() == 2) {
    const auto side = [&](std::size_t i) {
      const Json& value = block->get_array()[i];
      if (!value.is_int64() || value.get_int64() < 1) wrong("quantization_config: block_structure must be two whole numbers");
      return static_cast<std::uint64_t>(value.get_int64());
    };
    rules.block_n = side(0);
    rules.block_k = side(1);
  } else if (block != nullptr && block->is_string()) {  // "128x128", as older versions wrote
    const std::string text{block->get_string()};
    unsigned long long n = 0, k = 0;
    if (std::sscanf(text.c_str(), "%llux%llu", &n, &k) == 2) rules.block_n = n, rules.block_k = k;
  }
  return rules;
}

// Members of a form that they cannot have, whether or not they matter for weights.
inline void check_kinds(const Object& config) {
  word_at(config, "quantization_status", {"compressed", "frozen", "calibration", "initialized", "decompressed"});
  need_texts(config, "ignore");
  need_object(config, "kv_cache_scheme");
  need_object(config, "sparsity_config");
  need_object(config, "transform_config");
  need_object(config, "config_groups");
  const Object* groups = object_at(config, "config_groups");
  if (groups == nullptr) return;
  for (const auto& group : *groups) {
    if (!group.value().is_object()) continue;
    const Object& one = group.value().get_object();
    need_texts(one, "targets");
    for (const char* key : {"weights", "input_activations", "output_activations"}) need_object(one, key);
  }
}

// The group whose targets fit the module best.
inline Rules rules_of(const Object& config, const std::string& module) {
  check_kinds(config);
  refuse_unknown(config);
  const Object* groups = object_at(config, "config_groups");
  const Object* found = nullptr;
  int best = 0;
  if (groups != nullptr)
    for (const auto& group : *groups) {
      if (!group.value().is_object()) continue;
      const Object& one = group.value().get_object();
      const int fits = best_match(find(one, "targets"), module);
      if (fits > best || (found == nullptr && groups->size() == 1)) {
        best = fits;
        found = &one;
      }
    }
  if (found == nullptr) wrong("quantization_config: no group of config_groups has " + module + " among its targets");
  return read_rules(*found);
}

}  // namespace mekik_compressed
