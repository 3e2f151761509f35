#include "base/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace mekik::log {

namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("mekik", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum spd(Level level) { return static_cast<spdlog::level::level_enum>(level); }

}  // namespace

void set_level(Level level) { logger().set_level(spd(level)); }
bool enabled(Level level) { return logger().should_log(spd(level)); }
void write(Level level, std::string_view component, std::string_view message) {
  logger().log(spd(level), "[{}] {}", spdlog::string_view_t{component.data(), component.size()},
               spdlog::string_view_t{message.data(), message.size()});
}

}  // namespace mekik::log
