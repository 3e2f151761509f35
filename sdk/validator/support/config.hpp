// Option rows and what is made of them: the values of an instance, and which of them a component reads.
#pragma once
#include <mekik/plugin.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "support/arena.hpp"

namespace mekik::validate {

struct OptionRow {
  mekik_option raw;
  bool has(std::uint32_t flag) const { return (raw.flags & flag) != 0; }
  bool bounded() const { return raw.min <= raw.max; }
};
std::vector<OptionRow> rows_of(const mekik_option* options, std::uint32_t n, std::uint32_t size);
std::vector<OptionRow> rows_of(const mekik_component& component);
std::vector<std::string> choices_of(const mekik_option& row);

// One scalar as the host would hand it out.
struct Scalar {
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
};
// A value spelled as TOML (quotes may be missing), of the row's type. Nothing: it cannot be read, and `why` says what is wrong.
std::optional<std::vector<Scalar>> parse(const mekik_option& row, const std::string& spelled, std::string& why);
// "default", or one option changed.
struct Setting {
  std::string label;
  std::map<std::string, std::string> values;  // by key, spelled as TOML
};
// All defaults; then each option at its bounds, choices and other values that it declares to take.
std::vector<Setting> settings_of(const mekik_component& component, const std::string& folder);

// What create() is given. Reading a key that is not declared, or as another type, is a fault; so is everything after the call.
class Config {
 public:
  Config(const mekik_component& component, const Setting& setting, const std::string& folder);
  ~Config();  // what it lent is taken back
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;
  const mekik_config* raw() const;
  void end();
  std::set<std::string> read() const;
  static const mekik_config_api& api();
  struct Values;

 private:
  std::unique_ptr<Values> values_;
};

}  // namespace mekik::validate
