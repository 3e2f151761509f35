// What stands before the tensor data of one GGUF file (version 2 or 3, little-endian).
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader.hpp"

namespace mekik_gguf {

struct TensorEntry {
  std::string name;
  const char* scheme = nullptr;  // nullptr: plain numbers of `num`
  std::uint32_t num = 0;
  std::uint32_t rank = 0;
  std::int64_t shape[4] = {};  // row-major: GGUF's sizes in reverse
  std::uint64_t bytes = 0;
  std::uint64_t begin = 0;  // in the file
};

struct Header {
  std::string config;         // JSON object: all keys but those that start with "tokenizer."
  std::string tokenizer;      // JSON object: the rest; empty when there are none
  std::string chat_template;  // JSON string; empty when there is none
  std::uint64_t split_no = 0, split_count = 1;
  std::optional<std::uint64_t> split_tensors;  // of all parts together
  std::uint64_t n_keys = 0, n_split_keys = 0;
  std::vector<TensorEntry> tensors;
};

// Checks all of it, the ranges of the tensors against the file's size included. Throws mekik::Error.
Header read_header(const File& file);

}  // namespace mekik_gguf
