// Writing JSON text: what a loader hands to the host.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace mekik_gguf {

// Length of the longest valid UTF-8 prefix (RFC 3629); text.size() when all of it is valid.
std::size_t valid_utf8_prefix(std::string_view text);
// "text", quoted and escaped. It must be valid UTF-8.
void append_quoted(std::string& out, std::string_view text);
void append_number(std::string& out, std::int64_t value);
void append_number(std::string& out, std::uint64_t value);
// All digits that it takes to read the same double back; an infinity as 1e999, which reads as one. Not for NaN.
void append_number(std::string& out, double value);
// For messages: at most 80 bytes, with anything but printable ASCII escaped.
std::string shown(std::string_view text);

}  // namespace mekik_gguf
