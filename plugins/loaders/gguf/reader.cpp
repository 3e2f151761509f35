#include "reader.hpp"

#include <fcntl.h>
#include <mekik/plugin.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mekik/plugin.hpp>

namespace mekik_gguf {

namespace {

constexpr std::size_t kBuffer = std::size_t{256} << 10;

std::string reason() { return std::strerror(errno); }

}  // namespace

File::File(std::string path) : path_{std::move(path)} {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw mekik::Error{MEKIK_E_IO, path_ + ": cannot be opened: " + reason()};
  struct stat info {};
  const bool known = ::fstat(descriptor_, &info) == 0;
  if (!known || !S_ISREG(info.st_mode)) {
    ::close(descriptor_);
    throw mekik::Error{MEKIK_E_IO, path_ + ": is not a regular file"};
  }
  bytes_ = static_cast<std::uint64_t>(info.st_size);
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void File::read(std::uint64_t at, void* out, std::uint64_t count) const {
  auto* to = static_cast<char*>(out);
  while (count > 0) {
    const std::uint64_t piece = std::min<std::uint64_t>(count, std::uint64_t{1} << 30);
    const ssize_t got = ::pread(descriptor_, to, piece, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw mekik::Error{MEKIK_E_IO, path_ + ": reading at byte " + std::to_string(at) + " failed: " + reason()};
    if (got == 0)
      throw mekik::Error{MEKIK_E_IO, path_ + ": shrank while it was open: it had " + std::to_string(bytes_) + " bytes, now it ends at " +
                                         std::to_string(at) + "; start again when it is whole"};
    to += got;
    at += static_cast<std::uint64_t>(got);
    count -= static_cast<std::uint64_t>(got);
  }
}

Reader::Reader(const File& file) : file_{file}, buffer_{new char[kBuffer]}, capacity_{kBuffer} {}

void Reader::ends_inside(const char* what) const {
  throw mekik::Error{MEKIK_E_INVALID, path() + ": the file has " + std::to_string(file_.bytes()) + " bytes and ends inside " + what +
                                          ", which starts at byte " + std::to_string(at_) + "; it is truncated or damaged, fetch it again"};
}

void Reader::expect(std::uint64_t count, std::uint64_t each, const char* what) const {
  if (count > left() / each)
    throw mekik::Error{MEKIK_E_INVALID, path() + ": " + what + " claims " + std::to_string(count) + " entries, but only " +
                                            std::to_string(left()) + " bytes follow byte " + std::to_string(at_) +
                                            "; the file is truncated or damaged, fetch it again"};
}

void Reader::fill(std::size_t count) {
  if (filled_ - position_ >= count) return;
  std::memmove(buffer_.get(), buffer_.get() + position_, filled_ - position_);
  filled_ -= position_;
  position_ = 0;
  if (count > capacity_) {
    std::unique_ptr<char[]> bigger{new char[count]};
    std::memcpy(bigger.get(), buffer_.get(), filled_);
    buffer_ = std::move(bigger);
    capacity_ = count;
  }
  const std::uint64_t ahead = at_ + filled_;
  const std::size_t more = static_cast<std::size_t>(std::min<std::uint64_t>(capacity_ - filled_, file_.bytes() - ahead));
  file_.read(ahead, buffer_.get() + filled_, more);
  filled_ += more;
}

void Reader::take(void* out, std::size_t count, const char* what) {
  if (count > left()) ends_inside(what);
  fill(count);
  std::memcpy(out, buffer_.get() + position_, count);
  position_ += count;
  at_ += count;
}

std::string_view Reader::text(const char* what, std::uint64_t limit) {
  const auto length = number<std::uint64_t>(what);
  if (length > left()) ends_inside(what);
  if (length > limit)
    throw mekik::Error{MEKIK_E_INVALID, path() + ": " + what + " at byte " + std::to_string(at_) + " has " + std::to_string(length) +
                                            " bytes; at most " + std::to_string(limit) + " are read"};
  const auto count = static_cast<std::size_t>(length);
  fill(count);
  const std::string_view found{buffer_.get() + position_, count};
  position_ += count;
  at_ += count;
  return found;
}

}  // namespace mekik_gguf
