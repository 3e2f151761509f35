// The last step of sampling, on host logits: log-probabilities of the raw logits, and the draw after the chain.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.hpp"

namespace mekik::sample {

// Fails (Code::internal) when a logit is NaN or +infinity, naming the first such token. -infinity (a banned token) is fine.
Status check_logits(std::span<const float> logits);

// Draws by inverse CDF over exp(logit - max) in double, in the order of ids: the first id whose cumulative weight exceeds
// uniform * total. One remaining candidate (greedy) is returned exactly. Fails when every token is banned. The scratch vector is
// reused between calls; it grows to the vocabulary.
Result<std::int32_t> draw(std::span<const float> logits, double uniform, std::vector<double>& scratch);

// Log-softmax in double.
class LogSoftmax {
 public:
  explicit LogSoftmax(std::span<const float> logits);
  float logprob(std::int32_t id) const;
  // The likeliest `count` tokens, likeliest first, ties to the lower id; fewer when the vocabulary is smaller.
  std::vector<std::pair<std::int32_t, float>> top(std::uint32_t count) const;

 private:
  std::span<const float> logits_;
  double log_total_;  // of exp(logit), in the logits' own scale
};

}  // namespace mekik::sample
