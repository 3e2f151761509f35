// The values of the tensors of a Transcript, decoded from the source's weights.
#pragma once
#include <cstdint>
#include <vector>

#include "program/transcript.hpp"
#include "weights/store.hpp"

namespace mekik::convert {

// Thread: one.
class Values {
 public:
  Values(const program::Transcript& transcript, const weights::Store& store) : transcript_{transcript}, store_{store} {}
  // Rows first .. first + count of a tensor, whose rows are its last size long. Tensors that move in one piece are read row by row; others
  // are put together whole, and kept until another tensor is asked for.
  Status rows(const program::Transcript::Tensor& tensor, std::uint64_t first, std::uint64_t count, float* out);

 private:
  // `count` values of a weight from `first`, in the page's order.
  Status read(std::uint32_t weight, std::uint64_t first, std::uint64_t count, float* out) const;
  Status assemble(const program::Transcript::Tensor& tensor);

  const program::Transcript& transcript_;
  const weights::Store& store_;
  const program::Transcript::Tensor* assembled_ = nullptr;
  std::vector<float> whole_;
  std::int64_t weight_ = -1;  // whose values `source_` holds
  std::vector<float> source_;
};

}  // namespace mekik::convert
