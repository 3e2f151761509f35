// Any bytes as a safetensors file: see loader.hpp.
#include "loader.hpp"

extern "C" const mekik_plugin mekik_plugin_v0_loader_safetensors;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mekik::fuzz::Loader loader{mekik_plugin_v0_loader_safetensors, "file:../x", true};
  return loader.run(data, size);
}
