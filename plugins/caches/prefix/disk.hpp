// Values in a directory: one file each, named by its key.
#pragma once
#include <mekik/plugin.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

namespace mekik::prefix_cache {

// Files are written beside their place and renamed, so that a process that dies leaves nothing half-written under a name; what is read is
// checked against its checksum, its key and its length. Several processes may use one directory. Thread: any, with one writer a time.
class Disk {
 public:
  // `budget`: bytes that files may take together. Throws Error where the directory cannot be used; one that may only be read is.
  Disk(std::filesystem::path folder, std::uint64_t budget);
  bool has(const mekik_key& key, std::uint64_t& bytes) const;
  // Throws Error: MEKIK_E_IO where it cannot be written. What is there already stays.
  void write(const mekik_key& key, const void* data, std::uint64_t bytes);
  // Throws Error: MEKIK_E_INVALID where there is none of that length, MEKIK_E_IO where it is damaged, and then it is removed.
  void read(const mekik_key& key, void* data, std::uint64_t bytes);

 private:
  std::filesystem::path path_of(const mekik_key& key) const;
  void check_above() const;
  void make_folder() const;
  void make_room(std::uint64_t bytes);
  void write_new(const std::filesystem::path& path, const mekik_key& key, const void* data, std::uint64_t bytes);

  const std::filesystem::path folder_;
  const std::uint64_t budget_;
  std::uint64_t used_ = 0, written_ = 0, counter_ = 0;  // used: as of the last look, and what was written since
  bool looked_ = false, read_only_ = false;
};

}  // namespace mekik::prefix_cache
