// What can be known of a plugin library before any of its code runs.
#pragma once
#include <filesystem>
#include <string>

#include "base/status.hpp"

namespace mekik::plugin {

// The engine's ABI major is in the name of the one exported symbol: mekik_plugin_v<major>.
inline constexpr int kAbiMajor = 0;

// Ok when the file is a whole 64-bit ELF library for this machine that exports mekik_plugin_v0. Otherwise unsupported (another major)
// or invalid; the text begins with the path.
Status inspect(const std::filesystem::path& path);

}  // namespace mekik::plugin
