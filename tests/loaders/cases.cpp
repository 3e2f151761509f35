// Damaged GGUF files from the field: each that a loader can refuse gives one clear line; the others open.
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "open_model.hpp"

using namespace mekik;
namespace fs = std::filesystem;

namespace {

// What the line must say. Files that are not here are sound as files; what they say is wrong for the tokenizer or the page.
const std::map<std::string, std::string> kRefused{
    {"magic_only.gguf", "the file has 4 bytes"},
    {"empty.gguf", "is empty"},
    {"lfs_pointer.gguf", "Git LFS pointer"},
    {"bigendian_ver.gguf", "big-endian"},
    {"ver99.gguf", "version 99"},
    {"dim_overflow.gguf", "\"token_embd.weight\""},
    {"dim_overflow2.gguf", "\"token_embd.weight\""},
    {"dim_negative.gguf", "\"token_embd.weight\""},
    {"align0.gguf", "general.alignment"},
    {"align3.gguf", "general.alignment"},
    {"align_huge.gguf", "general.alignment"},
    {"tensor_dup.gguf", "\"output_norm.weight\" occurs twice"},
    {"tensor_longname.gguf", "4096 bytes"},
    {"truncated_header.gguf", "truncated"},
    {"truncated_data.gguf", "need 77568 bytes, the file has 73472"},
};

}  // namespace

int main() {
  const fs::path folder = test::cases_directory() / "malformed";
  if (!fs::exists(folder)) {
    std::printf("skipped: no %s\n", folder.c_str());
    return 77;
  }
  test::Plugins plugins;
  int failures = 0;
  std::size_t refused = 0, opened = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator{folder}) {
    if (entry.path().extension() != ".gguf") continue;
    const std::string name = entry.path().filename().string(), path = entry.path().string();
    const std::string error = test::OpenModel{plugins, "gguf", path}.status.text;
    const auto expected = kRefused.find(name);
    const bool right = expected == kRefused.end() ? error.empty()
                                                  : error.find(expected->second) != std::string::npos &&
                                                        error.find(name) != std::string::npos && error.find('\n') == std::string::npos;
    ++(expected == kRefused.end() ? opened : refused);
    if (right) continue;
    ++failures;
    std::printf("FAILED %s: %s\n", name.c_str(), error.c_str());
  }
  std::printf("%zu refused, %zu opened, %d failures\n", refused, opened, failures);
  return failures == 0 && refused == kRefused.size() ? 0 : 1;
}
