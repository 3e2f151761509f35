// What was found, as text, JSON or JUnit.
#pragma once
#include <string>
#include <vector>

#include "run/process.hpp"

namespace mekik::validate {

struct Found {
  std::string component, check;
  Outcome outcome;
};
struct Report {
  std::string file;
  unsigned long long seed = 1;
  std::vector<Found> found;
  std::size_t count(Verdict verdict) const;
};
std::string as_text(const Found& found);
std::string summary(const Report& report);
std::string as_json(const Report& report);
std::string as_junit(const Report& report);

}  // namespace mekik::validate
