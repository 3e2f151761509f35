// Any bytes as a GGUF file: see loader.hpp.
#include "loader.hpp"

extern "C" const mekik_plugin mekik_plugin_v0_loader_gguf;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mekik::fuzz::Loader loader{mekik_plugin_v0_loader_gguf, "file:x", false};
  return loader.run(data, size);
}
