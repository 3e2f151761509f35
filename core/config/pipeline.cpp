#include "config/pipeline.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/text.hpp"
#include "config/beside.hpp"
#include "config/core_rows.hpp"
#include "config/extract.hpp"
#include "config/layers.hpp"
#include "config/listen.hpp"
#include "config/options.hpp"
#include "config/spelling.hpp"

namespace mekik::config {

namespace {

constexpr std::size_t kMostKeyBytes = 4096;

namespace fs = std::filesystem;

Value text_value(std::string text) {
  Value value;
  value.kind = Kind::text;
  value.text = std::move(text);
  return value;
}

// The table of a slot, or of one element of it: what the file says, the component that it uses, and in the end the checked options.
struct Slot {
  const CoreTable* core = nullptr;
  Value value;
  std::string label, who;
  Use use;
  const mekik_component* component = nullptr;
  std::shared_ptr<Table> options;
  std::string_view name() const { return core->name; }
};

class Loader {
 public:
  Loader(Value root, Components& components, Diagnostics& diagnostics, const Beside* beside)
      : root_{std::move(root)}, components_{components}, diagnostics_{diagnostics}, beside_{beside} {}

  std::optional<Pipeline> run() {
    for (const CoreTable& core : core_tables()) collect(core);
    add_libraries();
    for (Slot& slot : slots_)
      if (slot.core->kind != nullptr) find_component(slot);
    check_top();
    for (Slot& slot : slots_) check(slot);
    // What was wrong so far is absent from the tables, so the rest can be checked in the same run.
    check_model();
    check_devices();
    check_server();
    if (!diagnostics_.ok()) return std::nullopt;
    return extract();
  }

 private:
  void check_top() {
    for (const auto& [key, value] : root_.table) {
      std::vector<std::string> names;
      if (beside_ != nullptr) names = beside_->names;
      for (const CoreTable& core : core_tables()) names.emplace_back(core.name);
      if (std::find(names.begin(), names.end(), key) != names.end()) continue;
      const std::string home = belongs_in(key);
      const auto near = closest(key, names);
      const bool table = value.kind == Kind::table || value.kind == Kind::list;
      const std::string hint = near && table   ? "did you mean [" + *near + "]?"
                               : !home.empty() ? spell_key(key) + " belongs in " + home
                                               : "";
      diagnostics_.error(value.key_origin, table ? "unknown table [" + key + "]" : "unknown key " + spell_key(key) + " outside of a table",
                         hint);
    }
  }

  // Splits the tree into slots; says so where a list and a table were mixed up.
  void collect(const CoreTable& core) {
    Value* value = root_.find(core.name);
    const std::string name = core.name;
    if (!core.list) {
      if (value != nullptr && value->kind != Kind::table) {
        diagnostics_.error(value->key_origin, "'" + name + "': expected a table, found " + kind_name(value->kind),
                           "write [" + name + "] once");
        return;
      }
      if (value == nullptr && name == "draft") return;
      Value absent;
      absent.origin = root_.origin;
      add(core, value == nullptr ? std::move(absent) : std::move(*value));
      return;
    }
    if (value == nullptr) return;
    if (value->kind != Kind::list) {
      diagnostics_.error(value->key_origin, "'" + name + "': expected a list of tables, found " + kind_name(value->kind),
                         "write [[" + name + "]]");
      return;
    }
    if (value->list.empty() && name == "sampler")
      diagnostics_.error(value->origin, "'sampler' is empty; a chain has at least one link", "write [[sampler]] use = \"standard\"");
    for (Value& element : value->list) {
      if (element.kind == Kind::table) {
        if (!element.key_origin.source) element.key_origin = element.origin;
        add(core, std::move(element));
      } else {
        diagnostics_.error(element.origin, "'" + name + "': expected a table, found " + kind_name(element.kind), "write [[" + name + "]]");
      }
    }
  }

  void add(const CoreTable& core, Value value) {
    Slot slot;
    slot.core = &core;
    slot.label = core.list ? "[[" + std::string{core.name} + "]]" : "[" + std::string{core.name} + "]";
    if (core.default_use != nullptr && value.find("use") == nullptr)
      value.table.insert(value.table.begin(), {"use", text_value(core.default_use)});
    slot.value = std::move(value);
    slots_.push_back(std::move(slot));
  }

  // [plugins] comes first: it decides which components the other tables can name.
  void add_libraries() {
    const auto plugins = std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.name() == "plugins"; });
    if (plugins == slots_.end()) return;
    check(*plugins);
    for (Table::Option& option : plugins->options->options) {
      if (!option.given) continue;
      const bool load = std::string_view{option.row->key} == "load";
      if (load) make_absolute(option);
      const std::vector<std::string> texts = plugins->options->texts(option.row->key);
      const Status status = components_.add(load ? texts : std::vector<std::string>{}, load ? std::vector<std::string>{} : texts);
      if (!status.ok()) diagnostics_.error(option.origin, status.text);
    }
  }

  // An entry with a slash is a path, relative to the file; others are names to look up.
  static void make_absolute(Table::Option& load) {
    for (Table::Item& item : load.items) {
      if (item.text.find('/') == std::string::npos) continue;
      const fs::path folder = item.origin.source ? fs::path{item.origin.source->name}.parent_path() : fs::path{};
      item.text = fs::absolute(folder / item.text).lexically_normal().string();
    }
  }

  // Reads use, file and sha256 ahead of the rest, since the component decides what the rest may be. Their types are checked with it.
  void find_component(Slot& slot) {
    const Value* use = slot.value.find("use");
    const Origin origin = use != nullptr ? use->origin : slot.value.key_origin;
    if (use == nullptr) {
      diagnostics_.error(slot.value.key_origin, slot.label + " does not say which component to use", "add use = \"...\"");
      return;
    }
    if (use->kind != Kind::text) return;
    slot.use.kind = slot.core->kind;
    slot.use.name = use->text;
    slot.use.origin = origin;
    const std::string& name = use->text;
    if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
      return diagnostics_.error(origin, "'use': " + mekik::quoted(name) + " is not a component's name",
                                "names have small letters, digits and _");
    Diagnostics ignored;  // reported by check()
    const auto path = check_table({slot.core->rows}, slot.value, slot.label, "", {ignored, nullptr, true, {}, true});
    slot.use.file = path->text("file");
    slot.use.sha256 = path->text("sha256");
    const auto found = components_.component(slot.use.kind, slot.use);
    if (!found.ok()) return diagnostics_.error(origin, found.status().text);
    slot.component = *found;
    slot.who = " (component " + mekik::quoted(name) + ")";
  }

  void check(Slot& slot) {
    if (slot.options) return;
    std::vector<Rows> rows{slot.core->rows};
    if (slot.component != nullptr) rows.push_back(rows_of(*slot.component));
    // Without its component nobody knows which keys a slot may have.
    const bool open = slot.core->kind != nullptr && slot.component == nullptr;
    slot.options = check_table(rows, slot.value, slot.label, slot.who,
                               {diagnostics_, &components_, true, [&](const std::string& key) { return belongs_in(key, &slot); }, open});
  }

  // The other tables that know a key by exactly this name: "[cache]", "[cache] or [scheduler]".
  std::string belongs_in(const std::string& key, const Slot* except = nullptr) const {
    std::vector<std::string> homes;
    const auto look = [&](const Rows& rows, const std::string& label) {
      for (std::uint32_t i = 0; i < rows.count; ++i)
        if (key == rows[i].key && std::find(homes.begin(), homes.end(), label) == homes.end()) homes.push_back(label);
    };
    if (key == "use" || key == "file" || key == "sha256" || key == "name") return {};
    for (const CoreTable& core : core_tables())
      if (except == nullptr || except->core != &core)
        look(core.rows, (core.list ? "[[" : "[") + std::string{core.name} + (core.list ? "]]" : "]"));
    for (const Slot& slot : slots_)
      if (slot.component != nullptr && &slot != except) look(rows_of(*slot.component), slot.label);
    return join(homes, " or ");
  }

  // An option of a core table that is not a list; nullptr where the table was unusable.
  Table::Option* option(std::string_view table, std::string_view key) {
    for (Slot& slot : slots_)
      if (slot.name() == table)
        for (Table::Option& one : slot.options->options)
          if (key == one.row->key) return &one;
    return nullptr;
  }
  void check_model();
  void check_devices();
  void check_server();
  Pipeline extract();

  Value root_;
  Components& components_;
  Diagnostics& diagnostics_;
  const Beside* beside_;  // nullptr: a pipeline alone
  std::vector<Slot> slots_;
};

void add_settings(const Slot& slot, Pipeline& out) {
  for (const Table::Option& option : slot.options->options) {
    // What the file extends is merged already.
    if (std::string_view{option.row->key} == "extends") continue;
    if (option.items.empty() && (option.row->flags & MEKIK_OPT_LIST) == 0) continue;
    out.settings.push_back({slot.label, option.row->key, spell(option), option.given ? place(option.origin) : "default"});
  }
}

void Loader::check_model() {
  const Table::Option* path = option("model", "path");
  const Table::Option* loader = option("model", "loader");
  std::error_code error;
  if (beside_ == nullptr && path != nullptr && !path->items.empty() && !fs::exists(path->items[0].text, error))
    diagnostics_.error(path->origin, "'path': there is no file or folder " + path->items[0].text);
  if (loader == nullptr || loader->items.empty()) return;
  Use use;
  use.kind = "loader";
  use.name = loader->items[0].text;
  use.origin = loader->origin;
  const auto found = components_.component(use.kind, use);
  if (!found.ok()) diagnostics_.error(loader->origin, "'loader': " + found.status().text);
}

void Loader::check_devices() {
  const Table::Option* devices = option("backend", "devices");
  if (devices == nullptr) return;
  std::set<std::int64_t> seen;
  for (const Table::Item& item : devices->items) {
    const bool twice = !seen.insert(item.integer).second;
    if (item.integer < 0 || item.integer > 65535 || twice)
      diagnostics_.error(item.origin, "'devices' holds " + std::to_string(item.integer) + (twice ? " twice" : ", which is not an index"));
  }
}

void Loader::check_server() {
  Table::Option* listen = option("server", "listen");
  if (listen == nullptr || option("server", "api_key") == nullptr || option("server", "api_keys") == nullptr) return;
  std::set<std::string> seen;
  for (Table::Item& item : listen->items) {
    const Result<std::string> checked = check_listen(item.text, item.origin);
    if (!checked.ok()) diagnostics_.error(item.origin, "'listen': " + checked.status().text);
    else if (!seen.insert(*checked).second && !is_any_port(*checked))
      diagnostics_.error(item.origin, "'listen' names " + *checked + " twice");
    else item.text = *checked;
  }
  const auto visible = [](char c) { return c > 0x20 && c < 0x7F; };
  std::set<std::string> keys;
  for (const char* name : {"api_key", "api_keys"})
    for (const Table::Item& item : option("server", name)->items) {
      const auto say = [&](const std::string& what, const std::string& why) {
        diagnostics_.error(option("server", name)->origin, "'" + std::string{name} + "'" + what, why);
      };
      if (!std::all_of(item.text.begin(), item.text.end(), visible))
        say(" may hold visible ASCII characters only", "others cannot be sent in a header");
      else if (item.text.empty()) say(" must not have an empty key", "everybody has that");
      else if (item.text.size() > kMostKeyBytes) say(" has a key of more than 4096 characters", "it cannot be sent in a header");
      else if (!keys.insert(item.text).second) say(" has a key twice", "each is a tenant of its own");
    }
  if (const Table::Option* share = option("server", "share_prefixes");
      keys.empty() && share != nullptr && !share->items.empty() && share->items[0].integer != 0)
    diagnostics_.error(share->origin, "'share_prefixes' has no effect without keys", "without keys everybody shares; leave it out");
}

Pipeline Loader::extract() {
  Pipeline out;
  for (Slot& slot : slots_) {
    const Table& table = *slot.options;
    const std::string_view name = slot.name();
    const auto u32 = [&](const char* key) { return static_cast<std::uint32_t>(table.i64(key)); };
    slot.use.options = slot.options;
    if (name == "pipeline") out.name = table.text("name");
    if (name == "model") out.model = model_of(table);
    if (name == "server") out.server = server_of(table);
    if (name == "backend") {
      out.backend = slot.use;
      out.threads = u32("threads");
      for (const Table::Item& item : table.find("devices")->items) out.devices.push_back(static_cast<std::uint32_t>(item.integer));
    }
    if (name == "cache") {
      out.cache = slot.use;
      out.block_tokens = u32("block_tokens");
      out.cache_bytes = static_cast<std::uint64_t>(table.i64("memory"));
      out.kv = table.text("kv");
    }
    if (name == "scheduler") {
      out.scheduler = slot.use;
      out.max_batch_tokens = u32("max_batch_tokens");
      out.batch_tokens_given = table.find("max_batch_tokens")->given;
      out.max_sequences = u32("max_sequences");
    }
    if (name == "sampler") out.samplers.push_back(slot.use);
    if (name == "draft") {
      out.draft = slot.use;
      out.max_drafts = u32("max_drafts");
      out.adaptive_drafts = table.i64("adaptive") != 0;
    }
    if (name == "sink") out.sinks.push_back(slot.use);
    if (name == "plugins") {
      out.plugin_load = table.texts("load");
      out.plugin_dirs = table.texts("dirs");
    }
    add_settings(slot, out);
  }
  return out;
}

// Takes the other tables out of the tree.
void set_aside(Value& root, Beside& beside) {
  beside.read = true;
  for (const std::string& name : beside.names) {
    const auto at = std::find_if(root.table.begin(), root.table.end(), [&](const auto& entry) { return entry.first == name; });
    if (at == root.table.end()) continue;
    at->second.key_origin = at->second.key_origin.source ? at->second.key_origin : at->second.origin;
    beside.tables[name] = std::move(at->second);
    root.table.erase(at);
  }
  Value* model = root.find("model");
  beside.model = model != nullptr && model->kind == Kind::table && model->find("path") != nullptr;
  if (beside.model || (model != nullptr && model->kind != Kind::table)) return;
  if (model == nullptr) model = &root.table.emplace_back("model", Value{}).second;
  model->table.emplace_back("path", text_value("none"));
}

std::optional<Pipeline> finish(Value root, const std::vector<Override>& overrides, Components& components, Diagnostics& diagnostics,
                               Beside* beside = nullptr) {
  // The default chain is in the tree before the overrides, so that --set sampler.0.key=value can reach into it.
  if (root.find("sampler") == nullptr) {
    Value standard, chain;
    standard.table.emplace_back("use", text_value("standard"));
    chain.kind = Kind::list;
    chain.list.push_back(std::move(standard));
    root.table.emplace_back("sampler", std::move(chain));
  }
  const auto extends = [&] {
    const Value* pipeline = root.find("pipeline");
    const Value* found = pipeline == nullptr ? nullptr : pipeline->find("extends");
    return found == nullptr ? nullptr : found->origin.source.get();
  };
  const Source* before = extends();
  for (const Override& override : overrides) apply_override(override, root, diagnostics);
  if (extends() != before) diagnostics.error({}, "--set cannot change pipeline.extends", "write a file that extends the other");
  if (beside != nullptr) set_aside(root, *beside);
  return Loader{std::move(root), components, diagnostics, beside}.run();
}

}  // namespace

std::optional<Pipeline> load_pipeline(const std::string& path, const std::vector<Override>& overrides, Components& components,
                                      Diagnostics& diagnostics) {
  Value root;
  if (!read_layers(path, root, diagnostics)) return std::nullopt;
  return finish(std::move(root), overrides, components, diagnostics);
}

std::optional<Pipeline> load_beside(const std::string& path, const std::vector<Override>& overrides, Components& components,
                                    Diagnostics& diagnostics, Beside& beside) {
  Value root;
  if (!read_layers(path, root, diagnostics)) return std::nullopt;
  return finish(std::move(root), overrides, components, diagnostics, &beside);
}

std::optional<Pipeline> default_pipeline(const std::string& model_path, const std::vector<Override>& overrides, Components& components,
                                         Diagnostics& diagnostics) {
  Value root, model;
  Value path = text_value(model_path);
  path.origin.source = std::make_shared<const Source>(Source{"command line", model_path});
  model.table.emplace_back("path", std::move(path));
  root.table.emplace_back("model", std::move(model));
  return finish(std::move(root), overrides, components, diagnostics);
}

}  // namespace mekik::config
