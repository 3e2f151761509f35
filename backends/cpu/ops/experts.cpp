// Products with a stack of matrices, of which each row meets some: rows are sorted by matrix, their activations are brought into that
// order, and every matrix is read once for all of its rows. Each row is computed alone, whoever else chose the expert.
#include <algorithm>
#include <cstring>

#include "exec.hpp"

namespace mekik::cpu {

namespace {

// What an expert with `rows` rows costs, a stripe: reading it, and its products.
std::uint64_t stripe_cost(std::uint32_t rows) { return 8 + rows; }

}  // namespace

Groups Exec::groups(const PhasePlan& p) const {
  const Grouping& g = plan_.groupings[p.grouping];
  return {buffer(g.buffer), g.experts, plan_.max_rows(p.domain) * g.top};
}

// The rows of expert number i of those that have any.
Exec::ExpertRows Exec::expert_rows(const PhasePlan& p, std::uint32_t i) const {
  if (plan_.groupings[p.grouping].buffer == kNone) {
    const std::uint32_t rows = rows_in(p.domain);
    return {i, i * rows, (i + 1) * rows};
  }
  const Groups at = groups(p);
  const std::uint32_t e = at.expert[i];
  return {e, at.first[e], at.first[e + 1]};
}
std::uint32_t Exec::active_experts(const PhasePlan& p) const {
  const Grouping& g = plan_.groupings[p.grouping];
  return g.buffer == kNone ? g.experts : *groups(p).active;
}

// Sorts the entries by expert, in the order of rows within one.
void Exec::run_group(const PhasePlan& p) const {
  const Grouping& g = plan_.groupings[p.grouping];
  const Groups at = groups(p);
  const std::uint32_t rows = rows_in(p.domain);
  const View ids = view(g.ids);
  std::fill(at.first, at.first + g.experts + 1, 0u);
  const auto id = [&](std::uint32_t t, std::uint32_t i) {
    std::uint32_t e;
    std::memcpy(&e, ids.row(t) + i, sizeof e);
    return e;
  };
  for (std::uint32_t t = 0; t < rows; ++t)
    for (std::uint32_t i = 0; i < g.top; ++i) ++at.first[id(t, i) + 1];
  *at.active = 0;
  for (std::uint32_t e = 0; e < g.experts; ++e) {
    if (at.first[e + 1] != 0) at.expert[(*at.active)++] = e;
    at.first[e + 1] += at.first[e];
  }
  for (std::uint32_t t = 0; t < rows; ++t)
    for (std::uint32_t i = 0; i < g.top; ++i) {
      const std::uint32_t j = at.first[id(t, i)]++;
      at.row[j] = t;
      at.slot[j] = i;
    }
  for (std::uint32_t e = g.experts; e > 0; --e) at.first[e] = at.first[e - 1];  // each had moved on to the next
  at.first[0] = 0;
}

void Exec::run_spread(const PhasePlan& p, std::uint32_t task) const {
  const Grouping& g = plan_.groupings[p.grouping];
  const Product& product = p.products[0];
  const Matrix& m = matrices_[product.weight];
  const std::uint64_t entries = std::uint64_t{rows_in(p.domain)} * g.top, tasks = tasks_of(p);
  const View x = p.x != kNone ? view(p.x) : View{reinterpret_cast<float*>(buffer(p.buffer)), std::size_t{g.top} * m.k};
  const bool shared = p.x != kNone && row_size(program_.tensor(p.x)) == m.k;  // every expert of a row sees the same
  const std::vector<std::uint32_t>& inputs = plan_.weights[product.weight].layout.inputs;
  const std::uint32_t rows = rows_in(p.domain);
  const bool heads = g.buffer == kNone;
  for (std::uint64_t j = entries * task / tasks; j < entries * (task + 1) / tasks; ++j) {
    const std::size_t row = heads ? j % rows : groups(p).row[j], slot = heads ? j / rows : groups(p).slot[j];
    const float* from = x.row(row) + (shared ? 0 : slot * m.k);
    if (product.gathered != kNone) {
      float* to = reinterpret_cast<float*>(buffer(product.gathered)) + j * m.k;
      if (inputs.empty()) std::memcpy(to, from, m.k * sizeof(float));
      for (std::size_t i = 0; i < inputs.size(); ++i) to[i] = from[inputs[i]];
      from = to;
    }
    if (product.acts == kNone) continue;
    Acts acts = entry_acts(p, product).row(j);
    acts.outlier = m.act_outlier;
    settings_.kernels->quantise(from, m.k, acts);
  }
}

Acts Exec::entry_acts(const PhasePlan& p, const Product& product) const {
  const std::uint64_t most = plan_.max_rows(p.domain) * plan_.groupings[p.grouping].top;
  return {buffer(product.acts), matrices_[product.weight].blocks, static_cast<std::uint32_t>(most)};
}

// A task takes a share of all (expert, stripe) pairs, weighed by rows.
void Exec::run_experts(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const {
  std::uint32_t stripes = 0;
  for (const Product& x : p.products) stripes += matrices_[x.weight].stripes;
  const std::uint32_t active = active_experts(p), tasks = tasks_of(p);
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < active; ++i) all += stripes * stripe_cost(expert_rows(p, i).size());
  const std::uint64_t begin = all * task / tasks, end = all * (task + 1) / tasks;
  std::uint64_t at = 0;
  for (std::uint32_t i = 0; i < active && at < end; ++i) {
    const ExpertRows rows = expert_rows(p, i);
    const std::uint64_t each = stripe_cost(rows.size());
    // A stripe belongs to the task in whose share it begins.
    const auto first_from = [&](std::uint64_t cost) {
      return cost <= at ? 0u : static_cast<std::uint32_t>(std::min<std::uint64_t>(stripes, (cost - at + each - 1) / each));
    };
    const std::uint32_t from = first_from(begin), to = first_from(end);
    if (from < to) run_expert(p, rows, from, to, thread);
    at += stripes * each;
  }
}

void Exec::run_expert(const PhasePlan& p, const ExpertRows& rows, std::uint32_t from, std::uint32_t to, std::uint32_t thread) const {
  std::uint32_t before = 0;  // stripes of the products before
  for (const Product& product : p.products) {
    const std::uint32_t stripes = matrices_[product.weight].stripes;
    const std::uint32_t s0 = std::max(from, before) - before, s1 = std::min(to, before + stripes);
    if (s1 > before && s0 < s1 - before) {
      const Matrix w = expert_matrix(product.weight, rows.expert);
      for (std::uint32_t s = s0; s < s1 - before; ++s) run_expert_stripe(p, product, w, rows, s, thread);
    }
    before += stripes;
  }
}

Matrix Exec::expert_matrix(std::uint32_t weight, std::uint32_t expert) const {
  Matrix w = matrices_[weight];
  w.data += expert * w.stripe_bytes * w.stripes;
  if (w.has_tensor_scale) {
    w.tensor_scale = expert_scales_[weight][expert].scale;
    w.post = expert_scales_[weight][expert].post;
  }
  return w;
}

void Exec::run_expert_stripe(const PhasePlan& p, const Product& product, const Matrix& w, const ExpertRows& rows, std::uint32_t stripe,
                             std::uint32_t thread) const {
  const Grouping& g = plan_.groupings[p.grouping];
  const View y = product.out != kNone ? view(product.out) : View{reinterpret_cast<float*>(buffer(p.buffer)), std::size_t{g.top} * w.n};
  if (y.data == nullptr) return;
  const std::uint32_t n0 = stripe * kLanes, n = std::min(kLanes, w.n - n0);
  const float* bias = product.bias == kNone ? nullptr : vector(product.bias) + std::size_t{rows.expert} * w.n + n0;
  float *acc = scratch(thread), *panel = acc + kColumnChunk * kLanes;
  const Input in{product.acts != kNone ? std::optional{entry_acts(p, product)} : std::nullopt,
                 product.gathered != kNone ? View{reinterpret_cast<float*>(buffer(product.gathered)), w.k} : View{}};
  const std::optional<Groups> sorted = g.buffer != kNone ? std::optional{groups(p)} : std::nullopt;
  for (std::uint32_t m0 = rows.begin; m0 < rows.end; m0 += kColumnChunk) {
    const std::uint32_t m1 = std::min(rows.end, m0 + kColumnChunk);
    multiply(w, in, stripe, m0, m1, panel, acc);
    for (std::uint32_t m = m0; m < m1; ++m) {
      const std::size_t row = sorted ? sorted->row[m] : m - rows.begin, slot = sorted ? sorted->slot[m] : rows.expert;
      float *to = y.row(row) + slot * w.n + n0, *from = acc + (m - m0) * kLanes;
      for (std::uint32_t i = 0; bias != nullptr && i < n; ++i) from[i] += bias[i];
      std::memcpy(to, from, n * sizeof(float));
    }
  }
}

}  // namespace mekik::cpu
