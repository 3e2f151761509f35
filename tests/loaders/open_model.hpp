// A model file through its loader's table, as the host would use it.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "support/registry.hpp"

namespace mekik::test {

class OpenModel {
 public:
  OpenModel(Plugins& plugins, const std::string& loader, const std::string& path) {
    auto found = plugins.registry.find("loader", loader);
    if (!found.ok()) {
      status = found.status();
      return;
    }
    component_ = *found;
    table_ = &component_.table<mekik_loader>();
    status = plugin::to_status(table_->open(component_.host, plugin::abi_str(path), &file_), {});
  }
  ~OpenModel() {
    if (file_ != nullptr) table_->close(file_);
  }
  OpenModel(const OpenModel&) = delete;
  OpenModel& operator=(const OpenModel&) = delete;

  std::string meta(const std::string& key) {  // "(none)" when the file has none
    mekik_str out{};
    const mekik_status code = table_->meta(file_, plugin::abi_str(key), &out);
    if (code == MEKIK_OK) return std::string{plugin::view(out)};
    plugin::take_failure();
    return code == MEKIK_E_INVALID ? "(none)" : "(failed)";
  }
  std::vector<mekik_part> tensors() {
    const mekik_part* parts = nullptr;
    std::uint32_t n = 0, size = 0;
    table_->tensors(file_, &parts, &n, &size);
    return {parts, parts + n};
  }
  Status read(std::uint32_t i, std::uint64_t at, void* out, std::uint64_t bytes) {
    return plugin::to_status(table_->read(file_, i, at, out, bytes), {});
  }

  Status status;

 private:
  plugin::Component component_;
  const mekik_loader* table_ = nullptr;
  mekik_model_file* file_ = nullptr;
};

}  // namespace mekik::test
