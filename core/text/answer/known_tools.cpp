#include "text/answer/known_tools.hpp"

#include <algorithm>

namespace mekik::text {

namespace {

constexpr int kMaxSchemaDepth = 8;

void add_type(const json::value& name, ParameterType& to) {
  if (!name.is_string()) return;
  if (name == "string") to.text = true;
  else if (name == "null") to.nothing = true;
  else to.other = true;
}

// "type", "enum", "const" and the alternatives of a JSON schema.
void add_schema(const json::value& schema, ParameterType& to, int depth) {
  if (depth > kMaxSchemaDepth) return;
  if (const json::value* type = json::find(schema, "type")) {
    if (!type->is_array()) add_type(*type, to);
    else
      for (const json::value& one : type->get_array()) add_type(one, to);
    return;
  }
  const auto add_value = [&](const json::value& value) { (value.is_string() ? to.text : value.is_null() ? to.nothing : to.other) = true; };
  if (const json::value* only = json::find(schema, "const")) add_value(*only);
  if (const json::value* values = json::find(schema, "enum"); values != nullptr && values->is_array())
    for (const json::value& value : values->get_array()) add_value(value);
  for (const char* word : {"anyOf", "oneOf", "allOf"})
    if (const json::value* list = json::find(schema, word); list != nullptr && list->is_array())
      for (const json::value& one : list->get_array()) add_schema(one, to, depth + 1);
}

}  // namespace

KnownTools::KnownTools(const json::array& tools) {
  for (const json::value& tool : tools) {
    const json::value* function = json::find(tool, "function");
    const json::value* name = function == nullptr ? nullptr : json::find(*function, "name");
    if (name == nullptr || !name->is_string()) continue;
    std::vector<Parameter>& parameters = functions_[std::string{name->get_string()}];
    const json::value* schema = json::find(*function, "parameters");
    const json::value* properties = schema == nullptr ? nullptr : json::find(*schema, "properties");
    if (properties == nullptr || !properties->is_object()) continue;
    for (const auto& member : properties->get_object()) {
      parameters.push_back({std::string{member.key()}, {}});
      add_schema(member.value(), parameters.back().type, 0);
    }
  }
}

bool KnownTools::has(std::string_view function) const { return functions_.find(function) != functions_.end(); }

std::optional<ParameterType> KnownTools::parameter(std::string_view function, std::string_view name) const {
  const auto of = functions_.find(function);
  if (of == functions_.end()) return std::nullopt;
  const auto at = std::find_if(of->second.begin(), of->second.end(), [name](const Parameter& one) { return one.name == name; });
  if (at == of->second.end()) return std::nullopt;
  return at->type;
}

std::string_view KnownTools::parameter_at(std::string_view function, std::size_t position) const {
  const auto of = functions_.find(function);
  if (of == functions_.end() || position >= of->second.size()) return {};
  return of->second[position].name;
}

}  // namespace mekik::text
