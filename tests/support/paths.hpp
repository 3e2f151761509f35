// Where tests find things.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

namespace mekik::test {

inline std::filesystem::path from_environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}
inline std::filesystem::path source_directory() { return from_environment("MEKIK_SOURCE", "."); }
inline std::filesystem::path build_directory() { return from_environment("MEKIK_BUILD", "build/release"); }
// Cases from the field; absent on most machines, then the test that needs them skips itself (exit code 77, or says so).
inline std::filesystem::path cases_directory() {
  return from_environment("MEKIK_CASES", (source_directory() / ".." / "shared" / "cases").c_str());
}
// A scratch folder that is removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "mekik-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace mekik::test
