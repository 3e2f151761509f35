// The JSON Schema (2020-12) of pipeline files, for editors.
#include <cmath>

#include "base/json.hpp"
#include "base/text.hpp"
#include "config/core_rows.hpp"
#include "config/pipeline.hpp"
#include "config/spelling.hpp"

namespace mekik::config {

namespace {

json::value to_json(const Value& value) {
  switch (value.kind) {
    case Kind::boolean:
      return value.boolean;
    case Kind::integer:
      return value.integer;
    case Kind::real:
      return value.real;
    case Kind::list: {
      json::array out;
      for (const Value& element : value.list) out.push_back(to_json(element));
      return out;
    }
    case Kind::table: {
      json::object out;
      for (const auto& [key, member] : value.table) out[key] = to_json(member);
      return out;
    }
    default:
      return json::value(value.text);
  }
}

json::value limit(double number) {
  const bool whole = std::abs(number) < 9e15 && number == std::floor(number);
  return whole ? json::value(static_cast<std::int64_t>(number)) : json::value(number);
}

json::object properties_of(const Rows& rows, json::array& required);

json::object closed_table(const Rows& rows) {
  json::array required;
  json::object out{{"type", "object"}, {"additionalProperties", false}};
  out["properties"] = properties_of(rows, required);
  if (!required.empty()) out["required"] = required;
  return out;
}

// The schema of one value, without what concerns the option as a whole.
json::object item_schema(const mekik_option& row) {
  const bool limited = (row.flags & MEKIK_OPT_LIST) == 0 && row.min <= row.max;
  json::object out;
  switch (row.type) {
    case MEKIK_OPT_BOOL:
      out["type"] = "boolean";
      break;
    case MEKIK_OPT_INT:
    case MEKIK_OPT_REAL:
      out["type"] = row.type == MEKIK_OPT_INT ? "integer" : "number";
      if (limited) out["minimum"] = limit(row.min);
      if (limited && std::isfinite(row.max)) out["maximum"] = limit(row.max);
      break;
    case MEKIK_OPT_CHOICE: {
      json::array names;
      for (const std::string& name : split(row.choices, '|')) names.emplace_back(name);
      out["enum"] = names;
      break;
    }
    case MEKIK_OPT_SIZE:
      out["type"] = json::array{"integer", "string"};
      if (limited) out["minimum"] = limit(row.min);
      if (limited && std::isfinite(row.max)) out["maximum"] = limit(row.max);
      out["pattern"] = "^[0-9]+(\\.[0-9]*)?(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB)?$";
      break;
    case MEKIK_OPT_DURATION:
      out["type"] = "string";
      out["pattern"] = "^[0-9]+(\\.[0-9]*)?(ns|us|ms|s|m|h)$";
      break;
    case MEKIK_OPT_TABLE:
      out = closed_table(fields_of(row));
      break;
    default:
      out["type"] = "string";
      if (row.type != MEKIK_OPT_TEXT) {
        out["minLength"] = 1;  // paths and names
      } else if (limited) {
        out["minLength"] = limit(row.min);
        out["maxLength"] = limit(row.max);
      }
  }
  return out;
}

json::object option_schema(const mekik_option& row) {
  json::object out = item_schema(row);
  if ((row.flags & MEKIK_OPT_LIST) != 0) {
    out = json::object{{"type", "array"}, {"items", out}};
    if (row.min <= row.max) {
      out["minItems"] = limit(row.min);
      out["maxItems"] = limit(row.max);
    }
  }
  if (row.doc != nullptr) out["description"] = row.doc;
  if (row.fallback != nullptr && row.fallback[0] != '\0') out["default"] = to_json(parse_loose(row.fallback));
  if ((row.flags & MEKIK_OPT_DEPRECATED) != 0) out["deprecated"] = true;
  if ((row.flags & MEKIK_OPT_SECRET) != 0) out["writeOnly"] = true;
  return out;
}

json::object properties_of(const Rows& rows, json::array& required) {
  json::object out;
  for (std::uint32_t i = 0; i < rows.count; ++i) {
    out[rows[i].key] = option_schema(rows[i]);
    if ((rows[i].flags & MEKIK_OPT_REQUIRED) != 0) required.emplace_back(rows[i].key);
  }
  return out;
}

// A slot that uses one component. `whole`: the table stands for itself; otherwise another file may hold the rest of it.
json::object variant(const CoreTable& core, const mekik_component& component, bool whole) {
  json::array required;
  json::object properties = properties_of(core.rows, required);
  for (const auto& member : properties_of(rows_of(component), required)) properties[member.key()] = member.value();
  json::object use{{"const", component.name}};
  if (component.summary != nullptr) use["description"] = component.summary;
  const bool is_default = core.default_use != nullptr && std::string_view{core.default_use} == component.name;
  if (is_default) use["default"] = component.name;
  else required.insert(required.begin(), "use");
  properties["use"] = use;
  json::object out{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (component.summary != nullptr) out["title"] = std::string{component.name} + ": " + component.summary;
  if (whole && !required.empty()) out["required"] = required;
  return out;
}

// A component of a library that the pipeline names itself: its options are not known here.
json::object variant_of_file(const CoreTable& core) {
  json::array ignored;
  return {{"type", "object"}, {"properties", properties_of(core.rows, ignored)}, {"required", json::array{"use", "file"}}};
}

json::object slot_schema(const CoreTable& core, const std::vector<const mekik_component*>& components, bool whole) {
  json::array variants;
  for (const mekik_component* component : components)
    if (kind_of(component->kind) == core.kind) variants.push_back(variant(core, *component, whole));
  variants.push_back(variant_of_file(core));
  json::object out{{"description", core.doc}, {"anyOf", variants}};
  if (!core.list) return out;
  json::object list{{"type", "array"}, {"description", core.doc}, {"items", json::object{{"anyOf", variants}}}};
  if (std::string_view{core.name} == "sampler") list["minItems"] = 1;
  return list;
}

json::object table_schema(const CoreTable& core, bool whole) {
  json::object out = closed_table(core.rows);
  if (!whole) out.erase("required");
  out["description"] = core.doc;
  return out;
}

}  // namespace

// A file that extends another may leave out what the other says, so the top level has the lax schema of every table, and demands
// the strict one only where nothing is extended. The elements of lists are always whole: lists are not merged.
std::string json_schema(const std::vector<const mekik_component*>& components) {
  json::object definitions, lax, strict;
  for (const CoreTable& core : core_tables()) {
    const std::string name = core.name;
    const auto schema = [&](bool whole) { return core.kind == nullptr ? table_schema(core, whole) : slot_schema(core, components, whole); };
    const bool differs = !core.list && (core.kind != nullptr || schema(true) != schema(false));
    definitions[name] = schema(true);
    if (differs) definitions[name + "_part"] = schema(false);
    lax[name] = json::object{{"$ref", "#/$defs/" + name + (differs ? "_part" : "")}};
    if (differs) strict[name] = json::object{{"$ref", "#/$defs/" + name}};
  }
  const json::object extends{{"required", json::array{"pipeline"}},
                             {"properties", json::object{{"pipeline", json::object{{"required", json::array{"extends"}}}}}}};
  const json::object root{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                          {"title", "mekik pipeline"},
                          {"type", "object"},
                          {"properties", lax},
                          {"additionalProperties", false},
                          {"if", extends},
                          {"then", true},
                          {"else", json::object{{"required", json::array{"model"}}, {"properties", strict}}},
                          {"$defs", definitions}};
  return json::serialize(root);
}

}  // namespace mekik::config
