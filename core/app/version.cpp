#include "app/version.hpp"

#include "app/session.hpp"

#ifndef MEKIK_VERSION
#error "CMake defines MEKIK_VERSION"
#endif

namespace mekik::app {

std::string version_text() {
  std::string out = "mekik " MEKIK_VERSION "\n  plugin ABI v0, minor " + std::to_string(MEKIK_ABI_MINOR) + "\n  compiler " __VERSION__ "\n";
  Session session;
  const auto cpu = session.registry().find("backend", "cpu");
  if (!cpu) return out + "  cpu backend: " + cpu.status().text + "\n";
  mekik_device_info info{};
  info.struct_size = sizeof info;
  if (cpu->table<mekik_backend>().probe(0, &info) != MEKIK_OK) return out + "  cpu backend: " + plugin::take_failure() + "\n";
  return out + "  cpu backend: " + info.name + "\n";
}

}  // namespace mekik::app
