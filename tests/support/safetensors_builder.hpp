// Writes safetensors files for tests, right or wrong on purpose.
#pragma once
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace mekik::test {

class SafetensorsBuilder {
 public:
  // Lies after the tensors before it.
  void tensor(const std::string& name, const std::string& dtype, const std::vector<std::uint64_t>& shape, const std::string& bytes) {
    std::string sizes;
    for (const std::uint64_t size : shape) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    header_ += (header_.empty() ? "" : ",") + ("\"" + name) + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + sizes +
               "],\"data_offsets\":[" + std::to_string(data_.size()) + "," + std::to_string(data_.size() + bytes.size()) + "]}";
    data_ += bytes;
  }
  std::string bytes() const { return file("{" + header_ + "}", data_); }
  void write(const std::filesystem::path& path) const { write_bytes(path, bytes()); }

  static std::string file(const std::string& header, const std::string& data) {
    std::string length(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i) & 255);
    return length + header + data;
  }
  static void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path, std::ios::binary}.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string header_, data_;
};

}  // namespace mekik::test
