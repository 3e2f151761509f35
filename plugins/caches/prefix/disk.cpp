#include "disk.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <mekik/plugin.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "value.hpp"

namespace mekik::prefix_cache {

namespace {

namespace fs = std::filesystem;

constexpr const char* kEnd = ".value";
constexpr const char* kPartial = ".partial";
constexpr std::uint64_t kStep = std::uint64_t{16} << 20;  // most bytes of one call
constexpr std::uint64_t kLooks = 16;                      // at the directory, while so much is written as may be kept
constexpr double kKeep = 0.9;                             // of the budget stays when room is made

using Head = ValueHead;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_{fd} {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void failed(const fs::path& path, const std::string& what) {
  throw Error{MEKIK_E_IO, path.string() + ": " + what + ": " + std::strerror(errno)};
}

template <class Call>
bool all(std::uint64_t bytes, Call&& call) {
  for (std::uint64_t at = 0; at < bytes;) {
    const ssize_t n = call(at, std::min(kStep, bytes - at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<std::uint64_t>(n);
  }
  return true;
}

}  // namespace

Disk::Disk(fs::path folder, std::uint64_t budget) : folder_{std::move(folder)}, budget_{budget} {
  std::error_code error;
  if (!fs::exists(folder_, error)) {  // it is made when there is something to put there
    check_above();
    return;
  }
  struct stat found {};
  if (::stat(folder_.c_str(), &found) != 0) throw Error{MEKIK_E_INVALID, folder_.string() + ": " + std::strerror(errno)};
  if (!S_ISDIR(found.st_mode)) throw Error{MEKIK_E_INVALID, folder_.string() + " is no directory"};
  if ((found.st_uid != ::geteuid() && found.st_uid != 0) || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    throw Error{MEKIK_E_INVALID,
                folder_.string() + ": others may write there, and answers could be made up by them; chmod go-w, or take another"};
  read_only_ = ::access(folder_.c_str(), W_OK | X_OK) != 0;
  if (read_only_) write_log(3, "cache", folder_.string() + " may only be read: what is there is used, and nothing new is kept");
}

// Whether the folder could be made.
void Disk::check_above() const {
  std::error_code error;
  fs::path above = fs::absolute(folder_, error).lexically_normal();
  while (!fs::exists(above, error) && above.has_relative_path()) above = above.parent_path();
  if (!fs::is_directory(above, error))
    throw Error{MEKIK_E_INVALID, folder_.string() + ": cannot be made: " + above.string() + " is no directory"};
  if (::access(above.c_str(), W_OK | X_OK) != 0)
    throw Error{MEKIK_E_INVALID, folder_.string() + ": cannot be made: " + above.string() + ": " + std::strerror(errno)};
}

void Disk::make_folder() const {
  std::error_code error;
  if (!fs::create_directories(folder_, error) && error) throw Error{MEKIK_E_IO, folder_.string() + ": cannot be made: " + error.message()};
  fs::permissions(folder_, fs::perms::owner_all, error);
}

namespace {

// Whether a file of the folder is one of ours, or the beginning of one: "ab/ab..(64 digits).value", and behind that ".PID-N.partial".
// Whatever else lies there is not touched.
enum class Ours { no, value, partial };
Ours ours(const fs::path& path) {
  const std::string name = path.filename().string(), folder = path.parent_path().filename().string();
  const std::size_t digits = name.find_first_not_of("0123456789abcdef");
  if (digits != 64 || folder != name.substr(0, 2)) return Ours::no;
  const std::string_view rest = std::string_view{name}.substr(digits);
  if (rest == kEnd) return Ours::value;
  return rest.starts_with(kEnd) && rest.ends_with(kPartial) ? Ours::partial : Ours::no;
}

}  // namespace

fs::path Disk::path_of(const mekik_key& key) const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string name;
  for (const std::uint8_t byte : key.sha256) name += {digits[byte >> 4], digits[byte & 15]};
  return folder_ / name.substr(0, 2) / (name + kEnd);
}

bool Disk::has(const mekik_key& key, std::uint64_t& bytes) const {
  struct stat found {};
  if (::stat(path_of(key).c_str(), &found) != 0 || found.st_size < static_cast<off_t>(sizeof(Head))) return false;
  bytes = static_cast<std::uint64_t>(found.st_size) - sizeof(Head);
  return true;
}

void Disk::read(const mekik_key& key, void* data, std::uint64_t bytes) {
  const fs::path path = path_of(key);
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  struct stat found {};
  if (file.get() < 0 || ::fstat(file.get(), &found) != 0) throw Error{MEKIK_E_INVALID, path.string() + " is gone"};
  if (found.st_size != static_cast<off_t>(sizeof(Head) + bytes)) throw Error{MEKIK_E_INVALID, path.string() + " has another length"};
  Head head{};
  auto* to = static_cast<std::uint8_t*>(data);
  const bool whole =
      ::pread(file.get(), &head, sizeof head, 0) == ssize_t{sizeof head} &&
      all(bytes, [&](std::uint64_t at, std::uint64_t n) { return ::pread(file.get(), to + at, n, static_cast<off_t>(sizeof head + at)); });
  if (!whole || !is_whole(head, key, data, bytes)) {
    if (!read_only_) ::unlink(path.c_str());
    throw Error{MEKIK_E_IO, path.string() + " is damaged" + (read_only_ ? "" : ", and was removed")};
  }
  if (!read_only_) ::futimens(file.get(), nullptr);  // the longest unused goes first
}

void Disk::write(const mekik_key& key, const void* data, std::uint64_t bytes) {
  if (read_only_) return;
  const fs::path path = path_of(key);
  const std::uint64_t size = sizeof(Head) + bytes;
  if (std::uint64_t there = 0; has(key, there) && there == bytes) {
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
    return;
  }
  if (size > budget_) return;
  // Other processes write there, too, so what they did is looked at long before this one alone could have used up the budget.
  if (!looked_ || used_ + size > budget_ || written_ > budget_ / kLooks) make_room(size);
  write_new(path, key, data, bytes);
  used_ += size;
  written_ += size;
}

void Disk::write_new(const fs::path& path, const mekik_key& key, const void* data, std::uint64_t bytes) {
  const auto make = [&] { return ::mkdir(path.parent_path().c_str(), 0700) == 0 || errno == EEXIST; };
  if (bool made = make(); !made) {
    if (errno == ENOENT) make_folder(), made = make();
    if (!made) failed(path.parent_path(), "cannot be made");
  }
  const std::string partial = path.string() + "." + std::to_string(::getpid()) + "-" + std::to_string(counter_++) + kPartial;
  const Descriptor file{::open(partial.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (file.get() < 0) failed(partial, "cannot be written");
  ::flock(file.get(), LOCK_EX);  // whose lock is free was left behind by a process that ended
  const Head head = head_of(key, data, bytes);
  const auto* from = static_cast<const std::uint8_t*>(data);
  const bool whole =
      ::pwrite(file.get(), &head, sizeof head, 0) == ssize_t{sizeof head} && all(bytes, [&](std::uint64_t at, std::uint64_t n) {
        return ::pwrite(file.get(), from + at, n, static_cast<off_t>(sizeof head + at));
      });
  if (whole && ::rename(partial.c_str(), path.c_str()) == 0) return;
  const int why = errno;
  ::unlink(partial.c_str());
  errno = why;
  failed(path, "cannot be written");
}

// Looks at all files, which other processes may have written, too, and removes the longest unused until `bytes` fit.
void Disk::make_room(std::uint64_t bytes) {
  struct File {
    fs::path path;
    std::uint64_t size;
    timespec used;
  };
  std::vector<File> files;
  used_ = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at{folder_, error}, end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    if (at.depth() == 1) at.disable_recursion_pending();
    const Ours kind = at.depth() == 1 ? ours(path) : Ours::no;
    struct stat found {};
    if (kind == Ours::no || ::lstat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) continue;
    if (kind == Ours::partial) {
      const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
      if (file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
      continue;
    }
    files.push_back({path, static_cast<std::uint64_t>(found.st_size), found.st_mtim});
    used_ += files.back().size;
  }
  looked_ = true;
  written_ = 0;
  if (used_ + bytes <= budget_) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
  });
  const auto most = static_cast<std::uint64_t>(kKeep * static_cast<double>(budget_));
  for (const File& file : files) {
    if (used_ + bytes <= most || used_ == 0) break;
    if (::unlink(file.path.c_str()) == 0 || errno == ENOENT) used_ -= file.size;
  }
}

}  // namespace mekik::prefix_cache
