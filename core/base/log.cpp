#include "base/log.hpp"

#include <poll.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <mutex>
#include <set>
#include <string>

#include "base/terminal.hpp"

namespace mekik::log {

namespace {

// Writes to standard error and never waits for who reads it: a full pipe would stop the engine and the server. What finds no room is
// counted, and the count is said when there is room again.
class StandardError final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t buffer;
    formatter_->format(message, buffer);
    std::string line(buffer.data(), buffer.size());
    if (terminal_) line.insert(message.color_range_end, "\033[m").insert(message.color_range_start, color(message.level));
    if (lost_ != 0) line.insert(0, (cut_ ? "\n" : "") + std::to_string(lost_) + " messages were lost here: nobody read them\n");
    const std::size_t written = write_what_fits(line);
    if (written == line.size()) lost_ = 0;
    else ++lost_;
    cut_ = written == line.size() ? false : written != 0 || cut_;
  }
  void flush_() override {}

 private:
  static const char* color(spdlog::level::level_enum level) {
    return level >= spdlog::level::err ? "\033[31m" : level == spdlog::level::warn ? "\033[33m" : "\033[32m";
  }
  // A pipe that can be written to takes PIPE_BUF bytes at once. An error (nobody will ever read) counts as written.
  static std::size_t write_what_fits(const std::string& text) {
    std::size_t at = 0;
    while (at < text.size()) {
      pollfd ready{STDERR_FILENO, POLLOUT, 0};
      if (poll(&ready, 1, 0) == 0) break;
      const ssize_t n = ::write(STDERR_FILENO, text.data() + at, std::min<std::size_t>(text.size() - at, PIPE_BUF));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n < 0) return text.size();
      at += static_cast<std::size_t>(n);
    }
    return at;
  }

  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::uint64_t lost_ = 0;
  bool cut_ = false;  // the last line has no end
};

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("mekik", std::make_shared<StandardError>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
    return made;
  }();
  return *instance;
}

// What was said, once say_once() was called.
struct Said {
  std::mutex mutex;
  bool once = false;
  std::set<std::string> lines;
};
Said& said() {
  static Said instance;
  return instance;
}

// Whether this line is one to leave out.
bool again(std::string_view component, const std::string& text) {
  const std::lock_guard lock{said().mutex};
  return said().once && !said().lines.insert(std::string{component} + text).second;
}

spdlog::level::level_enum spd(Level level) { return static_cast<spdlog::level::level_enum>(level); }

}  // namespace

void say_once() {
  const std::lock_guard lock{said().mutex};
  said().once = true;
}
void set_level(Level level) { logger().set_level(spd(level)); }
bool enabled(Level level) { return logger().should_log(spd(level)); }
void write(Level level, std::string_view component, std::string_view message) {
  if (!enabled(level)) return;
  const std::string text = without_controls(message);
  if (again(component, text)) return;
  logger().log(spd(level), "[{}] {}", spdlog::string_view_t{component.data(), component.size()}, spdlog::string_view_t{text});
}

}  // namespace mekik::log
