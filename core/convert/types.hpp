// The number types that a converted tensor may have, and the making of their bytes.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "plugin/registry.hpp"

namespace mekik::convert {

struct Type {
  const char* name;      // "q8_0", also the scheme's
  std::uint32_t number;  // of ggml
  std::uint32_t file;    // general.file_type
  const char* dtype;     // of safetensors; nullptr: blocks
  std::uint32_t num;     // mekik_num; 0: blocks
};

const Type* find_type(const std::string& name);
const Type& type_of(std::uint32_t num);  // MEKIK_F32, _F16 or _BF16
std::string type_names(bool blocks);     // for messages

// Writes values as numbers of a type. Thread: any, after open.
class Encoder {
 public:
  // Blocks need the scheme's plugin, and one that can encode.
  static Result<Encoder> open(plugin::Registry& registry, const Type& type);
  const Type& type() const { return *type_; }
  bool fits(std::uint64_t columns) const { return columns % elems_ == 0; }
  std::uint64_t row_bytes(std::uint64_t columns) const { return columns / elems_ * bytes_; }
  // rows x columns of F32 to rows * row_bytes(columns).
  Status encode(const float* values, std::uint64_t rows, std::uint64_t columns, std::uint8_t* out) const;

 private:
  const Type* type_ = nullptr;
  plugin::Component component_;
  const mekik_scheme* scheme_ = nullptr;
  std::uint64_t elems_ = 1, bytes_ = 0;
};

}  // namespace mekik::convert
