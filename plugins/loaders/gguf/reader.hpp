// A file read front to back through a small buffer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <mekik/file.hpp>

namespace mekik_gguf {

using mekik::loaders::File;

// Little-endian values in file order. Each read is checked against the end of the file; `what` is named in the error.
class Reader {
 public:
  explicit Reader(const File& file);
  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return file_.bytes() - at_; }
  const std::string& path() const { return file_.path(); }

  template <class T>
  T number(const char* what) {
    T value;
    take(&value, sizeof value, what);
    return value;
  }
  // A 64-bit length, then the bytes. The view lasts until the next read. `limit` in bytes.
  std::string_view text(const char* what, std::uint64_t limit);
  // Fails unless `count` things of at least `each` bytes can still follow.
  void expect(std::uint64_t count, std::uint64_t each, const char* what) const;
  [[noreturn]] void ends_inside(const char* what) const;

 private:
  void take(void* out, std::size_t count, const char* what);
  // Makes `count` bytes available from position_ on; count is at most what is left of the file.
  void fill(std::size_t count);

  const File& file_;
  std::uint64_t at_ = 0;  // in the file, of the next byte
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_, position_ = 0, filled_ = 0;
};

}  // namespace mekik_gguf
