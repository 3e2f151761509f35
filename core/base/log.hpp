// Logging to standard error. spdlog is used only behind this header. [any thread]
#pragma once
#include <string_view>

namespace mekik::log {

enum class Level { trace = 0, debug = 1, info = 2, warning = 3, error = 4, fatal = 5 };

void set_level(Level level);
bool enabled(Level level);
// From now on a line that was written before is left out: for what looks at the same file more than once.
void say_once();
void write(Level level, std::string_view component, std::string_view message);

inline void debug(std::string_view component, std::string_view message) { write(Level::debug, component, message); }
inline void info(std::string_view component, std::string_view message) { write(Level::info, component, message); }
inline void warning(std::string_view component, std::string_view message) { write(Level::warning, component, message); }
inline void error(std::string_view component, std::string_view message) { write(Level::error, component, message); }

}  // namespace mekik::log
