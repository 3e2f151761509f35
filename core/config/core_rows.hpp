// The tables and keys of a pipeline that belong to the core: the single source for checking, --print-config and the JSON Schema.
#pragma once
#include <mekik/plugin.h>

#include <string>
#include <string_view>
#include <vector>

#include "config/table.hpp"

namespace mekik::config {

struct CoreTable {
  const char* name;         // "backend"
  const char* kind;         // of the component it uses: "backend"; nullptr: none
  const char* default_use;  // the component that is used when the table does not say; nullptr: `use` is required
  bool list;                // [[name]]
  Rows rows;                // including use, file and sha256 where there is a kind
  const char* doc;
};

const std::vector<CoreTable>& core_tables();
const CoreTable& core_table(std::string_view name);  // one that exists
// "backend" of "mekik.backend/1"; an empty text for ids of other shapes.
std::string kind_of(std::string_view kind_id);

}  // namespace mekik::config
