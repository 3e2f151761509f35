#include "convert/place.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace mekik::convert {

namespace {

namespace fs = std::filesystem;

Status on_disk(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool done = file >= 0 && (::fsync(file) == 0 || errno == EINVAL);  // EINVAL: a file system without
  const int why = errno;
  if (file >= 0) ::close(file);
  return done ? Status{} : fail(Code::io, path.string() + ": cannot be written: " + std::strerror(why));
}

}  // namespace

Result<Place> Place::begin(const fs::path& name, bool folder) {
  fs::path plain = name.lexically_normal();
  if (!plain.has_filename()) plain = plain.parent_path();  // "out/"
  const fs::path part = plain.string() + ".mekik-part";
  std::error_code error;
  fs::remove_all(part, error);
  if (!error && folder) fs::create_directories(part, error);
  if (error) return fail(Code::io, part.string() + ": cannot be made: " + error.message());
  return Place{plain, part};
}

Place::Place(Place&& other) noexcept : name_{std::move(other.name_)}, part_{std::exchange(other.part_, {})} {}

Place::~Place() {
  std::error_code error;
  if (!part_.empty()) fs::remove_all(part_, error);
}

Status Place::finish() {
  std::error_code error;
  if (fs::is_directory(part_, error))
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator{part_, error}) MEKIK_CHECK_OK(on_disk(entry.path()));
  if (error) return fail(Code::io, part_.string() + ": cannot be read: " + error.message());
  MEKIK_CHECK_OK(on_disk(part_));
  int failed = ::renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, name_.c_str(), RENAME_NOREPLACE);
  if (failed != 0 && (errno == EINVAL || errno == ENOSYS)) {  // a file system that cannot refuse
    errno = fs::exists(name_, error) ? EEXIST : 0;
    failed = errno != 0 ? -1 : std::rename(part_.c_str(), name_.c_str());
  }
  if (failed != 0) return fail(Code::io, name_.string() + ": cannot be written: " + std::strerror(errno));
  part_.clear();
  return on_disk(name_.has_parent_path() ? name_.parent_path() : fs::path{"."});
}

}  // namespace mekik::convert
