// The JSON of a header, taken apart while it is parsed: no tree of values is ever held.
#pragma once
#include <string_view>
#include <vector>

#include "header.hpp"

namespace mekik_safetensors {

// In the order of the JSON; `begin` counts from the header's end. Throws mekik::Error, without the file's name.
std::vector<TensorEntry> parse_header(std::string_view json);

}  // namespace mekik_safetensors
