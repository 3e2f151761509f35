// Reading files.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "base/status.hpp"

namespace mekik {

// The whole of a regular file of at most `limit` bytes.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit = std::size_t{1} << 30);

// Whether something is there: Code::invalid when not, Code::io when it may not be looked at. The text does not repeat the path.
Status find_path(const std::filesystem::path& path);

// Where the running program lies (for finding lib/mekik and share/mekik relative to it).
std::filesystem::path program_path();

// <prefix>/lib/mekik and <prefix>/share/mekik of the running program; in a build tree the same layout.
std::filesystem::path plugin_directory();
std::filesystem::path data_directory();  // holds architectures/

}  // namespace mekik
