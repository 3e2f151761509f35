// Text for terminals.
#pragma once
#include <string>
#include <string_view>

namespace mekik {

// Control characters, but for new lines and tabs, as \xNN, so that a file's words cannot steer a terminal. Anything else as it is.
std::string without_controls(std::string_view text);

}  // namespace mekik
