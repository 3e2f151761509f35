// A table of options after it was checked against its rows: what a component's functions receive as mekik_config.
#pragma once
#include <mekik/plugin.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/value.hpp"

namespace mekik::config {

// Option rows with the stride of who declared them. Borrowed; a library's rows live until the process ends.
struct Rows {
  const mekik_option* first = nullptr;
  std::uint32_t count = 0, size = sizeof(mekik_option);
  const mekik_option& operator[](std::uint32_t i) const {
    return *reinterpret_cast<const mekik_option*>(reinterpret_cast<const char*>(first) + std::size_t{i} * size);
  }
};
inline Rows rows_of(const mekik_component& component) { return {component.options, component.n_options, component.option_size}; }
inline Rows fields_of(const mekik_option& row) { return {row.fields, row.n_fields, row.field_size}; }

// Immutable once checked, so any thread may read it. Every declared key is present and in range; an option that was neither given nor
// has a default has length 0 and reads as 0, "" or no table. Element i of a list is the key "name.i".
class Table {
 public:
  struct Item {
    std::int64_t integer = 0;  // bool, int, choice index, bytes, nanoseconds
    double real = 0;
    std::string text;  // text, choice, path (absolute), component; size and duration spelled
    std::unique_ptr<Table> table;
    Origin origin;  // of the value; empty: a default
  };
  struct Option {
    const mekik_option* row = nullptr;
    std::vector<Item> items;  // one, or the elements of a list
    Origin origin;            // of the value; of the table where it was not given
    bool given = false;
  };

  std::int64_t i64(std::string_view key) const;
  double f64(std::string_view key) const;
  std::string_view text(std::string_view key) const;  // lasts as long as the table
  std::uint32_t length(std::string_view key) const;
  const Table* table(std::string_view key, std::uint32_t i) const;
  // The complaint of a component about one of its keys, with the place in front.
  std::string rejection(std::string_view key, std::string_view why) const;

  const Option* find(std::string_view key) const;  // nullptr: not declared
  std::vector<std::string> texts(std::string_view key) const;

  std::string label;  // "[scheduler]", for messages
  Origin origin;
  std::vector<Option> options;  // in the order of the rows

 private:
  const Item* item(std::string_view key) const;
};

// An option's value spelled as TOML; a secret as "***".
std::string spell(const Table::Option& option);

}  // namespace mekik::config
