#include "config/spelling.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "base/text.hpp"

namespace mekik::config {

namespace {

struct Unit {
  const char* name;
  std::uint64_t factor;
};

template <std::size_t n>
std::string largest_exact(std::uint64_t value, const std::array<Unit, n>& units) {
  for (const Unit& unit : units)
    if (value % unit.factor == 0 && (value > 0 || unit.factor == units.back().factor))
      return std::to_string(value / unit.factor) + unit.name;
  return std::to_string(value);
}

void forget_origins(Value& value) {
  value.origin = value.key_origin = {};
  for (Value& element : value.list) forget_origins(element);
  for (auto& [key, member] : value.table) forget_origins(member);
}

}  // namespace

std::string spell_text(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (byte < 0x20 || byte == 0x7F) out += std::string{"\\u00"} + kHex[byte >> 4] + kHex[byte & 15];
    else out += c;
  }
  return out + '"';
}

std::string spell_key(std::string_view key) {
  std::string out = mekik::quoted(key);
  out.front() = '\'';
  if (out.back() == '"') out.back() = '\'';
  return out;
}

std::string spell_number(double value) {
  std::array<char, 32> buffer{};
  const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
  const auto result = whole ? std::to_chars(buffer.data(), buffer.data() + buffer.size(), static_cast<std::int64_t>(value))
                            : std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::string spell_real(double value) {
  std::string out = spell_number(value);
  if (out.find_first_of(".en") == std::string::npos) out += ".0";
  return out;
}

std::string spell_size(std::uint64_t bytes) {
  static constexpr std::array<Unit, 5> kUnits{
      {{"TiB", 1ull << 40}, {"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}, {"", 1}}};
  return largest_exact(bytes, kUnits);
}

std::string spell_duration(std::uint64_t duration) {
  static constexpr std::array<Unit, 6> kUnits{
      {{"h", 3'600'000'000'000}, {"m", 60'000'000'000}, {"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}}};
  return largest_exact(duration, kUnits);
}

Value parse_loose(std::string_view text) {
  Value root;
  Diagnostics ignored;  // what is not TOML is a bare word
  if (parse_toml("x = " + std::string{text} + "\n", "", root, ignored) && root.table.size() == 1) {
    Value value = std::move(root.table[0].second);
    forget_origins(value);
    return value;
  }
  Value value;
  value.kind = Kind::text;
  value.text = text;
  value.plain_text = false;
  return value;
}

}  // namespace mekik::config
