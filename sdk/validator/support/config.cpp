#include "support/config.hpp"

#include <algorithm>
#include <charconv>
#include <mutex>

#include "run/shared.hpp"
#include "support/heap.hpp"
#include "support/host.hpp"

namespace mekik::validate {

namespace {

std::mutex live_lock;
std::map<const void*, Config::Values*> live;  // by what the plugin has for a handle

const char* type_name(std::uint32_t type) {
  static constexpr const char* kNames[] = {"?", "bool", "int", "real", "text", "choice", "size", "duration", "path", "table", "component"};
  return type < std::size(kNames) ? kNames[type] : "?";
}

}  // namespace

struct Config::Values {
  struct One {
    mekik_option row;
    std::vector<Scalar> items;
    std::vector<Piece*> texts;
    std::vector<std::unique_ptr<Values>> tables;
  };
  std::map<std::string, One, std::less<>> options;
  std::set<std::string> read;
  Piece* handle = nullptr;

  Values(const std::vector<OptionRow>& rows, const std::map<std::string, std::string>& given, const std::string& folder) {
    handle = lend(64, 64, "mekik_config (opaque)");
    for (const OptionRow& row : rows) add(row, given, folder);
    freeze(handle);
    const std::lock_guard lock{live_lock};
    live[data(handle)] = this;
  }
  void add(const OptionRow& row, const std::map<std::string, std::string>& given, const std::string& folder) {
    One& one = options[row.raw.key];
    one.row = row.raw;
    const auto at = given.find(row.raw.key);
    std::string why;
    if (at != given.end()) {
      if (auto items = parse(row.raw, at->second, why)) one.items = *items;
    } else if (row.raw.fallback != nullptr && row.raw.fallback[0] != '\0') {
      if (auto items = parse(row.raw, row.raw.fallback, why)) one.items = *items;
    } else if (row.has(MEKIK_OPT_REQUIRED)) {
      one.items = required(row, folder);
    }
    if (row.raw.type == MEKIK_OPT_TABLE && !row.has(MEKIK_OPT_LIST))
      one.tables.push_back(std::make_unique<Values>(rows_of(row.raw.fields, row.raw.n_fields, row.raw.field_size),
                                                    std::map<std::string, std::string>{}, folder));
    for (const Scalar& item : one.items) {
      one.texts.push_back(lend(item.text.size(), 1, row.raw.key));
      item.text.copy(static_cast<char*>(data(one.texts.back())), item.text.size());
      freeze(one.texts.back());
    }
  }
  static std::vector<Scalar> required(const OptionRow& row, const std::string& folder) {
    Scalar s;
    const auto least = row.bounded() ? row.raw.min : 1;
    s.real = row.bounded() ? row.raw.min : 0;
    s.integer = static_cast<std::int64_t>(s.real);
    if (row.raw.type == MEKIK_OPT_TEXT) s.text = std::string(static_cast<std::size_t>(std::clamp(least, 1.0, 4096.0)), 'x');
    if (row.raw.type == MEKIK_OPT_CHOICE && !choices_of(row.raw).empty()) s.text = choices_of(row.raw)[0];
    if (row.raw.type == MEKIK_OPT_PATH || row.raw.type == MEKIK_OPT_COMPONENT) s.text = folder + "/" + row.raw.key;
    return {s};
  }
  ~Values() {
    {
      const std::lock_guard lock{live_lock};
      live.erase(data(handle));
    }
    for (auto& [key, one] : options)
      for (Piece* p : one.texts) revoke(p);
    revoke(handle);
  }
};

namespace {

// The values behind a handle, if it is one that is lent now.
Config::Values* of(const mekik_config* config, const char* how) {
  const std::lock_guard lock{live_lock};
  const auto at = live.find(config);
  if (at != live.end()) return at->second;
  fault(std::string{"mekik_config_api."} + how + ": " +
        (config == nullptr ? "no mekik_config" : "a mekik_config that was not lent, or is not any more") + " was given");
  return nullptr;
}

Config::Values::One* option(Config::Values* values, const char* key, std::size_t& index, const char* how) {
  if (values == nullptr) return nullptr;
  if (key == nullptr) return fault(std::string{"mekik_config_api."} + how + " was given no key"), nullptr;
  const std::string_view whole = key;
  const std::size_t dot = whole.find('.');
  const std::string_view name = whole.substr(0, dot);
  index = 0;
  if (dot != std::string_view::npos) std::from_chars(whole.data() + dot + 1, whole.data() + whole.size(), index);
  const auto at = values->options.find(name);
  if (at == values->options.end()) {
    fault("reads the option '" + std::string{whole} + "', which it does not declare");
    return nullptr;
  }
  {
    const std::lock_guard lock{live_lock};
    values->read.insert(std::string{name});
  }
  const bool list = (at->second.row.flags & MEKIK_OPT_LIST) != 0;
  if (list && dot == std::string_view::npos && std::string_view{how} != "length" && std::string_view{how} != "table")
    fault("reads the list '" + std::string{name} + "' as if it were one value (elements are '" + std::string{name} + ".0' and on)");
  return &at->second;
}

const Scalar* item(const mekik_config* config, const char* key, const char* how, std::initializer_list<std::uint32_t> types,
                   Piece** text = nullptr) {
  const HostScope scope;
  std::size_t index = 0;
  Config::Values::One* one = option(of(config, how), key, index, how);
  if (one == nullptr) return nullptr;
  if (std::find(types.begin(), types.end(), one->row.type) == types.end())
    fault("reads the " + std::string{type_name(one->row.type)} + " '" + key + "' with " + how + "()");
  if (index >= one->items.size()) return nullptr;
  if (text != nullptr) *text = one->texts[index];
  return &one->items[index];
}

}  // namespace

const mekik_config_api& Config::api() {
  static const mekik_config_api table{
      sizeof(mekik_config_api),
      0,
      [](const mekik_config* c, const char* key) -> std::int64_t {
        const Scalar* s = item(c, key, "i64", {MEKIK_OPT_BOOL, MEKIK_OPT_INT, MEKIK_OPT_CHOICE, MEKIK_OPT_SIZE, MEKIK_OPT_DURATION});
        return s != nullptr ? s->integer : 0;
      },
      [](const mekik_config* c, const char* key) -> double {
        const Scalar* s = item(c, key, "f64", {MEKIK_OPT_INT, MEKIK_OPT_REAL, MEKIK_OPT_SIZE, MEKIK_OPT_DURATION});
        return s != nullptr ? s->real : 0;
      },
      [](const mekik_config* c, const char* key) -> mekik_str {
        Piece* text = nullptr;
        item(c, key, "text", {MEKIK_OPT_TEXT, MEKIK_OPT_CHOICE, MEKIK_OPT_PATH, MEKIK_OPT_COMPONENT}, &text);
        return text != nullptr ? mekik_str{static_cast<const char*>(data(text)), size(text)} : mekik_str{"", 0};
      },
      [](const mekik_config* c, const char* key) -> std::uint32_t {
        const HostScope scope;
        std::size_t index = 0;
        const auto* one = option(of(c, "length"), key, index, "length");
        return one != nullptr ? static_cast<std::uint32_t>(std::max(one->items.size(), one->tables.size())) : 0;
      },
      [](const mekik_config* c, const char* key, std::uint32_t i) -> const mekik_config* {
        const HostScope scope;
        std::size_t index = 0;
        const auto* one = option(of(c, "table"), key, index, "table");
        if (one == nullptr || i >= one->tables.size()) return nullptr;
        return static_cast<const mekik_config*>(data(one->tables[i]->handle));
      },
      [](const mekik_config* c, const char* key, mekik_str why) -> mekik_status {
        const HostScope scope;
        std::size_t index = 0;
        option(of(c, "reject"), key, index, "length");
        if (why.len == 0 || why.ptr == nullptr) fault("rejects '" + std::string{key != nullptr ? key : "?"} + "' without a reason");
        remember_rejection(why);
        return MEKIK_E_INVALID;
      }};
  return table;
}

Config::Config(const mekik_component& component, const Setting& setting, const std::string& folder)
    : values_{std::make_unique<Values>(rows_of(component), setting.values, folder)} {}
Config::~Config() = default;
const mekik_config* Config::raw() const { return static_cast<const mekik_config*>(data(values_->handle)); }
std::set<std::string> Config::read() const {
  std::set<std::string> out;
  if (values_) out = values_->read;
  return out;
}
void Config::end() { values_.reset(); }

}  // namespace mekik::validate
