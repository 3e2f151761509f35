// The backend under test, from the environment: MEKIK_TEST_BACKEND=cpu, MEKIK_TEST_SETTINGS="math=exact,...",
// MEKIK_TEST_TOLERANCE=exact (the bounds of the cases) or quantized (activations may be rounded where weights are).
#pragma once
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>

#include "session.hpp"

namespace mekik::test {

inline std::string from_setting(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}
inline Backend& subject() {
  static const std::unique_ptr<Backend> backend = [] {
    std::vector<std::string> settings;
    std::istringstream text{from_setting("MEKIK_TEST_SETTINGS", "")};
    for (std::string item; std::getline(text, item, ',');) settings.push_back(item);
    return std::make_unique<Backend>(from_setting("MEKIK_TEST_BACKEND", "reference"), settings);
  }();
  return *backend;
}
inline Backend& oracle() {
  static Backend backend{"reference", {}};
  return subject().name() == "reference" ? subject() : backend;
}
inline bool quantized() { return from_setting("MEKIK_TEST_TOLERANCE", "exact") == "quantized"; }

inline std::vector<std::int32_t> random_tokens(std::size_t n, std::uint64_t seed) {
  Random random{seed};
  std::vector<std::int32_t> tokens(n);
  for (auto& t : tokens) t = static_cast<std::int32_t>(random() % 62);  // 62 and 63 are NaN and infinite
  return tokens;
}

}  // namespace mekik::test
