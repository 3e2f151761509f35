#include "reader.hpp"

#include <algorithm>
#include <cstring>
#include <mekik/plugin.hpp>

namespace mekik_gguf {

namespace {

constexpr std::size_t kBuffer = std::size_t{256} << 10;

}  // namespace

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
