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
  if (op.ints[1] == 3) {
    settings_.kernels->act(9, scores, n, scores);
    settings_.kernels->act(10, scores, n, scores);
  }
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

// Each rank is a softmax over those that are left and not far below the best of them.
void Exec::mixer_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const {
  const auto n = static_cast<std::uint32_t>(row_size(program_.tensor(op.in[0]))), top = static_cast<std::uint32_t>(op.ints[0]);
  const auto width = static_cast<float>(op.reals[0]);
  const float* logits = view(op.in[0]).row(row);
  float *ids = view(op.out[0]).row(row), *weights = view(op.out[1]).row(row), *near = scratch(thread);
  auto* taken = reinterpret_cast<std::uint8_t*>(near + n);
  std::fill(taken, taken + n, std::uint8_t{0});
  for (std::uint32_t i = 0; i < top; ++i) {
    const std::uint32_t best = largest(logits, n, taken);
    const float m = logits[best];
    for (std::uint32_t e = 0; e < n; ++e) {
      const float s = logits[e];
      const bool far = taken[e] != 0 || s == kNever || (m - s) / std::fmax(std::fabs(s), m) > width;
      near[e] = far ? kNever : s;
    }
    near[best] = m;
    settings_.kernels->softmax(near, n, near);
    std::memcpy(ids + i, &best, sizeof best);
    weights[i] = near[best];
    taken[best] = 1;
  }
}

void Exec::scale_choice_row(const mekik_op& op, std::uint32_t row) const {
  const std::uint64_t top = row_size(program_.tensor(op.in[0]));
  const float *weights = view(op.in[0]).row(row), *scales = vector(op.in[2]);
  float* y = view(op.out[0]).row(row);
  for (std::uint32_t i = 0; y != nullptr && i < top; ++i) y[i] = weights[i] * scales[id_of(op.in[1], row, i)];
}

void Exec::spread_row(const mekik_op& op, std::uint32_t row) const {
  const auto n = static_cast<std::uint32_t>(row_size(program_.tensor(op.in[0])));
  const std::uint64_t top = row_size(program_.tensor(op.in[1]));
  const float *x = view(op.in[0]).row(row), *weights = view(op.in[1]).row(row);
  float* y = view(op.out[0]).row(row);
  for (std::uint64_t i = 0; y != nullptr && i < top; ++i) settings_.kernels->mul(x, weights + i, true, n, y + i * n);
}

// out = sum over i of weights[i] * y[i], in the order of the ranks.
void Exec::combine_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const {
  const std::uint64_t n = row_size(program_.tensor(op.out[0]));
  const auto top = static_cast<std::uint32_t>(row_size(program_.tensor(op.in[0])) / n);
  const float* y = view(op.in[0]).row(row);
  float *out = view(op.out[0]).row(row), *ones = scratch(thread) + (std::size_t{top} + 1) * kLanes;
  if (out == nullptr) return;
  if (op.in[1] == kNone) std::fill(ones, ones + top, 1.0F);
  const float* weights = op.in[1] == kNone ? ones : view(op.in[1]).row(row);
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
