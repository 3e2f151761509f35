// Values spelled as TOML, and the other way round.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "config/value.hpp"

namespace mekik::config {

std::string spell_text(std::string_view text);       // "..." with escapes
std::string spell_key(std::string_view key);         // 'key', for messages
std::string spell_real(double value);                // shortest that reads back the same, recognisably real
std::string spell_number(double value);              // the same, integers without a point
std::string spell_size(std::uint64_t bytes);         // exact: "64KiB", "1000"
std::string spell_duration(std::uint64_t duration);  // exact, of nanoseconds: "250ms"

// A value written outside of a file (an option's default, --set): TOML, or a bare word, which is a text. Its origin is empty.
Value parse_loose(std::string_view text);

}  // namespace mekik::config
