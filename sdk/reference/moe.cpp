#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "reference/ops.hpp"

namespace mekik::reference {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// The indices of the `count` largest, falling; ties to the lower index.
std::vector<std::size_t> largest(const std::vector<float>& values, std::size_t count) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // NaN would break the ordering: it counts as the smallest.
  const auto key = [&](std::size_t i) { return std::isnan(values[i]) ? kNever : values[i]; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
  order.resize(count);
  return order;
}

// Experts outside the best groups can no longer be chosen.
void keep_groups(std::vector<float>& choice, const RouteOptions& o) {
  const std::size_t n = static_cast<std::size_t>(o.groups), each_group = choice.size() / n;
  std::vector<float> score(n);
  for (std::size_t g = 0; g < n; ++g) {
    const std::vector<float> members(choice.begin() + static_cast<std::ptrdiff_t>(g * each_group),
                                     choice.begin() + static_cast<std::ptrdiff_t>((g + 1) * each_group));
    const auto best = largest(members, std::min<std::size_t>(o.group_score == 0 ? 2 : 1, each_group));
    score[g] = members[best[0]];
    if (best.size() > 1) score[g] += members[best[1]];
  }
  std::vector<bool> keep(n, false);
  for (const std::size_t g : largest(score, static_cast<std::size_t>(o.top_groups))) keep[g] = true;
  for (std::size_t e = 0; e < choice.size(); ++e)
    if (!keep[e / each_group]) choice[e] = kNever;
}

std::vector<float> scores_of(const float* logits, std::size_t n, std::int64_t kind) {
  std::vector<float> scores(logits, logits + n);
  const Rows row{scores.data(), 1, n, 1, n};
  if (kind == 0) softmax(row, row);
  if (kind == 1) act(row, kSigmoid, row);
  if (kind == 3) {
    act(row, kSoftplus, row);
    act(row, kSqrt, row);
  }
  return scores;
}

}  // namespace

void moe_route(const Rows& logits, const Flat& bias, const RouteOptions& o, const Matrix<std::int32_t>& ids, const Rows& weights) {
  const std::size_t n = logits.size(), top = static_cast<std::size_t>(o.top);
  for (std::size_t t = 0; t < logits.n; ++t) {
    const std::vector<float> scores = scores_of(logits.row(t), n, o.score);
    std::vector<float> choice = scores;
    if (!bias.empty())
      for (std::size_t e = 0; e < n; ++e) choice[e] += bias[e];
    if (o.groups > 1) keep_groups(choice, o);
    const auto chosen = largest(choice, top);
    float* out = weights.row(t);
    for (std::size_t i = 0; i < top; ++i) {
      ids.row(t)[i] = static_cast<std::int32_t>(chosen[i]);
      out[i] = scores[chosen[i]];
    }
    const Rows row{out, 1, top, 1, top};
    if (o.score == 2) softmax(row, row);
    double sum = 1e-20;
    for (std::size_t i = 0; i < top; ++i) sum += out[i];
    for (std::size_t i = 0; i < top; ++i) {
      if (o.normalize) out[i] = static_cast<float>(out[i] / sum);
      out[i] *= static_cast<float>(o.scale);
    }
  }
}

void moe_route_mixer(const Rows& logits, double width, const Matrix<std::int32_t>& ids, const Rows& weights) {
  const std::size_t n = logits.size();
  for (std::size_t t = 0; t < logits.n; ++t) {
    std::vector<float> left(logits.row(t), logits.row(t) + n);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::size_t best = largest(left, 1)[0];
      const double m = left[best];
      double sum = 0;
      for (const float s : left)
        if (s != kNever && !((m - s) / std::fmax(std::fabs(static_cast<double>(s)), m) > width)) sum += std::exp(s - m);
      ids.row(t)[i] = static_cast<std::int32_t>(best);
      weights.row(t)[i] = static_cast<float>(1 / sum);
      left[best] = kNever;
    }
  }
}

void moe_scale(const Rows& weights, const Ids& ids, const Flat& s, const Rows& y) {
  for (std::size_t t = 0; t < y.n; ++t)
    for (std::size_t i = 0; i < y.size(); ++i) y.row(t)[i] = weights.row(t)[i] * s[static_cast<std::size_t>(ids.row(t)[i])];
}

void moe_spread(const Rows& x, const Rows& weights, const Rows& y) {
  const std::size_t k = x.size();
  for (std::size_t t = 0; t < y.n; ++t)
    for (std::size_t i = 0; i < weights.size(); ++i)
      for (std::size_t j = 0; j < k; ++j) y.row(t)[i * k + j] = x.row(t)[j] * weights.row(t)[i];
}

void moe_combine(const Rows& y, const Rows* weights, const Rows& out) {
  const std::size_t top = y.size() / out.size();
  for (std::size_t t = 0; t < out.n; ++t)
    for (std::size_t j = 0; j < out.size(); ++j) {
      double sum = 0;
      for (std::size_t i = 0; i < top; ++i)
        sum += static_cast<double>(y.row(t)[i * out.size() + j]) * (weights != nullptr ? weights->row(t)[i] : 1.0f);
      out.row(t)[j] = static_cast<float>(sum);
    }
}

}  // namespace mekik::reference
