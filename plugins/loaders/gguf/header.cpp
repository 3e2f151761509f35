#include "header.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mekik/plugin.hpp>
#include <numeric>
#include <string_view>
#include <unordered_set>

#include "json.hpp"
#include "metadata.hpp"
#include "types.hpp"

namespace mekik_gguf {

namespace {

constexpr std::uint64_t kMaxName = 128;  // ggml allows 63
constexpr std::uint32_t kMaxRank = 4;
constexpr std::uint64_t kMaxTensors = 1u << 24;
constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void refuse(const File& file, const std::string& why) { throw mekik::Error{MEKIK_E_INVALID, file.path() + ": " + why}; }

// Byte-swapped versions mean a big-endian file: the magic is four bytes and looks the same in both.
bool is_swapped_version(std::uint32_t version) { return (version & 0xFFFFu) == 0 && version != 0; }

void check_magic(const File& file) {
  if (file.bytes() == 0) refuse(file, "the file is empty");
  char head[64] = {};
  const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(sizeof head, file.bytes()));
  file.read(0, head, count);
  const std::string_view start{head, count};
  if (file.is_lfs_pointer()) refuse(file, mekik::loaders::kLfsPointer);
  if (start.substr(0, 4) == "FUGG")
    refuse(file, "is a big-endian GGUF file; only little-endian ones are read, convert it with gguf's gguf_convert_endian.py");
  if (start.substr(0, 4) != "GGUF") refuse(file, "is not a GGUF file: it starts with " + shown(start.substr(0, 4)) + ", not \"GGUF\"");
}

void check_version(const File& file, std::uint32_t version) {
  if (version == 2 || version == 3) return;
  if (is_swapped_version(version))
    refuse(file,
           "is a big-endian GGUF file (byte order of its version); only little-endian ones are read, convert it with gguf's "
           "gguf_convert_endian.py");
  if (version == 1) refuse(file, "has GGUF version 1, which is no longer in use; convert the model again");
  refuse(file, "has GGUF version " + std::to_string(version) + "; versions 2 and 3 are read");
}

class Tensors {
 public:
  Tensors(const File& file, Reader& reader) : file_{file}, reader_{reader} {}

  std::vector<TensorEntry> read(std::uint64_t count) {
    // A tensor is at least a length, a count of sizes, a type and an offset.
    reader_.expect(count, 8 + 4 + 4 + 8, "the number of tensors");
    if (count > kMaxTensors)
      refuse(file_, "claims " + std::to_string(count) + " tensors; at most " + std::to_string(kMaxTensors) + " are read");
    std::vector<TensorEntry> tensors;
    for (std::uint64_t i = 0; i < count; ++i) tensors.push_back(entry());
    return tensors;
  }

 private:
  [[noreturn]] void bad(const std::string& name, const std::string& why) const { refuse(file_, "tensor " + shown(name) + " " + why); }

  TensorEntry entry() {
    TensorEntry tensor;
    tensor.name = std::string{reader_.text("the name of a tensor", kMaxName)};
    check_name(tensor.name);
    const auto rank = reader_.number<std::uint32_t>("the sizes of a tensor");
    if (rank > kMaxRank) bad(tensor.name, "has " + std::to_string(rank) + " dimensions; at most 4 are possible");
    tensor.rank = std::max(rank, 1u);
    tensor.shape[0] = 1;
    for (std::uint32_t i = 0; i < rank; ++i) {
      const auto size = reader_.number<std::uint64_t>("the sizes of a tensor");
      if (size == 0) bad(tensor.name, "has a dimension of size 0");
      if (size > kMaxBytes) bad(tensor.name, "has a dimension of size " + std::to_string(size) + ", which no file can hold");
      tensor.shape[rank - 1 - i] = static_cast<std::int64_t>(size);
    }
    const auto number = reader_.number<std::uint32_t>("the type of a tensor");
    tensor.begin = reader_.number<std::uint64_t>("the offset of a tensor");
    set_type(tensor, number);
    return tensor;
  }

  void check_name(const std::string& name) {
    if (name.empty()) refuse(file_, "a tensor has no name");
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x20; });
    if (!plain || valid_utf8_prefix(name) != name.size()) bad(name, "has a name that is not printable UTF-8");
    if (!names_.insert(name).second) bad(name, "occurs twice");
  }

  void set_type(TensorEntry& tensor, std::uint32_t number) {
    const TensorType* type = tensor_type(number);
    if (type == nullptr)
      bad(tensor.name, "has the unknown type " + std::to_string(number) +
                           "; a newer program, or the fork of llama.cpp that made the file, may read it: fetch it in another type");
    if (type->block_elems == 0) bad(tensor.name, std::string{"has the type "} + type->name + ", which ggml has removed; " + type->instead);
    const auto row = static_cast<std::uint64_t>(tensor.shape[tensor.rank - 1]);
    if (row % type->block_elems != 0)
      bad(tensor.name, "has rows of " + std::to_string(row) + " values, not a multiple of " + std::to_string(type->block_elems) +
                           ", the block of " + type->name);
    tensor.scheme = type->scheme;
    tensor.num = type->num;
    std::uint64_t blocks = row / type->block_elems, bytes = 0;
    bool fits = true;
    for (std::uint32_t i = 0; i + 1 < tensor.rank; ++i)
      fits = fits && !__builtin_mul_overflow(blocks, static_cast<std::uint64_t>(tensor.shape[i]), &blocks);
    fits = fits && !__builtin_mul_overflow(blocks, std::uint64_t{type->block_bytes}, &bytes);
    if (!fits || bytes > kMaxBytes) bad(tensor.name, "has a shape whose size in bytes does not fit 63 bits");
    tensor.bytes = bytes;
  }

  const File& file_;
  Reader& reader_;
  std::unordered_set<std::string> names_;
};

// Offsets become places in the file; each range is checked against its end and against the others.
void place(const File& file, std::vector<TensorEntry>& tensors, std::uint64_t data, std::uint64_t alignment) {
  std::uint64_t expected = data;
  for (TensorEntry& tensor : tensors) {
    if (tensor.begin % alignment != 0)
      refuse(file, "tensor " + shown(tensor.name) + " lies at offset " + std::to_string(tensor.begin) +
                       ", not a multiple of the alignment " + std::to_string(alignment));
    std::uint64_t end = 0;
    if (__builtin_add_overflow(tensor.begin, data, &tensor.begin) || __builtin_add_overflow(tensor.begin, tensor.bytes, &end) ||
        end > kMaxBytes)
      refuse(file, "tensor " + shown(tensor.name) + " has an offset that no file can hold");
    expected = std::max(expected, end);
  }
  if (expected > file.bytes() && !tensors.empty())
    refuse(file, "is truncated: its tensors need " + std::to_string(expected) + " bytes, the file has " + std::to_string(file.bytes()) +
                     "; fetch it again");
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return tensors[a].begin < tensors[b].begin; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const TensorEntry &before = tensors[order[i - 1]], &after = tensors[order[i]];
    if (after.begin < before.begin + before.bytes)
      refuse(file, "tensors " + shown(before.name) + " and " + shown(after.name) + " overlap in the file");
  }
}

}  // namespace

Header read_header(const File& file) {
  check_magic(file);
  Reader reader{file};
  reader.number<std::uint32_t>("the magic");
  check_version(file, reader.number<std::uint32_t>("the version"));
  const auto n_tensors = reader.number<std::uint64_t>("the number of tensors");
  const auto n_keys = reader.number<std::uint64_t>("the number of metadata keys");
  Header header;
  const std::uint64_t alignment = read_metadata(reader, n_keys, header);
  header.tensors = Tensors{file, reader}.read(n_tensors);
  const std::uint64_t data = (reader.at() + alignment - 1) / alignment * alignment;
  place(file, header.tensors, data, alignment);
  return header;
}

}  // namespace mekik_gguf
