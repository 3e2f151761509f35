// Model files to try loaders with.
#pragma once
#include <string>
#include <vector>

namespace mekik::validate {

struct SampleFile {
  std::string path;    // a file, or a folder
  std::string main;    // the file whose bytes may be damaged
  bool given = false;  // by the user, as one that opens
};
std::string bytes_of(const std::string& path);
void write_file(const std::string& path, const std::string& bytes);
// Written into `folder`: a small GGUF file, a small folder of safetensors.
std::vector<SampleFile> known_formats(const std::string& folder);
// Beginnings of files that a library may be waiting for: short texts among its constants, the likeliest first.
std::vector<std::string> constants_of(const std::string& library);

}  // namespace mekik::validate
