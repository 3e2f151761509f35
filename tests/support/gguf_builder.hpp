// Writes GGUF files for tests, right or wrong on purpose.
#pragma once
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mekik::test {

class GgufBuilder {
 public:
  enum Type : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

  std::uint32_t version = 3;
  std::uint64_t alignment = 32;

  template <class T>
  static std::string raw(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string text(std::string_view value) { return raw<std::uint64_t>(value.size()) + std::string{value}; }

  void key(std::string_view name, Type type, const std::string& value) {
    keys_ += text(name) + raw<std::uint32_t>(type) + value;
    ++n_keys_;
  }
  void text_key(std::string_view name, std::string_view value) { key(name, string, text(value)); }
  void array_key(std::string_view name, Type of, std::uint64_t count, const std::string& elements) {
    key(name, array, raw<std::uint32_t>(of) + raw(count) + elements);
  }
  // `ne` as the file has it: the contiguous size first. The data follow those of the tensors before, aligned.
  void tensor(std::string_view name, std::uint32_t type, const std::vector<std::uint64_t>& ne, const std::string& bytes) {
    tensor_at(name, type, ne, data_.size());
    data_ += bytes;
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
  }
  void tensor_at(std::string_view name, std::uint32_t type, const std::vector<std::uint64_t>& ne, std::uint64_t offset) {
    tensors_ += text(name) + raw(static_cast<std::uint32_t>(ne.size()));
    for (const std::uint64_t size : ne) tensors_ += raw(size);
    tensors_ += raw(type) + raw(offset);
    ++n_tensors_;
  }
  std::string bytes() const {
    std::string out = "GGUF" + raw(version) + raw(n_tensors_) + raw(n_keys_) + keys_ + tensors_;
    if (n_tensors_ > 0) out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + data_;
  }
  void write(const std::filesystem::path& path) const { write_bytes(path, bytes()); }
  static void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream{path, std::ios::binary}.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string keys_, tensors_, data_;
  std::uint64_t n_keys_ = 0, n_tensors_ = 0;
};

// Row-major floats as the bytes of an F32 tensor.
inline std::string float_bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace mekik::test
