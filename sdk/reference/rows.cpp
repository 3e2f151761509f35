#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/ops.hpp"

namespace mekik::reference {

namespace {
void copy_row(const float* from, float* to, std::size_t n) {
  if (from != to) std::memmove(to, from, n * sizeof(float));
}
}  // namespace

void embed(const Ids& ids, const Weight& w, const Rows& y) {
  for (std::size_t i = 0; i < y.n; ++i) {
    const auto id = static_cast<std::uint64_t>(ids.row(i)[0]);
    w.decode(id, id + 1, y.row(i));
  }
}

void embed_mix(const Ids& ids, const Rows& mix, const Weight& w, const Rows& y) {
  std::vector<float> one(w.k());
  std::vector<double> sum(w.k());
  for (std::size_t i = 0; i < y.n; ++i) {
    std::fill(sum.begin(), sum.end(), 0.0);
    for (std::size_t j = 0; j < ids.size(); ++j) {
      const auto id = static_cast<std::uint64_t>(ids.row(i)[j]);
      w.decode(id, id + 1, one.data());
      for (std::size_t c = 0; c < one.size(); ++c) sum[c] += static_cast<double>(mix.row(i)[j]) * one[c];
    }
    for (std::size_t c = 0; c < sum.size(); ++c) y.row(i)[c] = static_cast<float>(sum[c]);
  }
}

void take_rows(const Rows& x, const Ids& rows, const Rows& y) {
  for (std::size_t i = 0; i < y.n; ++i) copy_row(x.row(static_cast<std::size_t>(rows.row(i)[0])), y.row(i), y.size());
}

void put_rows(const Rows& x, const Rows* replacement, const Ids& rows, bool adds, const Rows& y) {
  for (std::size_t i = 0; i < y.n; ++i) copy_row(x.row(i), y.row(i), y.size());
  if (replacement == nullptr) return;
  for (std::size_t i = 0; i < replacement->n; ++i) {
    float* out = y.row(static_cast<std::size_t>(rows.row(i)[0]));
    for (std::size_t j = 0; j < y.size(); ++j) out[j] = adds ? out[j] + replacement->row(i)[j] : replacement->row(i)[j];
  }
}

void argmax(const Rows& x, const Matrix<std::int32_t>& y) {
  for (std::size_t i = 0; i < x.n; ++i)
    for (std::size_t o = 0; o < x.outer; ++o) {
      const float* row = x.row(i) + o * x.last;
      std::size_t best = 0;
      for (std::size_t j = 1; j < x.last; ++j)
        if (row[j] > row[best]) best = j;
      y.row(i)[o] = static_cast<std::int32_t>(best);
    }
}

namespace {
// Of column j of rows begin to end.
double pooled(const Rows& x, std::int64_t kind, std::uint64_t begin, std::uint64_t end, std::size_t j) {
  const auto count = static_cast<double>(end - begin);
  double most = x.row(begin)[j], sum = 0;
  for (std::uint64_t t = begin; t < end; ++t) {
    const double value = x.row(t)[j];
    most = std::max(most, value);
    sum += kind == kWeightedMean ? static_cast<double>(t - begin + 1) * value : value;
  }
  if (kind == kMax) return most;
  return sum / (kind == kWeightedMean ? count * (count + 1) / 2 : kind == kMeanSqrtLen ? std::sqrt(count) : count);
}
}  // namespace

void pool(const Rows& x, std::int64_t kind, const Step& step, const Rows& y) {
  for (std::uint32_t seq = 0; seq < step.batch->n_seqs; ++seq) {
    const std::uint64_t begin = step.begin(seq), end = step.end(seq);
    if (kind == kCls || kind == kLast) {
      copy_row(x.row(kind == kCls ? begin : end - 1), y.row(seq), y.size());
      continue;
    }
    for (std::size_t j = 0; j < y.size(); ++j) y.row(seq)[j] = static_cast<float>(pooled(x, kind, begin, end, j));
  }
}

}  // namespace mekik::reference
