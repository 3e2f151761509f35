// One JSON object a line for each event, for instance a finished request.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <mekik/plugin.hpp>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string number(double value, bool whole) {
  if (!std::isfinite(value)) return "null";  // JSON has no other word for it
  char text[40];
  const auto end =
      whole ? std::to_chars(text, text + sizeof text, static_cast<long long>(value)) : std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

class Jsonl {
 public:
  static constexpr const char* name = "jsonl";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Appends one JSON object a line for each finished request to a file.";
  static constexpr std::array options{
      mekik::opt::with(mekik::opt::path("path", nullptr, "The file; it is made when it does not exist, and appended to."),
                       MEKIK_OPT_REQUIRED),
  };

  explicit Jsonl(mekik::Config config) : path_{config.text("path")} {
    // Not blocking: a pipe without a reader is refused instead of waited for.
    const int descriptor = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    struct stat status {};
    if (descriptor < 0) config.reject("path", "cannot open " + path_ + " for appending: " + std::strerror(errno));
    file_.reset(::fdopen(descriptor, "a"));
    if (file_ == nullptr) {
      ::close(descriptor);
      throw mekik::Error{MEKIK_E_NO_MEMORY, "there is no memory to write to " + path_};
    }
    if (::fstat(descriptor, &status) != 0 || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))
      config.reject("path", path_ + " is a pipe: whoever reads it could stop the engine; give a file");
  }

  void publish(std::uint64_t, mekik::Strided<const mekik_sample>) {}

  // Called from any thread.
  void event(std::string_view what, std::uint64_t now_ns, mekik::Strided<const mekik_field> fields) {
    const auto wall = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    std::string line = "{\"event\":" + quoted(what) + ",\"unix_seconds\":" + number(std::round(wall * 1000) / 1000, false) +
                       ",\"monotonic_ns\":" + std::to_string(now_ns);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto& f = fields[i];
      line += "," + quoted(f.key) + ":";
      if (f.type == MEKIK_OPT_TEXT) line += quoted(mekik::view(f.text));
      else if (f.type == MEKIK_OPT_BOOL) line += f.number != 0 ? "true" : "false";
      else line += number(f.number, f.type == MEKIK_OPT_INT);
    }
    line += "}\n";
    const std::lock_guard lock{mutex_};
    const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() && std::fflush(file_.get()) == 0;
    if (!written && !failed_)
      mekik::write_log(4, "jsonl", "cannot write to " + path_ + ": " + std::strerror(errno) + "; lines are lost until it works again");
    if (written && failed_) mekik::write_log(2, "jsonl", "writing to " + path_ + " works again");
    failed_ = !written;
    if (!written) std::clearerr(file_.get());
  }

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::mutex mutex_;
  bool failed_ = false;  // said once
};

}  // namespace

MEKIK_PLUGIN("mekik.sink.jsonl", "1.0", mekik::sink<Jsonl>());
