// What the file itself says, before any of it runs.
#pragma once
#include <string>
#include <vector>

namespace mekik::validate {

struct ElfFacts {
  std::string wrong;  // it is no library; the rest is empty then
  std::vector<std::string> exported, needed;
  std::string rpath;
  bool text_relocations = false, executable_stack = false, static_tls = false;
};
ElfFacts elf_facts(const std::string& file);

}  // namespace mekik::validate
