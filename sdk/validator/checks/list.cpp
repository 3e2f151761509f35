#include "checks/checks.hpp"

namespace mekik::validate {

std::vector<Check> all_checks() {
  std::vector<Check> out;
  for (const auto& group :
       {file_checks(), descriptor_checks(), behaviour_checks(), memory_checks(), hostile_checks(), kind_checks(), backend_checks()})
    out.insert(out.end(), group.begin(), group.end());
  return out;
}

}  // namespace mekik::validate
