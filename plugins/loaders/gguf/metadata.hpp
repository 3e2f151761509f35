// The key-value section of a GGUF file, written as JSON while it is read: no tree of values is ever held.
#pragma once
#include <cstdint>

#include "header.hpp"
#include "reader.hpp"

namespace mekik_gguf {

// Reads `count` pairs into the JSON texts and the split fields of `header`. Returns general.alignment, or 32.
// The specification wants general.alignment and the split keys in fixed integer types; any integer type is taken here.
std::uint64_t read_metadata(Reader& reader, std::uint64_t count, Header& header);

}  // namespace mekik_gguf
