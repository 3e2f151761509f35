// The lines of a merged pipeline, each with the place that it comes from.
#include "config/pipeline.hpp"
#include "config/spelling.hpp"

namespace mekik::config {

Status misconfigured(const Pipeline& pipeline, std::string_view table, std::string_view key, const std::string& what) {
  std::string where;
  for (const Setting& setting : pipeline.settings)
    if (setting.table == table && setting.key == key && setting.from != "default") where = setting.from + ": ";
  return {Code::misconfigured, where + "error: " + spell_key(key) + " in " + std::string{table} + ": " + what};
}

std::string print_pipeline(const Pipeline& pipeline) {
  std::string out, table;
  for (const Setting& setting : pipeline.settings) {
    const bool element = setting.table.substr(0, 2) == "[[" && setting.key == "use";
    if (setting.table != table || element) out += (out.empty() ? "" : "\n") + setting.table + "\n";
    table = setting.table;
    out += setting.key + " = " + setting.value + "  # " + setting.from + "\n";
  }
  return out;
}

}  // namespace mekik::config
