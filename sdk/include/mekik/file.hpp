// mekik/file.hpp - a model's file, read by position. Reading, not mapping: a file that shrinks becomes an error here, where a mapped one
// would end the process with SIGBUS; and what was read does not stay in the process's memory.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mekik/base.hpp>
#include <string>

#include <mekik/text.hpp>

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {  // errors are this plugin's own, so this must be, too
#endif
namespace loaders {

// An open regular file; closes itself. Throws mekik::Error with MEKIK_E_IO.
class File {
 public:
  explicit File(std::string path) : path_{std::move(path)} {
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // else a FIFO waits here for somebody to write
    if (descriptor_ < 0) throw Error{MEKIK_E_IO, path_ + ": cannot be opened: " + std::strerror(errno)};
    struct stat info {};
    const bool known = ::fstat(descriptor_, &info) == 0;
    if (!known || !S_ISREG(info.st_mode)) {
      ::close(descriptor_);
      throw Error{MEKIK_E_IO, path_ + ": is not a regular file"};
    }
    bytes_ = static_cast<std::uint64_t>(info.st_size);
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(File&& other) noexcept : path_{std::move(other.path_)}, descriptor_{other.descriptor_}, bytes_{other.bytes_} {
    other.descriptor_ = -1;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File& operator=(File&&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }  // when it was opened

  // Exactly `count` bytes from `at`, or an error. Thread: any.
  void read(std::uint64_t at, void* out, std::uint64_t count) const {
    auto* to = static_cast<char*>(out);
    while (count > 0) {
      const std::uint64_t piece = std::min<std::uint64_t>(count, std::uint64_t{1} << 30);
      const ssize_t got = ::pread(descriptor_, to, piece, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Error{MEKIK_E_IO, path_ + ": reading at byte " + std::to_string(at) + " failed: " + std::strerror(errno)};
      if (got == 0)
        throw Error{MEKIK_E_IO, path_ + ": shrank while it was open: it had " + std::to_string(bytes_) + " bytes, now it ends at " +
                                    std::to_string(at) + "; start again when it is whole"};
      to += got;
      at += static_cast<std::uint64_t>(got);
      count -= static_cast<std::uint64_t>(got);
    }
  }

  // Whether it is what Git LFS leaves in place of a file that was not fetched.
  bool is_lfs_pointer() const {
    constexpr char kStart[] = "version https://git-lfs";
    char head[sizeof kStart - 1] = {};
    if (bytes_ < sizeof head) return false;
    read(0, head, sizeof head);
    return std::memcmp(head, kStart, sizeof head) == 0;
  }

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

inline constexpr const char* kLfsPointer =
    "is a Git LFS pointer, not the file itself; run `git lfs pull` in its repository, or download the file";

// The answer to meta("files"): their paths as a JSON list; empty where one cannot be written as JSON. `more`: of files that are not open.
template <class Files>
std::string file_list(const Files& files, const std::string& more = {}) {
  std::string out = "[";
  const auto add = [&](const std::string& path) {
    if (valid_utf8_prefix(path) != path.size()) return false;
    if (out.size() > 1) out += ',';
    append_quoted(out, path);
    return true;
  };
  for (const File& file : files)
    if (!add(file.path())) return {};
  if (!more.empty() && !add(more)) return {};
  return out + "]";
}

}  // namespace loaders
#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
