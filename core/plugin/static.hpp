// The plugins that a static build (MEKIK_STATIC_PLUGINS=ON) carries inside the program. CMake writes the table.
#pragma once
#include <mekik/plugin.h>

#include <vector>

namespace mekik::plugin {

struct StaticEntry {
  const char* name;  // <kind>_<name>, as the shared library would be called
  const mekik_plugin* entry;
};

const std::vector<StaticEntry>& static_entries();  // empty in a shared build

}  // namespace mekik::plugin
