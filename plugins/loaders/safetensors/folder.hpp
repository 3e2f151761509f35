// Which files of a folder make up its model.
#pragma once
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

namespace mekik_safetensors {

namespace fs = std::filesystem;

struct Folder {
  fs::path root;
  bool has_config = false;
  std::vector<std::string> shards;                        // names of files in root; all are there
  std::vector<std::string> modules;                       // folders in root with linears behind the model (sentence-transformers' Dense)
  std::string index;                                      // the file that lists them, or empty
  std::unordered_map<std::string, std::string> shard_of;  // what the index says
};

// `path`: a folder, a .safetensors file in it, or its index. Throws mekik::Error with what is missing and what to do.
Folder find_model(const std::string& path);

bool is_there(const fs::path& path);  // and may be looked at

// The whole of a file, at most `limit` bytes. Throws mekik::Error; a Git LFS pointer is refused by name.
std::string read_text(const fs::path& path, std::uint64_t limit);

}  // namespace mekik_safetensors
