// What `mekik --version` shows.
#pragma once
#include <string>

namespace mekik::app {

std::string version_text();  // the version, the ABI, the compiler, and the kernel levels of the cpu backend on this machine

}  // namespace mekik::app
