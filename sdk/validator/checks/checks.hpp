// The list of checks. Each runs in a process of its own.
#pragma once
#include <string>
#include <vector>

#include "support/subject.hpp"

namespace mekik::validate {

struct Check {
  const char* name;  // group.what
  const char* doc;
  const char* kind;  // "" all components, "backend", ...; nullptr: the file as a whole
  void (*run)(const Task& task, const std::string& component);
};

std::vector<Check> file_checks();
std::vector<Check> descriptor_checks();
std::vector<Check> behaviour_checks();
std::vector<Check> memory_checks();
std::vector<Check> hostile_checks();
std::vector<Check> kind_checks();  // samplers, loaders
std::vector<Check> backend_checks();
std::vector<Check> all_checks();

}  // namespace mekik::validate
