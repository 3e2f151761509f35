// Writing JSON text: what a loader hands to the host.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <mekik/text.hpp>

namespace mekik_gguf {

using mekik::loaders::append_quoted;
using mekik::loaders::shown;
using mekik::loaders::valid_utf8_prefix;

void append_number(std::string& out, std::int64_t value);
void append_number(std::string& out, std::uint64_t value);
// All digits that it takes to read the same double back; an infinity as 1e999, which reads as one. Not for NaN.
void append_number(std::string& out, double value);

}  // namespace mekik_gguf
