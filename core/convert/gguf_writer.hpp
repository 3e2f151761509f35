// Writing GGUF 3. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/status.hpp"

namespace mekik::convert {

// The key-value section while it grows.
class GgufKeys {
 public:
  void text(std::string_view key, std::string_view value);
  void u32(std::string_view key, std::uint32_t value);
  void f32(std::string_view key, float value);
  void boolean(std::string_view key, bool value);
  void texts(std::string_view key, const std::vector<std::string>& values);
  void floats(std::string_view key, const std::vector<float>& values);
  void u8s(std::string_view key, std::string_view bytes);
  void integers(std::string_view key, const std::vector<std::int32_t>& values);
  // A constant of a page. Whole numbers become u32 (i32 where negative), but those of a key that holds reals in every file.
  Status json(std::string_view key, const json::value& value);

  std::uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void begin(std::string_view key, std::uint32_t type);
  Status list(std::string_view key, const json::array& values);
  std::string bytes_;
  std::uint64_t count_ = 0;
};

struct GgufTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // row-major
  std::uint32_t type = 0;           // ggml's number
  std::uint64_t bytes = 0;
};

// A file that is written front to back.
class OutFile {
 public:
  static Result<OutFile> create(const std::filesystem::path& path);
  Status write(const void* data, std::uint64_t bytes);
  Status zeros(std::uint64_t bytes);
  Status close();  // nothing is certain before

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::string path_;
};

inline constexpr std::uint64_t kGgufAlignment = 32;
// Everything before the data. The data follow in the order of `tensors`, each padded to kGgufAlignment.
Status write_gguf_head(OutFile& out, const GgufKeys& keys, const std::vector<GgufTensor>& tensors);

}  // namespace mekik::convert
