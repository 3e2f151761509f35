#include "config/folder.hpp"

#include <algorithm>
#include <memory>

namespace mekik::config {

namespace fs = std::filesystem;

std::vector<fs::path> toml_files(const fs::path& directory, const std::string& what, Diagnostics& diagnostics) {
  std::error_code failed;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry{directory, failed}, end; !failed && entry != end; entry.increment(failed))
    if (entry->path().extension() == ".toml") files.push_back(entry->path());
  if (failed) {
    const auto source = std::make_shared<Source>(Source{directory.string(), {}});
    diagnostics.error({source, 0, 0}, "cannot list " + what + ": " + failed.message());
    return {};
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace mekik::config
