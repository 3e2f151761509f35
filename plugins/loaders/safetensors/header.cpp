#include "header.hpp"

#include <algorithm>
#include <limits>
#include <mekik/plugin.hpp>

#include <mekik/text.hpp>
#include "header_json.hpp"

namespace mekik_safetensors {

namespace {

using mekik::loaders::shown;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // as the reference implementation
constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void refuse(const File& file, const std::string& why) { throw mekik::Error{MEKIK_E_INVALID, file.path() + ": " + why}; }

std::uint64_t header_length(const File& file) {
  if (file.bytes() == 0) refuse(file, "the file is empty; fetch it again");
  if (file.is_lfs_pointer()) refuse(file, mekik::loaders::kLfsPointer);
  if (file.bytes() < 8)
    refuse(file, "the file has " + std::to_string(file.bytes()) +
                     " bytes; a safetensors file begins with 8 that give its header's length; it is truncated or damaged, fetch it again");
  std::uint8_t head[8];
  file.read(0, head, sizeof head);
  if (head[0] == 'P' && head[1] == 'K' && head[2] <= 8)
    refuse(file, "is a PyTorch file (a zip archive), not safetensors, whatever its name says");
  if (std::memcmp(head, "GGUF", 4) == 0) refuse(file, "is a GGUF file, whatever its name says; rename it to .gguf");
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | head[i];
  if (length > kMaxHeader)
    refuse(file, "claims a header of " + std::to_string(length) + " bytes; at most " + std::to_string(kMaxHeader) +
                     " are read; it is damaged or not safetensors");
  if (length > file.bytes() - 8)
    refuse(file, "claims a header of " + std::to_string(length) + " bytes, but only " + std::to_string(file.bytes() - 8) +
                     " follow; it is truncated or damaged, fetch it again");
  return length;
}

std::string shape_text(const TensorEntry& tensor) {
  std::string out;
  for (const std::uint64_t size : tensor.shape) out += (out.empty() ? "[" : ", ") + std::to_string(size);
  return (out.empty() ? "[" : out) + "]";
}

// Bytes that the shape takes. A size of 0 makes it empty, whatever the others are.
std::uint64_t needed_bytes(const File& file, const TensorEntry& tensor) {
  std::uint64_t bytes = tensor.dtype->bytes;
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0u) != tensor.shape.end()) return 0;
  for (const std::uint64_t size : tensor.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > kMaxBytes)
      refuse(file, "tensor " + shown(tensor.name) + " has the shape " + shape_text(tensor) + ", whose size in bytes does not fit 63 bits");
  return bytes;
}

void check_shape(const File& file, const TensorEntry& tensor) {
  for (const std::uint64_t size : tensor.shape)
    if (size > kMaxBytes) refuse(file, "tensor " + shown(tensor.name) + " has a size of " + std::to_string(size));
  const std::uint64_t needed = needed_bytes(file, tensor);
  if (needed != tensor.bytes)
    refuse(file, "tensor " + shown(tensor.name) + " has the shape " + shape_text(tensor) + " of " + tensor.dtype->name + ", which is " +
                     std::to_string(needed) + " bytes, but its data_offsets cover " + std::to_string(tensor.bytes));
}

// `begin` becomes a place in the file. Sorted by data, each must begin where the one before ends, and the last end with the file.
void place(const File& file, std::vector<TensorEntry>& tensors, std::uint64_t data) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorEntry& a, const TensorEntry& b) { return a.begin != b.begin ? a.begin < b.begin : a.bytes < b.bytes; });
  std::uint64_t end = 0;
  const TensorEntry* before = nullptr;
  for (TensorEntry& tensor : tensors) {
    if (tensor.begin < end) refuse(file, "tensors " + shown(before->name) + " and " + shown(tensor.name) + " overlap in the file");
    if (tensor.begin > end)
      refuse(file, "has a hole of " + std::to_string(tensor.begin - end) + " bytes before tensor " + shown(tensor.name) +
                       ", which the format does not allow; it is damaged, fetch it again");
    end = tensor.begin + tensor.bytes;  // no overflow: both came as numbers of 64 bits, and their sum was one of them
    tensor.begin += data;
    before = &tensor;
  }
  const std::uint64_t held = file.bytes() - data;
  if (end > held)
    refuse(file, "is truncated: its tensors need " +
                     (end > kMaxBytes - data ? "more bytes than any file has" : std::to_string(data + end) + " bytes") + ", the file has " +
                     std::to_string(file.bytes()) + "; fetch it again");
  if (end < held)
    refuse(file, "has " + std::to_string(held - end) +
                     " bytes after its tensors, which the format does not allow; it is damaged, fetch it again");
}

}  // namespace

std::vector<TensorEntry> read_header(const File& file) {
  const std::uint64_t length = header_length(file);
  std::string json(length, '\0');
  file.read(8, json.data(), length);
  std::vector<TensorEntry> tensors;
  try {
    tensors = parse_header(json);
  } catch (const mekik::Error& error) {
    throw mekik::Error{error.code, file.path() + ": " + error.what()};
  }
  for (const TensorEntry& tensor : tensors) check_shape(file, tensor);
  place(file, tensors, 8 + length);
  return tensors;
}

}  // namespace mekik_safetensors
