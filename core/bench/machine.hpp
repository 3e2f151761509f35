// The machine that a benchmark ran on.
#pragma once
#include <cstdint>
#include <string>

namespace mekik::bench {

struct Machine {
  std::string processor;     // "AMD EPYC 9554 64-Core Processor"; empty: the system does not say
  std::uint32_t cores = 0;   // that this process may use
  std::uint64_t memory = 0;  // bytes, likewise
  std::string system;        // "Linux 6.1.0 x86_64"
  std::string id() const;    // 12 hexadecimal digits: equal where results may be compared
};
Machine this_machine();
// Of all programs together: how many wanted a core, on average over the last minute. Negative: not known.
double load();

}  // namespace mekik::bench
