// Whether the option rows that a component declares make sense.
#include <algorithm>
#include <cstring>
#include <set>

#include "base/text.hpp"
#include "config/core_rows.hpp"
#include "config/options.hpp"

namespace mekik::config {

namespace {

constexpr std::uint32_t kMaxRows = 1024;
constexpr int kMaxDepth = 4;

bool is_key(const char* key) {
  return key != nullptr && key[0] != '\0' && std::strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == std::strlen(key);
}

bool is_choice_list(const char* choices) {
  if (choices == nullptr) return false;
  const std::vector<std::string> names = split(choices, '|');
  return std::none_of(names.begin(), names.end(), [](const std::string& name) { return name.empty(); });
}

Status check(const Rows& rows, const std::vector<std::string>& taken, const std::string& where, int depth);

Status check_row(const mekik_option& row, const std::string& where, int depth) {
  const std::string name = where + " '" + row.key + "'";
  constexpr std::uint32_t kFlags = MEKIK_OPT_REQUIRED | MEKIK_OPT_LIST | MEKIK_OPT_RELOADABLE | MEKIK_OPT_DEPRECATED | MEKIK_OPT_SECRET;
  if (row.type < MEKIK_OPT_BOOL || row.type > MEKIK_OPT_COMPONENT)
    return unsupported(name + " has the type " + std::to_string(row.type) + ", which this engine does not know");
  if ((row.flags & ~kFlags) != 0) return unsupported(name + " has flags that this engine does not know");
  if (row.doc == nullptr || row.doc[0] == '\0') return invalid(name + " has no description");
  if (row.min != row.min || row.max != row.max) return invalid(name + " has a limit that is not a number");
  if (row.type == MEKIK_OPT_CHOICE && !is_choice_list(row.choices)) return invalid(name + " has no choices");
  if (row.type == MEKIK_OPT_COMPONENT &&
      (row.choices == nullptr || (std::strcmp(row.choices, "model") != 0 && kind_of(row.choices).empty())))
    return invalid(name + " does not say which kind of component it names");
  if (row.type == MEKIK_OPT_TABLE) {
    if (depth == kMaxDepth) return invalid(name + " nests tables too deeply");
    MEKIK_CHECK_OK(check(fields_of(row), {}, name + ", the field", depth + 1));
  }
  // A default that names a component depends on what is installed, so it is looked up when it is used.
  if (row.fallback == nullptr || row.fallback[0] == '\0' || row.type == MEKIK_OPT_COMPONENT) return {};
  Diagnostics diagnostics;
  mekik_option optional = row;
  optional.flags &= ~std::uint32_t{MEKIK_OPT_REQUIRED};
  check_table({Rows{&optional, 1, sizeof optional}}, Value{}, "[default]", "", {diagnostics, nullptr, true, {}, false});
  if (diagnostics.ok()) return {};
  return invalid(name + " has a default that is not allowed: " + diagnostics.all().front().message);
}

Status check(const Rows& rows, const std::vector<std::string>& taken, const std::string& where, int depth) {
  if (rows.count > kMaxRows) return invalid(where + "s: " + std::to_string(rows.count) + "; at most " + std::to_string(kMaxRows));
  if (rows.count > 0 && rows.first == nullptr) return invalid(where + "s are counted, but not there");
  if (rows.count > 0 && rows.size < sizeof(mekik_option))
    return invalid(where + "s have rows of " + std::to_string(rows.size) + " bytes; the first revision already has " +
                   std::to_string(sizeof(mekik_option)));
  std::set<std::string> seen;
  for (std::uint32_t i = 0; i < rows.count; ++i) {
    if (!is_key(rows[i].key)) return invalid(where + " number " + std::to_string(i) + ": its key does not match [a-z0-9_]+");
    if (std::find(taken.begin(), taken.end(), rows[i].key) != taken.end())
      return invalid(where + " '" + rows[i].key + "' is a key of the core in this kind of table");
    if (!seen.insert(rows[i].key).second) return invalid(where + " '" + rows[i].key + "' is declared twice");
    MEKIK_CHECK_OK(check_row(rows[i], where, depth));
  }
  return {};
}

}  // namespace

Status check_rows(const mekik_component& component) {
  std::vector<std::string> taken{"use", "file", "sha256"};
  const std::string kind = kind_of(component.kind);
  for (const CoreTable& table : core_tables())
    if (table.kind != nullptr && kind == table.kind)
      for (std::uint32_t i = 0; i < table.rows.count; ++i) taken.emplace_back(table.rows[i].key);
  return check(rows_of(component), taken, "option", 0);
}

}  // namespace mekik::config
