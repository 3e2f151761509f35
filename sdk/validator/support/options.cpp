#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "support/config.hpp"

namespace mekik::validate {

namespace {

struct Unit {
  const char* name;
  double factor;
};
constexpr Unit kSizes[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"KB", 1e3},
                           {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},    {"B", 1}};
constexpr Unit kTimes[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}, {"h", 3.6e12}};

std::string trim(std::string s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.erase(0, 1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.pop_back();
  return s;
}

std::string unquote(const std::string& s) {
  const bool quoted = s.size() > 1 && (s.front() == '"' || s.front() == '\'') && s.back() == s.front();
  return quoted ? s.substr(1, s.size() - 2) : s;
}

std::optional<double> number(const std::string& text, std::string& rest) {
  std::string digits;
  std::size_t at = 0;
  for (; at < text.size() && (std::isdigit(static_cast<unsigned char>(text[at])) || std::strchr("+-._eE", text[at]) != nullptr); ++at) {
    // An exponent, not the beginning of a unit.
    if ((text[at] == 'e' || text[at] == 'E') && (at + 1 >= text.size() || std::isalpha(static_cast<unsigned char>(text[at + 1])))) break;
    if (text[at] != '_') digits += text[at];
  }
  if (digits.empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (*end != '\0') return std::nullopt;
  rest = trim(text.substr(at));
  return value;
}

template <std::size_t N>
std::optional<double> with_unit(const std::string& text, const Unit (&units)[N], bool bare) {
  std::string rest;
  const auto value = number(text, rest);
  if (!value) return std::nullopt;
  if (rest.empty()) return bare ? value : std::nullopt;
  for (const Unit& u : units)
    if (rest == u.name) return *value * u.factor;
  return std::nullopt;
}

std::optional<Scalar> scalar(const mekik_option& row, const std::string& spelled, std::string& why) {
  const std::string text = unquote(spelled);
  Scalar out;
  out.text = text;
  std::optional<double> value;
  std::string rest;
  switch (row.type) {
    case MEKIK_OPT_BOOL:
      if (text == "true" || text == "false") value = text == "true" ? 1 : 0;
      break;
    case MEKIK_OPT_INT:
      value = number(text, rest);
      if (!rest.empty() || (value && *value != std::floor(*value))) value.reset();
      break;
    case MEKIK_OPT_REAL:
      value = number(text, rest);
      if (!rest.empty()) value.reset();
      break;
    case MEKIK_OPT_SIZE:
      value = with_unit(text, kSizes, true);
      break;
    case MEKIK_OPT_DURATION:
      value = with_unit(text, kTimes, false);
      break;
    case MEKIK_OPT_CHOICE: {
      const auto all = choices_of(row);
      const auto at = std::find(all.begin(), all.end(), text);
      if (at != all.end()) value = static_cast<double>(at - all.begin());
      break;
    }
    default:
      value = 0;
  }
  if (!value) {
    why = "\"" + spelled + "\" is no value of its type";
    return std::nullopt;
  }
  out.real = *value;
  out.integer = std::fabs(*value) < 9.2e18 ? static_cast<std::int64_t>(*value) : INT64_MAX;
  if (row.type == MEKIK_OPT_INT) out.integer = std::strtoll(text.c_str(), nullptr, 10);
  return out;
}

bool is_number(std::uint32_t type) {
  return type == MEKIK_OPT_INT || type == MEKIK_OPT_REAL || type == MEKIK_OPT_SIZE || type == MEKIK_OPT_DURATION;
}

std::string spell(const mekik_option& row, double value) {
  std::ostringstream s;
  s.precision(17);
  if (row.type == MEKIK_OPT_REAL) s << value;
  else s << static_cast<std::int64_t>(value);
  return s.str() + (row.type == MEKIK_OPT_DURATION ? "ns" : "");
}

// Values that the row says it takes, beside its default.
std::vector<std::string> others(const OptionRow& row, const std::string& folder) {
  const mekik_option& o = row.raw;
  std::vector<std::string> out;
  if (row.has(MEKIK_OPT_LIST)) {
    if (o.type == MEKIK_OPT_TEXT) out = {"[\"a\", \"b\"]"};
    return out;
  }
  if (o.type == MEKIK_OPT_BOOL) out = {"true", "false"};
  if (o.type == MEKIK_OPT_CHOICE) out = choices_of(o);
  if (is_number(o.type)) {
    if (row.bounded()) out = {spell(o, o.min), spell(o, o.max), spell(o, o.min + (o.max - o.min) / 3)};
    // Enough to turn something on, where the bounds are far.
    for (const double some : {1.0, 3.0, 1048576.0})
      if (!row.bounded() || (some >= o.min && some <= o.max)) out.push_back(spell(o, some));
  }
  if (o.type == MEKIK_OPT_TEXT) {
    const bool small = !row.bounded() || (o.min <= 1 && o.max >= 1);
    if (small) out = {"x", "\xC3\xA9"};
  }
  if (o.type == MEKIK_OPT_PATH) out = {folder + "/" + o.key};
  return out;
}

}  // namespace

std::vector<OptionRow> rows_of(const mekik_option* options, std::uint32_t n, std::uint32_t size) {
  std::vector<OptionRow> out;
  for (std::uint32_t i = 0; i < n; ++i) {
    OptionRow row{};
    std::memcpy(&row.raw, reinterpret_cast<const char*>(options) + std::size_t{i} * size,
                std::min<std::size_t>(size, sizeof(mekik_option)));
    out.push_back(row);
  }
  return out;
}
std::vector<OptionRow> rows_of(const mekik_component& c) { return rows_of(c.options, c.n_options, c.option_size); }

std::vector<std::string> choices_of(const mekik_option& row) {
  std::vector<std::string> out;
  std::istringstream text{row.choices != nullptr ? row.choices : ""};
  for (std::string one; std::getline(text, one, '|');) out.push_back(one);
  return out;
}

std::optional<std::vector<Scalar>> parse(const mekik_option& row, const std::string& spelled, std::string& why) {
  const std::string text = trim(spelled);
  std::vector<Scalar> out;
  if ((row.flags & MEKIK_OPT_LIST) == 0) {
    const auto one = scalar(row, text, why);
    if (!one) return std::nullopt;
    return std::vector<Scalar>{*one};
  }
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    why = "\"" + spelled + "\" is no list";
    return std::nullopt;
  }
  std::istringstream inner{text.substr(1, text.size() - 2)};
  for (std::string item; std::getline(inner, item, ',');) {
    if (trim(item).empty()) continue;
    const auto one = scalar(row, trim(item), why);
    if (!one) return std::nullopt;
    out.push_back(*one);
  }
  return out;
}

std::vector<Setting> settings_of(const mekik_component& component, const std::string& folder) {
  std::vector<Setting> out{{"all defaults", {}}};
  for (const OptionRow& row : rows_of(component)) {
    if (row.raw.key == nullptr) continue;
    std::set<std::string> seen;
    for (const std::string& value : others(row, folder))
      if (seen.insert(value).second) out.push_back({std::string{row.raw.key} + " = " + value, {{row.raw.key, value}}});
  }
  return out;
}

}  // namespace mekik::validate
