// The TOML files of a folder.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "config/value.hpp"

namespace mekik::config {

// The .toml files in `directory` itself, sorted by path. Where it cannot be listed: none, and a diagnostic that calls them `what`.
// Thread: any.
std::vector<std::filesystem::path> toml_files(const std::filesystem::path& directory, const std::string& what, Diagnostics& diagnostics);

}  // namespace mekik::config
