// Checking values against option rows: those of the core, of components, and fields of requests.
#pragma once
#include <mekik/plugin.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "config/pipeline.hpp"
#include "config/table.hpp"

namespace mekik::config {

// What checking needs besides the row and the value. Borrowed for the call.
struct CheckContext {
  Diagnostics& diagnostics;
  Components* components = nullptr;                               // looks up options of type component; nullptr: they are refused
  bool local = true;                                              // false: the value came over a network, where paths are refused
  std::function<std::string(const std::string& key)> belongs_in;  // the table that has an unknown key, or ""; may be empty
  bool open = false;                                              // true: keys without a row are not complained about
};

// Checks one table: unknown keys, types, ranges, required keys; fills in defaults. All complaints go to the context's diagnostics; the
// result is usable when there were none. `label` is "[scheduler]", `who` is " (component \"continuous\")" or "".
std::unique_ptr<Table> check_table(const std::vector<Rows>& rows, const Value& value, const std::string& label, const std::string& who,
                                   const CheckContext& context);

// Whether a component's own rows make sense: names, types, defaults in range, and no key of the core's. The text names the row.
Status check_rows(const mekik_component& component);

// A field of a request body against an option row, with the same messages as for files: "'top_p' must be from 0 to 1, got 3".
Status check_option_json(const mekik_option& row, const json::value& value);

}  // namespace mekik::config
