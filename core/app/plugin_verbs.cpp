// plugins, describe, schema: what is installed, as gst-inspect shows it.
#include <cstdio>

#include "app/session.hpp"
#include "app/verbs.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "config/core_rows.hpp"
#include "config/spelling.hpp"
#include "plugin/kinds.hpp"

namespace mekik::app {

namespace {

std::string short_kind(std::string_view kind) {  // "mekik.backend/1" -> "backend"
  if (kind.starts_with("mekik.")) kind.remove_prefix(6);
  return std::string{kind.substr(0, kind.rfind('/'))};
}

const mekik_option& option_at(const mekik_option* rows, std::uint32_t i, std::uint32_t size) {
  return *reinterpret_cast<const mekik_option*>(reinterpret_cast<const char*>(rows) + std::size_t{i} * size);
}

const char* type_of(const mekik_option& option) {
  static constexpr const char* kNames[] = {"?", "bool", "int", "real", "text", "choice", "size", "duration", "path", "table", "component"};
  return option.type < std::size(kNames) ? kNames[option.type] : "?";
}

// A limit in the unit of its option.
std::string limit(const mekik_option& option, double value) {
  if (option.type == MEKIK_OPT_SIZE) return config::spell_size(static_cast<std::uint64_t>(value));
  if (option.type == MEKIK_OPT_DURATION) return config::spell_duration(static_cast<std::uint64_t>(value));
  return config::spell_number(value);
}

json::object option_json(const mekik_option& o) {
  json::object out{{"key", o.key}, {"type", type_of(o)}, {"doc", o.doc ? o.doc : ""}};
  if (o.fallback) out["default"] = o.fallback;
  if (o.choices) out["choices"] = o.choices;
  if (o.min <= o.max) {
    out["min"] = o.min;
    out["max"] = o.max;
  }
  out["required"] = (o.flags & MEKIK_OPT_REQUIRED) != 0;
  out["list"] = (o.flags & MEKIK_OPT_LIST) != 0;
  return out;
}

void print_options(const mekik_option* rows, std::uint32_t n, std::uint32_t size, const std::string& indent) {
  for (std::uint32_t i = 0; i < n; ++i) {
    const mekik_option& o = option_at(rows, i, size);
    std::string line = indent + o.key + "  " + type_of(o);
    if (o.flags & MEKIK_OPT_LIST) line += " list";
    if (o.choices) line += " (" + std::string{o.choices} + ")";
    if (o.min <= o.max) line += " " + limit(o, o.min) + " .. " + limit(o, o.max);
    if (o.flags & MEKIK_OPT_REQUIRED) line += ", required";
    else if (o.fallback) line += ", default " + std::string{o.fallback};
    if (o.flags & MEKIK_OPT_DEPRECATED) line += ", deprecated";
    std::printf("%s\n%s    %s\n", line.c_str(), indent.c_str(), o.doc ? o.doc : "");
    if (o.n_fields > 0) print_options(o.fields, o.n_fields, o.field_size, indent + "    ");
  }
}

// The table of a pipeline that uses components of this kind; nullptr: none.
const config::CoreTable* table_of(const std::string& kind) {
  for (const config::CoreTable& table : config::core_tables())
    if (table.kind != nullptr && table.kind == kind) return &table;
  return nullptr;
}

// How a backend stores keys and values.
void print_kv_forms(const mekik_component& component) {
  const std::vector<mekik_kv_form> forms = plugin::kv_forms(component);
  if (!forms.empty()) std::puts("  keys and values (kv in [cache]), the first where \"auto\" has no reason for another:");
  for (const mekik_kv_form& form : forms) std::printf("    %-10s %s\n", form.name, form.doc != nullptr ? form.doc : "");
}
json::array kv_forms_json(const mekik_component& component) {
  json::array out;
  for (const mekik_kv_form& form : plugin::kv_forms(component))
    out.push_back(json::object{{"name", form.name}, {"doc", form.doc != nullptr ? form.doc : ""}, {"bits", form.bits_per_value}});
  return out;
}

// The devices of a backend, in the order of their numbers; of other kinds none.
std::vector<mekik_device_info> devices_of(const mekik_component& component) {
  std::vector<mekik_device_info> found;
  if (std::string_view{component.kind} != MEKIK_KIND_BACKEND) return found;
  for (std::uint32_t i = 0; i < 64; ++i) {
    mekik_device_info info{};
    info.struct_size = sizeof info;
    if (static_cast<const mekik_backend*>(component.table)->probe(i, &info) != MEKIK_OK) break;
    info.name[sizeof info.name - 1] = info.uid[sizeof info.uid - 1] = '\0';
    found.push_back(info);
  }
  return found;
}
void print_devices(const mekik_component& component) {
  const std::vector<mekik_device_info> devices = devices_of(component);
  const std::string why = devices.empty() ? plugin::take_failure() : "";
  if (!why.empty()) std::printf("  no device: %s\n", why.c_str());
  if (!devices.empty()) std::puts("  devices:");
  for (std::size_t i = 0; i < devices.size(); ++i)
    std::printf("    %zu  %s (%s), %.1f of %.1f GiB free\n", i, devices[i].name, devices[i].uid,
                static_cast<double>(devices[i].bytes_free) / 0x1p30, static_cast<double>(devices[i].bytes_total) / 0x1p30);
}
json::array devices_json(const mekik_component& component) {
  json::array out;
  for (const mekik_device_info& d : devices_of(component))
    out.push_back(json::object{{"name", d.name}, {"uid", d.uid}, {"bytes_total", d.bytes_total}, {"bytes_free", d.bytes_free}});
  plugin::take_failure();  // that the list has ended is no fault
  return out;
}

std::string in_brackets(const config::CoreTable& table) {
  return table.list ? "[[" + std::string{table.name} + "]]" : "[" + std::string{table.name} + "]";
}

json::array options_json(const mekik_option* rows, std::uint32_t n, std::uint32_t size) {
  json::array out;
  for (std::uint32_t i = 0; i < n; ++i) out.push_back(option_json(option_at(rows, i, size)));
  return out;
}

int run_plugins(const Arguments& arguments) {
  Session session;
  std::vector<std::string> problems;
  const auto installed = session.registry().installed(&problems);
  if (arguments.flag("json")) {
    json::array rows;
    for (const auto& c : installed)
      rows.push_back(json::object{{"kind", short_kind(c.raw->kind)},
                                  {"name", c.raw->name},
                                  {"version", c.raw->version},
                                  {"summary", c.raw->summary},
                                  {"library", c.library},
                                  {"kv", kv_forms_json(*c.raw)}});
    json::array bad(problems.begin(), problems.end());
    std::puts(json::serialize(json::object{{"components", std::move(rows)}, {"problems", std::move(bad)}}).c_str());
  } else {
    for (const auto& c : installed) {
      std::string forms;
      for (const mekik_kv_form& form : plugin::kv_forms(*c.raw)) forms += std::string{forms.empty() ? " KV in " : ", "} + form.name;
      std::printf("%-10s %-12s %-8s %s%s\n", short_kind(c.raw->kind).c_str(), c.raw->name, c.raw->version, c.raw->summary, forms.c_str());
    }
  }
  for (const std::string& problem : problems) std::fprintf(stderr, "mekik: %s\n", problem.c_str());
  return problems.empty() ? kSuccess : kFailed;
}

int run_describe(const Arguments& arguments) {
  Session session;
  const std::string& wanted = arguments.operands[0];
  const std::size_t slash = wanted.find('/');
  const std::string kind = slash == std::string::npos ? "" : wanted.substr(0, slash),
                    name = slash == std::string::npos ? wanted : wanted.substr(slash + 1);
  std::vector<std::string> problems, names;
  json::array found;
  for (const auto& c : session.registry().installed(&problems)) {
    names.emplace_back(c.raw->name);
    const config::CoreTable* table = table_of(short_kind(c.raw->kind));
    if (name != c.raw->name || (!kind.empty() && kind != short_kind(c.raw->kind) && (table == nullptr || kind != table->name))) continue;
    found.push_back(json::object{{"kind", short_kind(c.raw->kind)},
                                 {"name", c.raw->name},
                                 {"options", options_json(c.raw->options, c.raw->n_options, c.raw->option_size)}});
    if (json::array forms = kv_forms_json(*c.raw); !forms.empty()) found.back().as_object()["kv"] = std::move(forms);
    if (std::string_view{c.raw->kind} == MEKIK_KIND_BACKEND) found.back().as_object()["devices"] = devices_json(*c.raw);
    if (table != nullptr) found.back().as_object()["core_options"] = options_json(table->rows.first, table->rows.count, table->rows.size);
    if (arguments.flag("json")) continue;
    std::printf("%s %s, version %s\n  %s\n  from %s\n", short_kind(c.raw->kind).c_str(), c.raw->name, c.raw->version, c.raw->summary,
                c.library.c_str());
    std::puts(c.raw->n_options == 0 ? "  no options\n" : "  options:");
    print_options(c.raw->options, c.raw->n_options, c.raw->option_size, "    ");
    print_kv_forms(*c.raw);
    print_devices(*c.raw);
    if (table == nullptr) continue;
    std::printf("  besides, as every %s of %s in a pipeline:\n", table->kind, in_brackets(*table).c_str());
    print_options(table->rows.first, table->rows.count, table->rows.size, "    ");
  }
  for (const config::CoreTable& table : config::core_tables()) {
    names.emplace_back(table.name);
    if (wanted != table.name) continue;
    found.push_back(
        json::object{{"table", table.name}, {"core_options", options_json(table.rows.first, table.rows.count, table.rows.size)}});
    if (arguments.flag("json")) continue;
    std::printf("%s of a pipeline\n  options:\n", in_brackets(table).c_str());
    print_options(table.rows.first, table.rows.count, table.rows.size, "    ");
    if (table.kind != nullptr) std::printf("  and those of the %s that it uses\n", table.kind);
  }
  if (found.empty()) {
    const auto near = closest(name, names);
    throw misused("no component or table " + mekik::quoted(wanted) + " is there" + (near ? "; did you mean \"" + *near + "\"?" : "") +
                  " (mekik plugins lists them)");
  }
  if (arguments.flag("json")) std::puts(json::serialize(found).c_str());
  return kSuccess;
}

int run_schema(const Arguments&) {
  Session session;
  std::vector<std::string> problems;
  std::vector<const mekik_component*> components;
  for (const auto& c : session.registry().installed(&problems)) components.push_back(c.raw);
  for (const std::string& problem : problems) std::fprintf(stderr, "mekik: %s\n", problem.c_str());
  std::puts(config::json_schema(components).c_str());
  return problems.empty() ? kSuccess : kFailed;
}

void declare_json(po::options_description& o) { o.add_options()("json", po::bool_switch(), "as JSON"); }

}  // namespace

const Verb kPlugins{"plugins", "", "What is installed.", "mekik plugins", declare_json, 0, 0, false, run_plugins};
const Verb kDescribe{"describe",
                     "NAME",
                     "The options of a component, or of a table of a pipeline: type, range, default, meaning.",
                     "mekik describe backend/cpu",
                     declare_json,
                     1,
                     1,
                     false,
                     run_describe};
const Verb kSchema{"schema",
                   "",
                   "The JSON Schema of pipeline files, for editors.",
                   "mekik schema > pipeline.schema.json",
                   [](po::options_description&) {},
                   0,
                   0,
                   false,
                   run_schema};

}  // namespace mekik::app
