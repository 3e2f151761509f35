#include "config/table.hpp"

#include <algorithm>
#include <charconv>

#include "base/log.hpp"
#include "config/spelling.hpp"

namespace mekik::config {

const Table::Option* Table::find(std::string_view key) const {
  const auto it = std::find_if(options.begin(), options.end(), [&](const Option& option) { return key == option.row->key; });
  return it == options.end() ? nullptr : &*it;
}

const Table::Item* Table::item(std::string_view key) const {
  const std::size_t dot = key.find('.');
  const Option* option = find(key.substr(0, dot));
  std::size_t index = 0;
  bool number = true;
  if (dot != std::string_view::npos) {
    const std::string_view digits = key.substr(dot + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    number = error == std::errc{} && end == digits.data() + digits.size();
  }
  if (option == nullptr || !number) {
    log::error("config", label + ": a component asks for '" + std::string{key} + "', which it does not declare");
    return nullptr;
  }
  return index < option->items.size() ? &option->items[index] : nullptr;
}

std::int64_t Table::i64(std::string_view key) const {
  const Item* found = item(key);
  return found == nullptr ? 0 : found->integer;
}

double Table::f64(std::string_view key) const {
  const Item* found = item(key);
  return found == nullptr ? 0 : found->real;
}

std::string_view Table::text(std::string_view key) const {
  const Item* found = item(key);
  return found == nullptr ? std::string_view{} : std::string_view{found->text};
}

std::uint32_t Table::length(std::string_view key) const {
  const Option* option = find(key);
  if (option == nullptr) log::error("config", label + ": a component asks for '" + std::string{key} + "', which it does not declare");
  return option == nullptr ? 0 : static_cast<std::uint32_t>(option->items.size());
}

const Table* Table::table(std::string_view key, std::uint32_t i) const {
  const Option* option = find(key);
  return option == nullptr || i >= option->items.size() ? nullptr : option->items[i].table.get();
}

std::string Table::rejection(std::string_view key, std::string_view why) const {
  const Option* option = find(key);
  const std::string where = place(option == nullptr ? origin : option->origin);
  return where + (where.empty() ? "" : ": ") + "error: '" + std::string{key} + "' in " + label + ": " + std::string{why};
}

std::vector<std::string> Table::texts(std::string_view key) const {
  std::vector<std::string> out;
  if (const Option* option = find(key))
    for (const Item& one : option->items) out.push_back(one.text);
  return out;
}

namespace {

std::string spell_item(const mekik_option& row, const Table::Item& item) {
  switch (row.type) {
    case MEKIK_OPT_BOOL:
      return item.integer != 0 ? "true" : "false";
    case MEKIK_OPT_INT:
      return std::to_string(item.integer);
    case MEKIK_OPT_REAL:
      return spell_real(item.real);
    case MEKIK_OPT_TABLE:
      break;
    default:
      return spell_text(item.text);
  }
  std::string out = "{";
  for (const Table::Option& option : item.table->options)
    if (!option.items.empty()) out += (out.size() > 1 ? ", " : " ") + std::string{option.row->key} + " = " + spell(option);
  return out + " }";
}

}  // namespace

std::string spell(const Table::Option& option) {
  const bool list = (option.row->flags & MEKIK_OPT_LIST) != 0, secret = (option.row->flags & MEKIK_OPT_SECRET) != 0;
  if (secret && !list) return "\"***\"";
  if (!list) return option.items.empty() ? "" : spell_item(*option.row, option.items[0]);
  std::string out = "[";
  std::size_t n = 0;
  for (const Table::Item& item : option.items)
    out += (out.size() > 1 ? ", " : "") + (secret ? "\"***" + std::to_string(++n) + "\"" : spell_item(*option.row, item));
  return out + "]";
}

}  // namespace mekik::config
