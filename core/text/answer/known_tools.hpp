// The functions that a request offers to the model.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace mekik::text {

// What a format without types needs to know of an argument.
struct ParameterType {
  bool text = false;     // the schema allows a text
  bool other = false;    // and something else
  bool nothing = false;  // and null
};

class KnownTools {
 public:
  KnownTools() = default;
  explicit KnownTools(const json::array& tools);  // in OpenAI's form
  bool has(std::string_view function) const;
  bool empty() const { return functions_.empty(); }
  std::optional<ParameterType> parameter(std::string_view function, std::string_view name) const;
  // The name of the parameter at this position, as the schema lists them; empty: there is none.
  std::string_view parameter_at(std::string_view function, std::size_t position) const;

 private:
  struct Parameter {
    std::string name;
    ParameterType type;
  };
  std::map<std::string, std::vector<Parameter>, std::less<>> functions_;
};

}  // namespace mekik::text
