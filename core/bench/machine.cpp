#include "bench/machine.hpp"

#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/text.hpp"
#include "engine/memory_plan.hpp"

namespace mekik::bench {

Machine this_machine() {
  Machine out;
  std::ifstream file{"/proc/cpuinfo"};
  for (std::string line; out.processor.empty() && std::getline(file, line);)
    if (const auto colon = line.find(": "); line.rfind("model name", 0) == 0 && colon != std::string::npos)
      out.processor = line.substr(colon + 2);
  out.cores = std::thread::hardware_concurrency();
  out.memory = engine::machine_memory();
  if (utsname name{}; uname(&name) == 0) out.system = std::string{name.sysname} + " " + name.release + " " + name.machine;
  return out;
}

std::string Machine::id() const {
  return sha256_hex(processor + "\n" + std::to_string(cores) + "\n" + std::to_string(memory) + "\n" + system).substr(0, 12);
}

double load() {
  double minute = 0;
  return getloadavg(&minute, 1) == 1 ? minute : -1;
}

}  // namespace mekik::bench
