// From a model's output row to what people ask for: an embedding of length 1, the score of a pair.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "program/model_meta.hpp"

namespace mekik::engine {

// Divided by its length; zeros stay zeros. `dimensions`: only the first of them, 0: all.
std::vector<float> normalised(std::span<const float> row, std::size_t dimensions = 0);

// Code::internal where the row is no answer.
Status check_finite(std::span<const float> row);

// How a row of classes becomes one number, as the model's authors meant it.
struct Scoring {
  enum class Kind { sigmoid, raw, softmax } kind = Kind::sigmoid;
  std::uint32_t positive = 0;  // softmax: the class whose share is the score
  // In [0, 1]; raw: as the model gives it.
  double of(std::span<const float> row) const;
};
// One class: its sigmoid, or the number itself where config.json of a sentence-transformers model says so. Two classes: the share of the
// one that GGUF labels "yes", else of the second. More are Code::unsupported: none of them is the score of a pair.
Result<Scoring> scoring_of(const program::ModelMeta& meta, std::uint64_t classes);

}  // namespace mekik::engine
