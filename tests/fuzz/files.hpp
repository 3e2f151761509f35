// Input as files: a fuzz target of something that reads paths gets a folder in memory of its own, and fills it anew for each input.
#pragma once
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mekik::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

class Folder {
 public:
  Folder() {
    const char* memory = "/dev/shm";
    std::string name = std::string{access(memory, W_OK) == 0 ? memory : "/tmp"} + "/mekik-fuzz-XXXXXX";
    require(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  std::string write(const std::string& name, std::string_view text) const {
    const std::string full = path_ + "/" + name;
    std::FILE* file = std::fopen(full.c_str(), "wb");
    require(file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size());
    std::fclose(file);
    return full;
  }

 private:
  std::string path_;
};

// The input's pieces between zero bytes.
inline std::vector<std::string_view> pieces(std::string_view input) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t end = input.find('\0');
    out.push_back(input.substr(0, end));
    if (end == std::string_view::npos) return out;
    input.remove_prefix(end + 1);
  }
}

}  // namespace mekik::fuzz
