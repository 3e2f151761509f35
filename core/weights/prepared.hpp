// A file with weights as a backend packed them, kept from one start to the next: mapped, checked, written atomically.
//
// Layout, in the byte order of the machine: Header, the model's path, one Entry per weight, then from the next multiple of 4096 on the
// packed bytes of each weight at a multiple of 64. The checksums are XXH3 of 64 bits: they find damage, they keep nobody out; that is what
// the file's owner and mode are looked at for.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "program/program.hpp"
#include "weights/store.hpp"

namespace mekik::weights {

using PackedBytes = std::span<const std::uint8_t>;
using PreparedKey = std::array<std::uint8_t, 32>;

// What packed weights come from beside the model's files and the program.
struct Packer {
  std::string backend, library;  // the component's name and the file it is in
  std::string device;            // mekik_device_info.uid
  std::array<std::uint8_t, 32> id;
  std::string dense;  // [model] dense
};

// SHA-256 of all that decides packed weights: the model's files and the libraries by path, inode, size and times, the program's recipes,
// the packer. Code::unsupported: the loader does not say which files it reads.
Result<PreparedKey> prepared_key(const ModelFile& file, const Store& store, const program::Program& program, const Packer& packer);

// SHA-256 of all that decides what a model computes: the bytes of its files (by XXH3 of 128 bits), and the program. It reads all of the
// files; good on any machine.
Result<PreparedKey> content_key(const ModelFile& file, const program::Program& program);

// Where prepared files lie unless the pipeline says: $XDG_CACHE_HOME/mekik, or ~/.cache/mekik. Empty: there is no home.
std::filesystem::path prepared_folder();
// The file's name for a model and a packer: what is packed again under another key replaces the old file.
std::string prepared_name(const std::string& model_name, const std::string& model_path, const Packer& packer);

// Thread: any; immutable.
class Prepared {
 public:
  // Maps the file and checks all of it, on `threads` threads. Code::invalid: there is none, or it is of another key; otherwise the text
  // says why the file that is there is not used.
  static Result<std::unique_ptr<Prepared>> open(const std::filesystem::path& path, const PreparedKey& key, std::uint32_t threads);
  ~Prepared();
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  const std::vector<PackedBytes>& weights() const { return weights_; }  // in the order of the program's tensors

 private:
  Prepared() = default;
  std::span<const std::uint8_t> mapped_;
  std::vector<PackedBytes> weights_;
};

// Writes beside `path` and renames. Leaves nothing behind where it fails, or when `stop` becomes true (Code::cancelled). Code::busy:
// another process is writing it. Files in the same folder whose model is gone are removed.
Status write_prepared(const std::filesystem::path& path, const PreparedKey& key, const std::string& model_path,
                      const std::vector<PackedBytes>& weights, const std::atomic<bool>& stop);

}  // namespace mekik::weights
