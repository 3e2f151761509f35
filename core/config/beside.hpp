// Files that are a pipeline and more: tables of their own beside those of the pipeline.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/pipeline.hpp"

namespace mekik::config {

struct Beside {
  std::vector<std::string> names;       // of tables, or of lists of them
  std::map<std::string, Value> tables;  // out: those that the file has, unchecked
  bool read = false;                    // out: the file could be read, whatever is in it
  bool model = false;                   // out: [model] says a path
};

// As load_pipeline(), for a file that may have tables beside. No model is needed, nor looked for: who needs one asks for it.
std::optional<Pipeline> load_beside(const std::string& path, const std::vector<Override>& overrides, Components& components,
                                    Diagnostics& diagnostics, Beside& beside);

}  // namespace mekik::config
