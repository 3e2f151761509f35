#include "config/options.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/text.hpp"
#include "config/core_rows.hpp"
#include "config/spelling.hpp"

namespace mekik::config {

namespace {

bool has(const mekik_option& row, std::uint32_t flag) { return (row.flags & flag) != 0; }

std::string or_list(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) out += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + mekik::quoted(names[i]);
  return out;
}

// "64 characters", "from 1 to 64 elements".
std::string spell_amount(double min, double max, const std::string& what) {
  if (min == max) return spell_number(min) + " " + what + (min == 1 ? "" : "s");
  return "from " + spell_number(min) + " to " + spell_number(max) + " " + what + "s";
}

const char* expected(std::uint32_t type) {
  switch (type) {
    case MEKIK_OPT_BOOL:
      return "a boolean";
    case MEKIK_OPT_INT:
      return "an integer";
    case MEKIK_OPT_REAL:
      return "a number";
    case MEKIK_OPT_SIZE:
      return "a size such as \"64MiB\"";
    case MEKIK_OPT_DURATION:
      return "a duration such as \"250ms\"";
    case MEKIK_OPT_TABLE:
      return "a table";
    default:
      return "a text";
  }
}

// Checks one value (an element, where the option is a list) against one row.
class ItemCheck {
 public:
  ItemCheck(const mekik_option& row, const Value& value, const std::string& label, const CheckContext& context)
      : row_{row}, value_{value}, label_{label}, context_{context}, name_{"'" + std::string{row.key} + "'"} {}

  bool run(Table::Item& out) {
    out.origin = value_.origin;
    switch (row_.type) {
      case MEKIK_OPT_BOOL:
        return boolean(out);
      case MEKIK_OPT_INT:
        return integer(out);
      case MEKIK_OPT_REAL:
        return real(out);
      case MEKIK_OPT_TEXT:
        return is(Kind::text) && text(out);
      case MEKIK_OPT_CHOICE:
        return is(Kind::text) && choice(out);
      case MEKIK_OPT_SIZE:
        return size(out);
      case MEKIK_OPT_DURATION:
        return duration(out);
      case MEKIK_OPT_PATH:
        return is(Kind::text) && path(out);
      case MEKIK_OPT_TABLE:
        return is(Kind::table) && table(out);
      case MEKIK_OPT_COMPONENT:
        return is(Kind::text) && component(out);
      default:
        return complain(name_ + " has a type that this engine does not know");
    }
  }

 private:
  bool complain(std::string message, std::string hint = {}) {
    context_.diagnostics.error(value_.origin, std::move(message), std::move(hint));
    return false;
  }
  bool is(Kind kind, std::string hint = {}) {
    return value_.kind == kind ||
           complain(name_ + ": expected " + expected(row_.type) + ", found " + kind_name(value_.kind), std::move(hint));
  }
  std::string got(const std::string& shown) const { return has(row_, MEKIK_OPT_SECRET) ? "" : ", got " + shown; }
  // `spell` writes the limits in the option's unit.
  bool in_range(double number, const std::string& shown, std::string (*write)(double)) {
    if (!std::isfinite(number)) return complain(name_ + " must be a finite number" + got(shown));
    if (has(row_, MEKIK_OPT_LIST) || row_.min > row_.max || (number >= row_.min && number <= row_.max)) return true;
    if (row_.max >= 9e18) return complain(name_ + " must be at least " + write(row_.min) + got(shown));
    return complain(name_ + " must be from " + write(row_.min) + " to " + write(row_.max) + got(shown));
  }

  bool boolean(Table::Item& out) {
    if (!is(Kind::boolean)) return false;
    out.integer = value_.boolean ? 1 : 0;
    out.real = static_cast<double>(out.integer);
    return true;
  }
  bool integer(Table::Item& out) {
    if (!is(Kind::integer, value_.kind == Kind::text ? "numbers have no quotes" : "")) return false;
    out.integer = value_.integer;
    out.real = static_cast<double>(value_.integer);
    return in_range(out.real, std::to_string(value_.integer), spell_number);
  }
  bool real(Table::Item& out) {
    if (value_.kind != Kind::integer && !is(Kind::real, value_.kind == Kind::text ? "numbers have no quotes" : "")) return false;
    out.real = value_.kind == Kind::integer ? static_cast<double>(value_.integer) : value_.real;
    if (!in_range(out.real, spell_number(out.real), spell_number)) return false;
    out.integer = std::abs(out.real) < 9.2e18 ? static_cast<std::int64_t>(out.real) : 0;
    return true;
  }
  bool size(Table::Item& out) {
    std::optional<std::uint64_t> bytes;
    if (value_.kind == Kind::integer && value_.integer >= 0) bytes = static_cast<std::uint64_t>(value_.integer);
    else if (value_.kind == Kind::text) bytes = parse_size(value_.text);
    else if (value_.kind != Kind::integer) return is(Kind::text);
    if (!bytes)
      return complain(
          name_ + ": expected a size, found " + (value_.kind == Kind::text ? mekik::quoted(value_.text) : std::to_string(value_.integer)),
          "write bytes, or a number with KiB, MiB, GiB, TiB, KB, MB, GB or TB: \"64MiB\"");
    return measure(out, *bytes, [](double n) { return spell_size(static_cast<std::uint64_t>(n)); });
  }
  bool duration(Table::Item& out) {
    if (!is(Kind::text, "write the unit: ns, us, ms, s, m or h")) return false;
    const auto ns = parse_duration(value_.text);
    if (!ns)
      return complain(name_ + ": expected a duration, found " + mekik::quoted(value_.text),
                      "write a number and ns, us, ms, s, m or h: \"250ms\"");
    return measure(out, *ns, [](double n) { return spell_duration(static_cast<std::uint64_t>(n)); });
  }
  bool measure(Table::Item& out, std::uint64_t amount, std::string (*write)(double)) {
    out.integer = static_cast<std::int64_t>(amount);
    out.real = static_cast<double>(amount);
    out.text = write(out.real);
    return in_range(out.real, mekik::quoted(value_.kind == Kind::text ? value_.text : out.text), write);
  }
  bool text(Table::Item& out) {
    out.text = value_.text;
    if (has(row_, MEKIK_OPT_LIST) || row_.min > row_.max) return true;
    const auto length = static_cast<double>(is_utf8(value_.text) ? utf8_length(value_.text) : value_.text.size());
    if (length >= row_.min && length <= row_.max) return true;
    if (length == 0 && row_.min >= 1) return complain(name_ + " must not be empty", "leave the key out for the default");
    return complain(name_ + " must have " + spell_amount(row_.min, row_.max, "character") + got(spell_number(length)));
  }
  bool choice(Table::Item& out) {
    const std::vector<std::string> choices = split(row_.choices, '|');
    const auto found = std::find(choices.begin(), choices.end(), value_.text);
    if (found == choices.end()) {
      const auto near = closest(value_.text, choices);
      return complain(name_ + " must be " + or_list(choices) + got(mekik::quoted(value_.text)),
                      near ? "did you mean " + mekik::quoted(*near) + "?" : "");
    }
    out.integer = found - choices.begin();
    out.real = static_cast<double>(out.integer);
    out.text = value_.text;
    return true;
  }
  bool path(Table::Item& out) {
    if (!context_.local) return complain(name_ + ": a request cannot name a path");
    if (value_.text.empty())
      return value_.origin.source == nullptr || complain(name_ + " must not be empty", "leave the key out for the default");
    if (value_.text.find('\0') != std::string::npos) return complain(name_ + ": a path cannot hold a zero byte");
    namespace fs = std::filesystem;
    const fs::path folder = value_.origin.source ? fs::path{value_.origin.source->name}.parent_path() : fs::path{};
    std::error_code error;
    const fs::path whole = fs::absolute(folder / value_.text, error);
    if (error) return complain(name_ + ": " + error.message());
    out.text = whole.lexically_normal().string();
    if (out.text.size() > 1 && out.text.back() == '/') out.text.pop_back();
    return true;
  }
  bool table(Table::Item& out) {
    CheckContext inner{context_.diagnostics, context_.components, context_.local, {}, false};
    const std::size_t begin = label_.find_first_not_of('[');
    const std::string label = "[" + label_.substr(begin, label_.find(']') - begin) + "." + row_.key + "]";
    out.table = check_table({fields_of(row_)}, value_, label, "", inner);
    return true;
  }
  bool component(Table::Item& out) {
    if (std::string_view{row_.choices} == "model") return path(out);
    if (!context_.local || context_.components == nullptr) return complain(name_ + ": a request cannot name a component");
    out.text = value_.text;
    if (value_.text.empty())
      return value_.origin.source == nullptr || complain(name_ + " must not be empty", "leave the key out for the default");
    Use use;
    use.kind = kind_of(row_.choices);
    use.name = value_.text;
    use.origin = value_.origin;
    const auto found = context_.components->component(use.kind, use);
    return found.ok() || complain(name_ + ": " + found.status().text);
  }

  const mekik_option& row_;
  const Value& value_;
  const std::string& label_;
  const CheckContext& context_;
  std::string name_;
};

bool check_option(const mekik_option& row, const Value& value, const std::string& label, const CheckContext& context, Table::Option& out) {
  out.row = &row;
  out.origin = value.origin;
  if (has(row, MEKIK_OPT_SECRET) && value.origin.source) {
    context.diagnostics.hide(value.origin);
    for (const Value& element : value.list) context.diagnostics.hide(element.origin);
  }
  if (!has(row, MEKIK_OPT_LIST)) {
    Table::Item item;
    if (!ItemCheck{row, value, label, context}.run(item)) return false;
    out.items.push_back(std::move(item));
    return true;
  }
  const std::string name = "'" + std::string{row.key} + "'";
  if (value.kind != Kind::list) {
    context.diagnostics.error(value.origin, name + ": expected a list, found " + kind_name(value.kind), "write [ ... ]");
    return false;
  }
  const auto length = static_cast<double>(value.list.size());
  if (row.min <= row.max && (length < row.min || length > row.max)) {
    context.diagnostics.error(value.origin,
                              name + " must have " + spell_amount(row.min, row.max, "element") + ", got " + spell_number(length));
    return false;
  }
  bool ok = true;
  for (const Value& element : value.list) ok = ItemCheck{row, element, label, context}.run(out.items.emplace_back()) && ok;
  return ok;
}

// What an option is that nobody gave: its default, or nothing.
void fill_default(const mekik_option& row, const Value& table, const std::string& label, const CheckContext& context, Table::Option& out) {
  out.row = &row;
  out.origin = table.origin;
  const bool none = row.fallback == nullptr || row.fallback[0] == '\0';
  if (!none) {
    check_option(row, parse_loose(row.fallback), label, context, out);
  } else if (row.type == MEKIK_OPT_TABLE && !has(row, MEKIK_OPT_LIST)) {
    const Rows fields = fields_of(row);
    for (std::uint32_t i = 0; i < fields.count; ++i)
      if (has(fields[i], MEKIK_OPT_REQUIRED)) return;
    check_option(row, Value{}, label, context, out);
  }
  out.origin = table.origin;
}

void unknown_key(const std::string& key, const Value& value, const std::vector<Rows>& rows, const std::string& where,
                 const CheckContext& context) {
  std::vector<std::string> names;
  for (const Rows& some : rows)
    for (std::uint32_t i = 0; i < some.count; ++i)
      if (!has(some[i], MEKIK_OPT_DEPRECATED)) names.emplace_back(some[i].key);
  std::string hint = context.belongs_in ? context.belongs_in(key) : "";
  if (!hint.empty()) hint = spell_key(key) + " belongs in " + hint;
  else if (const auto near = closest(key, names)) hint = "did you mean '" + *near + "'?";
  else hint = "it has " + join(names, ", ");
  context.diagnostics.error(value.key_origin, "unknown key " + spell_key(key) + " in " + where, hint);
}

const mekik_option* row_of(const std::vector<Rows>& rows, const std::string& key) {
  for (const Rows& some : rows)
    for (std::uint32_t i = 0; i < some.count; ++i)
      if (key == some[i].key) return &some[i];
  return nullptr;
}

Result<Value> from_json(const std::string& key, const json::value& json) {
  Value out;
  if (json.is_bool()) {
    out.kind = Kind::boolean;
    out.boolean = json.get_bool();
  } else if (json.is_int64()) {
    out.kind = Kind::integer;
    out.integer = json.get_int64();
  } else if (json.is_number()) {
    // JSON has one kind of number: 2.0 is a fine integer.
    out.real = json.is_double() ? json.get_double() : static_cast<double>(json.get_uint64());
    const bool whole = out.real == std::floor(out.real) && std::abs(out.real) < 9007199254740992.0;
    out.kind = whole ? Kind::integer : Kind::real;
    if (whole) out.integer = static_cast<std::int64_t>(out.real);
  } else if (json.is_string()) {
    out.kind = Kind::text;
    out.text = std::string{json.get_string().data(), json.get_string().size()};
  } else if (const auto* array = json.if_array()) {
    out.kind = Kind::list;
    for (const json::value& element : *array) {
      MEKIK_TRY(converted, from_json(key, element));
      out.list.push_back(std::move(converted));
    }
  } else if (const auto* object = json.if_object()) {
    for (const auto& member : *object) {
      MEKIK_TRY(converted, from_json(key, member.value()));
      out.table.emplace_back(std::string{member.key().data(), member.key().size()}, std::move(converted));
    }
  } else {
    return invalid("'" + key + "': null is not a value; leave the field out");
  }
  return out;
}

}  // namespace

std::unique_ptr<Table> check_table(const std::vector<Rows>& rows, const Value& value, const std::string& label, const std::string& who,
                                   const CheckContext& context) {
  auto out = std::make_unique<Table>();
  out->label = label;
  out->origin = value.key_origin.source ? value.key_origin : value.origin;
  for (const Rows& some : rows) {
    for (std::uint32_t i = 0; i < some.count; ++i) {
      const mekik_option& row = some[i];
      Table::Option option;
      const Value* given = value.find(row.key);
      if (given != nullptr) {
        option.given = given->origin.source != nullptr;
        check_option(row, *given, label, context, option);
        if (option.given && has(row, MEKIK_OPT_DEPRECATED))
          context.diagnostics.warning(given->key_origin, "'" + std::string{row.key} + "' in " + label + " is deprecated", row.doc);
      } else {
        if (has(row, MEKIK_OPT_REQUIRED))
          context.diagnostics.error(out->origin, label + who + " lacks '" + row.key + "'", row.doc == nullptr ? "" : row.doc);
        fill_default(row, value, label, context, option);
      }
      out->options.push_back(std::move(option));
    }
  }
  for (const auto& [key, member] : value.table)
    if (!context.open && row_of(rows, key) == nullptr) unknown_key(key, member, rows, label + who, context);
  return out;
}

Status check_option_json(const mekik_option& row, const json::value& value) {
  MEKIK_TRY(converted, from_json(row.key, value));
  Diagnostics diagnostics;
  Table::Option ignored;
  if (check_option(row, converted, "[request]", {diagnostics, nullptr, false, {}, false}, ignored) && diagnostics.ok()) return {};
  std::string text;
  for (const Diagnostic& one : diagnostics.all())
    text += (text.empty() ? "" : "; ") + one.message + (one.hint.empty() ? "" : " (" + one.hint + ")");
  return invalid(text);
}

}  // namespace mekik::config
