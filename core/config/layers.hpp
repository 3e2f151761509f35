// The layers of a pipeline: the file, what it extends, and --set. Merging only; nothing is checked against rows here.
#pragma once
#include <string>
#include <vector>

#include "config/pipeline.hpp"

namespace mekik::config {

// Reads `path` and everything that it extends, and merges them: tables merge, everything else is replaced whole.
// False: a file could not be read or parsed, and `diagnostics` says which.
bool read_layers(const std::string& path, Value& out, Diagnostics& diagnostics);

// Puts one --set into the tree. Tables on the way are made; elements of lists must exist.
void apply_override(const Override& override, Value& root, Diagnostics& diagnostics);

}  // namespace mekik::config
