// Any bytes as a file of a loader: it opens or is refused with a reason; what it gives out is valid JSON and lies within the file.
#pragma once
#include <mekik/plugin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace mekik::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

class Loader {
 public:
  // `file_key`: a key "file:NAME" of a file that is not there. `empty_tensors`: whether the format has tensors of no bytes.
  Loader(const mekik_plugin& entry, std::string file_key, bool empty_tensors)
      : file_key_{std::move(file_key)}, empty_tensors_{empty_tensors} {
    host_.struct_size = sizeof host_;
    host_.name = "fuzz";
    host_.version = "0";
    host_.fail = [](const mekik_host*, mekik_status code, mekik_str why) {
      said_why_ = why.len > 0;
      return code;
    };
    host_.service = [](const mekik_host*, const char*) -> const void* { return nullptr; };
    require(entry.init(&host_, {}) == MEKIK_OK);
    table_ = static_cast<const mekik_loader*>(entry.component(0)->table);
  }

  int run(const std::uint8_t* data, std::size_t size) const {
    const int descriptor = memfd_create("fuzz", 0);
    require(descriptor >= 0 && write(descriptor, data, size) == static_cast<ssize_t>(size));
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    mekik_model_file* file = nullptr;
    said_why_ = false;
    if (table_->open(&host_, borrow(path), &file) == MEKIK_OK) {
      check_metadata(file);
      check_tensors(file, size);
      table_->close(file);
    } else {
      require(said_why_);
    }
    close(descriptor);
    return 0;
  }

 private:
  static mekik_str borrow(const std::string& text) { return {text.data(), text.size()}; }

  void check_metadata(mekik_model_file* file) const {
    for (const std::string& key :
         {std::string{"format"}, std::string{"config"}, std::string{"tokenizer"}, std::string{"template"}, file_key_}) {
      mekik_str text{};
      const mekik_status status = table_->meta(file, borrow(key), &text);
      require(status == MEKIK_OK || status == MEKIK_E_INVALID);
      if (status != MEKIK_OK) continue;
      json::ParseLimits limits;
      limits.bytes = std::size_t{1} << 30;
      require(json::parse({text.ptr, text.len}, limits).ok());
    }
  }

  void check_tensors(mekik_model_file* file, std::size_t size) const {
    const mekik_part* parts = nullptr;
    std::uint32_t n = 0, part_size = 0;
    require(table_->tensors(file, &parts, &n, &part_size) == MEKIK_OK);
    for (std::uint32_t i = 0; i < n; ++i) {
      const mekik_part& part = parts[i];
      require(part.rank >= 1 && part.rank <= 4 && part.bytes <= size && (empty_tensors_ || part.bytes > 0));
      std::vector<char> bytes(part.bytes + 1);
      require(table_->read(file, i, 0, bytes.data(), part.bytes) == MEKIK_OK);
      require(table_->read(file, i, 1, bytes.data(), std::max<std::uint64_t>(part.bytes, 1)) == MEKIK_E_INVALID);
    }
  }

  static inline bool said_why_ = false;
  mekik_host host_{};
  const mekik_loader* table_ = nullptr;
  std::string file_key_;
  bool empty_tensors_;
};

}  // namespace mekik::fuzz
