// Any bytes as a safetensors file: it opens or is refused with a reason; what it gives out lies within the file.
#include <mekik/plugin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/json.hpp"

extern "C" const mekik_plugin mekik_plugin_v0_loader_safetensors;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

bool said_why = false;

mekik_status remember(const mekik_host*, mekik_status code, mekik_str why) {
  said_why = why.len > 0;
  return code;
}

const mekik_host& fake_host() {
  static const mekik_host host = [] {
    mekik_host h{};
    h.struct_size = sizeof h;
    h.name = "fuzz";
    h.version = "0";
    h.fail = remember;
    h.service = [](const mekik_host*, const char*) -> const void* { return nullptr; };
    return h;
  }();
  return host;
}

const mekik_loader& loader() {
  static const mekik_loader& table = [&]() -> const mekik_loader& {
    require(mekik_plugin_v0_loader_safetensors.init(&fake_host(), {}) == MEKIK_OK);
    return *static_cast<const mekik_loader*>(mekik_plugin_v0_loader_safetensors.component(0)->table);
  }();
  return table;
}

mekik_str borrow(const std::string& text) { return {text.data(), text.size()}; }

void check_metadata(mekik_model_file* file) {
  for (const std::string key : {"format", "config", "tokenizer", "template", "file:../x"}) {
    mekik_str text{};
    const mekik_status status = loader().meta(file, borrow(key), &text);
    require(status == MEKIK_OK || status == MEKIK_E_INVALID);
    if (status != MEKIK_OK) continue;
    mekik::json::ParseLimits limits;
    limits.bytes = std::size_t{1} << 30;
    require(mekik::json::parse({text.ptr, text.len}, limits).ok());
  }
}

void check_tensors(mekik_model_file* file, std::size_t size) {
  const mekik_part* parts = nullptr;
  std::uint32_t n = 0, part_size = 0;
  require(loader().tensors(file, &parts, &n, &part_size) == MEKIK_OK);
  for (std::uint32_t i = 0; i < n; ++i) {
    const mekik_part& part = parts[i];
    require(part.rank >= 1 && part.rank <= 4 && part.bytes <= size);
    std::vector<char> bytes(part.bytes);
    require(loader().read(file, i, 0, bytes.data(), part.bytes) == MEKIK_OK);
    require(loader().read(file, i, 1, bytes.data(), part.bytes + 1) == MEKIK_E_INVALID);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int descriptor = memfd_create("safetensors", 0);
  require(descriptor >= 0 && write(descriptor, data, size) == static_cast<ssize_t>(size));
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  mekik_model_file* file = nullptr;
  said_why = false;
  if (loader().open(&fake_host(), borrow(path), &file) == MEKIK_OK) {
    check_metadata(file);
    check_tensors(file, size);
    loader().close(file);
  } else {
    require(said_why);
  }
  close(descriptor);
  return 0;
}
