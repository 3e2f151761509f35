// The arithmetic of the standard sampler, on logits in host memory. A banned token has -infinity; each filter leaves at least one.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace standard {

// All but the largest logit are banned; ties go to the lower id.
void greedy(std::span<float> logits);
// (l - max) / temperature in double: no temperature overflows, the largest is 0.
void temper(std::span<float> logits, double temperature);
// Bans tokens less likely than min_p times the likeliest.
void keep_min_p(std::span<float> logits, double min_p);

struct Candidate {
  float logit;
  std::int32_t id;
};
// Keeps the k largest, ties to the lower id. Expected O(n). `scratch` is reused between calls.
void keep_top_k(std::span<float> logits, std::uint32_t k, std::vector<Candidate>& scratch);

struct Weighted {
  double weight;
  std::int32_t id;
};
struct TopP {  // memory that is reused between calls
  std::vector<double> weights;
  std::vector<std::int32_t> bins;
  std::vector<Weighted> border;
};
// Keeps the smallest set of likeliest tokens whose probability is at least p: the token that crosses p stays. Expected O(n), no sort.
void keep_top_p(std::span<float> logits, double p, TopP& memory);

}  // namespace standard
