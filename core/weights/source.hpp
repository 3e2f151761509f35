// A tensor of the file through its scheme: decoded, or factored into its form.
#pragma once
#include <memory>
#include <string>

#include "base/status.hpp"
#include "plugin/registry.hpp"
#include "weights/form_layout.hpp"
#include "weights/model_file.hpp"

namespace mekik::weights {

// Rows are counted flat over experts. Thread: any, after open. The file outlives it.
class Source {
 public:
  // `experts`: the first of the tensor's sizes if the tensor is a stack of experts, else 1.
  static Result<std::unique_ptr<Source>> open(plugin::Registry& registry, const ModelFile& file, std::uint32_t index,
                                              std::uint64_t experts);
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::string& name() const { return name_; }
  const std::string& scheme() const { return scheme_; }  // "q4_k", "f32", ...
  std::uint64_t n_rows() const { return abi().experts * abi().n; }
  std::uint64_t k() const { return abi().k; }
  const std::vector<std::int64_t>& shape() const { return file_->meta().tensors[index_].shape; }
  std::uint64_t experts() const { return abi().experts; }
  const mekik_form* form() const { return has_form_ ? &form_ : nullptr; }  // nullptr: only decode
  const std::string& why_no_form() const { return why_no_form_; }
  const mekik_host* host() const { return component_.host; }
  const std::string& library() const { return component_.library; }

  // Rows first .. first + count, decoded: out [count][k].
  Status decode(std::uint64_t first, std::uint64_t count, float* out) const;
  // The same as the form says. `first` and `count` are multiples of group_n, or count reaches an expert's end.
  Status rows(std::uint64_t first, std::uint64_t count, const mekik_form_rows& out) const;

 private:
  Source() = default;
  Status describe();
  Status check_form() const;
  Status fetch(std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, const mekik_form_rows& out) const;
  const mekik_parts& abi() const { return parts_->abi(); }

  plugin::Component component_;
  const mekik_scheme* table_ = nullptr;
  const ModelFile* file_ = nullptr;
  std::uint32_t index_ = 0;
  std::string name_, scheme_, why_no_form_;
  std::unique_ptr<Parts> parts_;
  mekik_form form_{};
  bool has_form_ = false;
};

}  // namespace mekik::weights
