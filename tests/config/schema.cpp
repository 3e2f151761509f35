// Prints the JSON Schema of the components that the files in this folder use.
#include <cstdio>

#include "support/components.hpp"

int main() {
  std::vector<const mekik_component*> components;
  for (const mekik_component& one : mekik::test::fake_components()) components.push_back(&one);
  std::puts(mekik::config::json_schema(components).c_str());
}
