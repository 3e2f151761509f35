// What a page sees of a model file: metadata and tensor headers, no weights.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace mekik::program {

struct TensorInfo {
  std::string name;
  std::string scheme;               // of a block or multi-part format: "q4_k", "gptq"; empty: plain numbers of `num`
  std::uint32_t num = 0;            // mekik_num when scheme is empty
  std::vector<std::int64_t> shape;  // row-major, the last size is contiguous (GGUF's ne reversed)
  std::uint64_t bytes = 0;
};

struct ModelMeta {
  std::string format;  // "gguf" or "hf"
  json::value config;  // all keys; GGUF keys are flat ("llama.block_count"), config.json is nested
  std::vector<TensorInfo> tensors;
  // Another JSON file of the model's folder by name, or null.
  std::function<json::value(const std::string& file)> file;
  std::string path;  // for messages
};

}  // namespace mekik::program
