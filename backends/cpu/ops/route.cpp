// Rows of mixtures of experts: which experts a row meets and with what weight, and the sum of their answers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "exec.hpp"

namespace mekik::cpu {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// The place of the largest of those that are not taken; ties to the lower one. NaN would break the order: it counts as the smallest.
std::uint32_t largest(const float* values, std::uint32_t n, const std::uint8_t* taken) {
  std::uint32_t best = n;
  float most = kNever;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (taken[i] != 0) continue;
    const float v = std::isnan(values[i]) ? kNever : values[i];
    if (best == n || v > most) best = i, most = v;
  }
  return best;
}

// Experts outside the best groups can no longer be chosen.
void keep_groups(float* choice, std::uint32_t n, const std::int64_t* o, float* score, std::uint8_t* taken) {
  const auto groups = static_cast<std::uint32_t>(o[2]), each = n / groups;
  const std::uint32_t best = std::min(o[4] == 0 ? 2u : 1u, each);
  for (std::uint32_t g = 0; g < groups; ++g) {
    std::fill(taken, taken + each, std::uint8_t{0});
    score[g] = 0;
    for (std::uint32_t i = 0; i < best; ++i) {
      const std::uint32_t e = largest(choice + g * each, each, taken);
      taken[e] = 1;
      score[g] = i == 0 ? choice[g * each + e] : score[g] + choice[g * each + e];
    }
  }
  std::fill(taken, taken + groups, std::uint8_t{0});
  for (std::int64_t i = 0; i < o[3]; ++i) taken[largest(score, groups, taken)] = 1;
  for (std::uint32_t g = 0; g < groups; ++g)
    if (taken[g] == 0) std::fill(choice + g * each, choice + (g + 1) * each, kNever);
}

}  // namespace

void Exec::route_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const {
  const auto n = static_cast<std::uint32_t>(row_size(program_.tensor(op.in[0]))), top = static_cast<std::uint32_t>(op.ints[0]);
  const float* logits = view(op.in[0]).row(row);
  float *scores = scratch(thread), *choice = scores + n, *group_score = choice + n;
  auto* taken = reinterpret_cast<std::uint8_t*>(group_score + n);
  if (op.ints[1] == 0) settings_.kernels->softmax(logits, n, scores);
  else if (op.ints[1] == 1) settings_.kernels->act(7, logits, n, scores);
  else std::memcpy(scores, logits, n * sizeof(float));
  if (op.in[1] != kNone) settings_.kernels->add(scores, vector(op.in[1]), false, n, choice);
  else std::memcpy(choice, scores, n * sizeof(float));
  if (op.ints[2] > 1) keep_groups(choice, n, op.ints, group_score, taken);
  float *ids = view(op.out[0]).row(row), *weights = view(op.out[1]).row(row);
  std::fill(taken, taken + n, std::uint8_t{0});
  for (std::uint32_t i = 0; i < top; ++i) {
    const std::uint32_t e = largest(choice, n, taken);
    taken[e] = 1;
    std::memcpy(ids + i, &e, sizeof e);
    weights[i] = scores[e];
  }
  if (op.ints[1] == 2) settings_.kernels->softmax(weights, top, weights);
  float sum = 1e-20F;
  for (std::uint32_t i = 0; i < top; ++i) sum += weights[i];
  for (std::uint32_t i = 0; i < top; ++i) {
    if (op.ints[5] != 0) weights[i] /= sum;
    weights[i] *= static_cast<float>(op.reals[0]);
  }
}

// out = sum over i of weights[i] * y[i], in the order of the ranks.
void Exec::combine_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const {
  const std::uint64_t n = row_size(program_.tensor(op.out[0]));
  const auto top = static_cast<std::uint32_t>(row_size(program_.tensor(op.in[1])));
  const float *y = view(op.in[0]).row(row), *weights = view(op.in[1]).row(row);
  float* out = view(op.out[0]).row(row);
  if (out == nullptr) return;
  std::uint64_t c = 0;
  for (; c + kLanes <= n; c += kLanes) {
    std::fill(out + c, out + c + kLanes, 0.0F);
    settings_.kernels->mac(Num::f32, y + c, n, top, weights, top, 1, out + c, kLanes);
  }
  if (c == n) return;
  float *tail = scratch(thread), *sum = tail + std::size_t{top} * kLanes;
  for (std::uint32_t i = 0; i < top; ++i) std::copy(y + i * n + c, y + (i + 1) * n, tail + std::size_t{i} * kLanes);
  std::fill(sum, sum + kLanes, 0.0F);
  settings_.kernels->mac(Num::f32, tail, kLanes, top, weights, top, 1, sum, kLanes);
  std::copy(sum, sum + (n - c), out + c);
}

}  // namespace mekik::cpu
