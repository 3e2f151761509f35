// What stands before the tensor data of one safetensors file: a length, then JSON.
// Format: https://github.com/huggingface/safetensors#format
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <mekik/file.hpp>
#include "dtypes.hpp"

namespace mekik_safetensors {

using mekik::loaders::File;

struct TensorEntry {
  std::string name;
  const Dtype* dtype = nullptr;
  std::vector<std::uint64_t> shape;    // row-major; empty: one number
  std::uint64_t begin = 0, bytes = 0;  // in the file
};

// Checks all of it: the tensors fill the file from the header to its end without holes and overlaps. Throws mekik::Error. In the order
// of their data.
std::vector<TensorEntry> read_header(const File& file);

}  // namespace mekik_safetensors
