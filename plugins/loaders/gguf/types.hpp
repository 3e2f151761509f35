// The tensor types of ggml by number: names, and how many bytes hold how many values.
#pragma once
#include <cstdint>
#include <string>

namespace mekik_gguf {

struct TensorType {
  std::uint32_t number;
  const char* name;           // as ggml spells it
  const char* scheme;         // lower case; nullptr: plain numbers of `num`
  std::uint32_t num;          // mekik_num when scheme is nullptr
  std::uint32_t block_elems;  // 0: a type that ggml has removed
  std::uint32_t block_bytes;
  const char* instead = nullptr;  // of a removed type: what to do
};

// nullptr: no such type.
const TensorType* tensor_type(std::uint32_t number);

}  // namespace mekik_gguf
