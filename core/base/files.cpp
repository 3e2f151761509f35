#include "base/files.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace mekik {

namespace fs = std::filesystem;

Result<std::string> read_file(const fs::path& path, std::size_t limit) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return fail(Code::io, path.string() + ": no such file");
  if (!fs::is_regular_file(status)) return fail(Code::io, path.string() + ": not a regular file");
  const std::uintmax_t size = fs::file_size(path, error);
  if (!error && size > limit)
    return fail(Code::io, path.string() + ": has " + std::to_string(size) + " bytes; at most " + std::to_string(limit) + " are read");
  std::ifstream in{path, std::ios::binary};
  std::ostringstream out;
  if (!in || (size > 0 && !(out << in.rdbuf()))) return fail(Code::io, path.string() + ": cannot be read: " + std::strerror(errno));
  return std::move(out).str();
}

Status find_path(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return invalid("no such file or folder");
  return error ? fail(Code::io, "cannot be opened: " + error.message()) : Status{};
}

fs::path program_path() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

fs::path plugin_directory() { return program_path().parent_path().parent_path() / "lib" / "mekik"; }
fs::path data_directory() { return program_path().parent_path().parent_path() / "share" / "mekik"; }

}  // namespace mekik
