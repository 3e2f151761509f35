// Matrix products: a task takes some stripes of 16 outputs and all rows. Results do not depend on who takes what.
#include <algorithm>
#include <cstring>

#include "exec.hpp"

namespace mekik::cpu {

std::uint32_t Exec::stripes_per_task(const PhasePlan& p) const {
  std::uint32_t stripes = 0;
  for (const Product& x : p.products) stripes += matrices_[x.weight].stripes;
  if (settings_.threads == 1) return stripes;
  return std::clamp(stripes / (8 * settings_.threads), 1u, 16u);
}

// While a stripe is multiplied the kernels ask for the numbers of the next one; the first of a task has nobody before it.
static void ask_for_numbers(const Matrix& w, std::uint32_t stripe) {
  const std::uint8_t* const data = w.data + stripe * w.stripe_bytes;
  if (w.integer)
    for (std::uint64_t i = w.off_scale; i < w.stripe_bytes; i += 64) __builtin_prefetch(data + i);
}

void Exec::run_linear(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const {
  const bool glu = program_.op(p.op).code == op::linear_glu;
  const std::uint32_t each = stripes_per_task(p);
  std::uint32_t stripe = task * each, left = each;
  for (std::uint32_t i = 0; i < (glu ? 1 : p.products.size()) && left != 0; ++i) {
    const std::uint32_t n = matrices_[p.products[i].weight].stripes;
    if (stripe < n) ask_for_numbers(matrices_[p.products[i].weight], stripe);
    if (glu && stripe < n) ask_for_numbers(matrices_[p.products[1].weight], stripe);
    for (; stripe < n && left != 0; ++stripe, --left) run_stripe(p, i, stripe, thread);
    stripe -= std::min(stripe, n);
  }
}

// acc [m1 - m0][16] = rows m0 .. m1 of the input times the stripe.
void Exec::multiply(const Matrix& w, const Input& x, std::uint32_t stripe, std::uint32_t m0, std::uint32_t m1, float* panel,
                    float* acc) const {
  const Kernels& k = *settings_.kernels;
  const std::uint8_t* data = w.data + stripe * w.stripe_bytes;
  const std::uint32_t m = m1 - m0;
  std::memset(acc, 0, static_cast<std::size_t>(m) * kLanes * sizeof(float));
  if (x.acts) {
    const IntGemm gemm = k.int_gemm(w);
    const std::uint32_t step = m > 4 ? kIntPass : w.blocks;
    for (std::uint32_t b = 0; b < w.blocks; b += step) gemm(w, data, *x.acts, m0, m1, b, std::min(b + step, w.blocks), acc);
    if (w.post != 1.0F)
      for (std::uint32_t i = 0; i < m * kLanes; ++i) acc[i] *= w.post;
    return;
  }
  const View v = x.floats;
  for (std::uint32_t c = 0; c < w.k; c += kPanelColumns) {
    const std::uint32_t n = std::min(kPanelColumns, w.k - c);
    if (w.floats) {
      k.mac(w.number, data + static_cast<std::size_t>(c) * kLanes * num_bytes(w.number), kLanes, n, v.row(m0) + c, v.stride, m, acc,
            kLanes);
    } else {
      k.decode(w, data, c, c + n, panel);
      k.mac(Num::f32, panel, kLanes, n, v.row(m0) + c, v.stride, m, acc, kLanes);
    }
  }
}

Input Exec::input(const Product& p, std::uint32_t x) const {
  const Matrix& w = matrices_[p.weight];
  if (p.acts != kNone) return {acts(p.acts, w.blocks, x), {}};
  return {std::nullopt, p.gathered != kNone ? View{reinterpret_cast<float*>(buffer(p.gathered)), w.k} : view(x)};
}

void Exec::run_stripe(const PhasePlan& p, std::uint32_t product, std::uint32_t stripe, std::uint32_t thread) const {
  const mekik_op& op = program_.op(p.op);
  const bool glu = op.code == op::linear_glu;
  const Product& first = p.products[product];
  const View y = view(first.out);
  if (y.data == nullptr) return;
  const std::uint32_t rows = rows_in(p.domain), n0 = stripe * kLanes, n = std::min(kLanes, matrices_[first.weight].n - n0);
  float *acc = scratch(thread), *up = acc + kColumnChunk * kLanes, *panel = up + kColumnChunk * kLanes;
  const auto bias = [&](const Product& q, float* at, std::uint32_t count) {
    if (q.bias == kNone) return;
    const float* b = vector(q.bias) + n0;
    for (std::uint32_t m = 0; m < count; ++m)
      for (std::uint32_t i = 0; i < n; ++i) at[m * kLanes + i] += b[i];
  };
  for (std::uint32_t m0 = 0; m0 < rows; m0 += kColumnChunk) {
    const std::uint32_t m1 = std::min(rows, m0 + kColumnChunk), count = m1 - m0;
    multiply(matrices_[first.weight], input(first, op.in[0]), stripe, m0, m1, panel, acc);
    bias(first, acc, count);
    if (glu) {
      multiply(matrices_[p.products[1].weight], input(p.products[1], op.in[0]), stripe, m0, m1, panel, up);
      bias(p.products[1], up, count);
      settings_.kernels->glu(static_cast<int>(op.ints[0]), acc, up, count * kLanes, static_cast<float>(op.reals[0]),
                             static_cast<float>(op.reals[1]), acc);
    }
    for (std::uint32_t m = 0; m < count; ++m) {
      float* to = y.row(m0 + m) + n0;
      const float* from = acc + m * kLanes;
      if (op.code == op::linear_add) {
        const float* r = view(op.in[3]).row(m0 + m) + n0;
        for (std::uint32_t i = 0; i < n; ++i) to[i] = from[i] + r[i];
      } else {
        std::memcpy(to, from, n * sizeof(float));
      }
    }
  }
}

}  // namespace mekik::cpu
