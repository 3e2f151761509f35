// The number types of safetensors by name.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace mekik_safetensors {

struct Dtype {
  const char* name;
  std::uint32_t num;  // mekik_num
  std::uint32_t bytes;
};

const Dtype* find_dtype(std::string_view name);  // nullptr: not one that is read
std::string dtype_names();                       // for messages

}  // namespace mekik_safetensors
