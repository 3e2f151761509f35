// Operations on rows: a phase is a list of them, and a task runs the whole list for some rows.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "exec.hpp"

namespace mekik::cpu {

namespace {

// A vector weight that covers the last size is used again for each part of a row; one that covers the row is not.
const float* part(const float* w, std::uint64_t size, const RowShape& x, std::uint64_t outer) {
  return w == nullptr ? nullptr : size == x.last ? w : w + outer * x.last;
}

}  // namespace

void Exec::run_rows(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const {
  const std::uint64_t rows = rows_in(p.domain), tasks = tasks_of(p);
  const auto r0 = static_cast<std::uint32_t>(rows * task / tasks), r1 = static_cast<std::uint32_t>(rows * (task + 1) / tasks);
  for (std::uint32_t row = r0; row < r1; ++row)
    for (const RowOp& r : p.rows) run_row(r, row, thread);
}

void Exec::run_row(const RowOp& r, std::uint32_t row, std::uint32_t thread) const {
  switch (r.kind) {
    case RowKind::op:
      return run_op_row(program_.op(r.op), r, row, thread);
    case RowKind::quantise: {
      const Matrix& m = matrices_[r.weight];
      const float* x = r.gathered != kNone ? reinterpret_cast<const float*>(buffer(r.gathered)) + static_cast<std::size_t>(row) * m.k
                                           : view(r.x).row(row);
      Acts a = acts(r.buffer, m.blocks, r.x).row(row);
      a.outlier = m.act_outlier;
      return settings_.kernels->quantise(x, m.k, a);
    }
    case RowKind::gather: {
      const std::vector<std::uint32_t>& inputs = plan_.weights[r.weight].layout.inputs;
      const float* x = view(r.x).row(row);
      float* y = reinterpret_cast<float*>(buffer(r.buffer)) + static_cast<std::size_t>(row) * inputs.size();
      for (std::size_t i = 0; i < inputs.size(); ++i) y[i] = x[inputs[i]];
      return;
    }
    case RowKind::rope_table:
      return rope_table_row(r, row);
    case RowKind::pack_kv:
      return pack_row(r, row);
    case RowKind::copy_out: {
      const mekik_tensor& t = program_.tensor(r.x);
      float* to = program_.name(r.x) == "logits" ? batch_.logits : batch_.hidden;
      const std::uint64_t n = row_size(t);
      if (to != nullptr) std::memcpy(to + row * n, view(r.x).row(row), n * sizeof(float));
      return;
    }
  }
}

void Exec::rope_table_row(const RowOp& r, std::uint32_t row) const {
  const std::uint64_t half = plan_.weights[r.weight].vector_size / 2;
  const float* table = vector(r.weight);
  float* y = reinterpret_cast<float*>(buffer(r.buffer)) + static_cast<std::size_t>(row) * 2 * half;
  for (std::uint64_t i = 0; i < half; ++i) {
    const float axis = table[half + i];
    const std::uint32_t which = axis > 0 && axis < static_cast<float>(batch_.n_axes) ? static_cast<std::uint32_t>(axis) : 0;
    const std::int32_t position = batch_.positions[static_cast<std::size_t>(which) * batch_.n_tokens + row];
    const double angle = static_cast<double>(position) * static_cast<double>(table[i]);
    y[i] = static_cast<float>(std::cos(angle) * static_cast<double>(r.magnitude));
    y[half + i] = static_cast<float>(std::sin(angle) * static_cast<double>(r.magnitude));
  }
}

void Exec::position_scale_row(const mekik_op& op, std::uint32_t row) const {
  const double steps = std::floor(static_cast<double>(batch_.positions[row] + op.ints[0]) / op.reals[0]);
  const auto by = static_cast<float>(1 + op.reals[1] * std::log1p(steps));
  float* y = view(op.out[0]).row(row);
  const auto n = static_cast<std::uint32_t>(row_size(program_.tensor(op.out[0])));
  if (y != nullptr) settings_.kernels->scale(view(op.in[0]).row(row), n, by, 0.0F, y);
}

// Rows that are not made of one row of their first operand; false: it is none of them.
bool Exec::run_special_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const {
  switch (op.code) {
    case op::embed:
      embed_row(op, row, thread);
      return true;
    case op::embed_mix:
      mix_row(op, row, thread);
      return true;
    case op::kv_append:
      append_row(op, row, thread);
      return true;
    case op::mla_append:
      append_latent_row(op, row, thread);
      return true;
    case op::put_rows:
      put_row(op, row);
      return true;
    case op::pool:
      pool_row(op, row);
      return true;
    case op::moe_route:
      route_row(op, row, thread);
      return true;
    case op::moe_route_mixer:
      mixer_row(op, row, thread);
      return true;
    case op::moe_scale:
      scale_choice_row(op, row);
      return true;
    case op::moe_spread:
      spread_row(op, row);
      return true;
    case op::position_scale:
      position_scale_row(op, row);
      return true;
    case op::moe_combine:
      combine_row(op, row, thread);
      return true;
    case op::take_rows: {
      float* y = view(op.out[0]).row(row);
      const std::uint64_t n = row_size(program_.tensor(op.out[0]));
      if (y != nullptr) std::memcpy(y, view(op.in[0]).row(static_cast<std::size_t>(batch_.rows[row])), n * sizeof(float));
      return true;
    }
    default:
      return false;
  }
}

void Exec::run_op_row(const mekik_op& op, const RowOp& r, std::uint32_t row, std::uint32_t thread) const {
  const Kernels& k = *settings_.kernels;
  if (run_special_row(op, row, thread)) return;
  const RowShape shape = row_shape(program_.tensor(op.in[0]));
  const auto n = static_cast<std::uint32_t>(shape.size()), last = static_cast<std::uint32_t>(shape.last);
  const float* x = view(op.in[0]).row(row);
  float* y = view(op.out[0]).row(row);
  if (y == nullptr) return;  // an output that nobody asked for
  const auto f = [&](std::uint32_t i) { return static_cast<float>(op.reals[i]); };
  const auto combine = [&](void (*kernel)(const float*, const float*, bool, std::uint32_t, float*)) {
    const mekik_tensor& t = program_.tensor(op.in[1]);
    const bool weight = t.role == MEKIK_ROLE_WEIGHT;
    const float* b = weight ? vector(op.in[1]) : view(op.in[1]).row(row);
    const std::uint64_t size = weight ? plan_.weights[op.in[1]].vector_size : row_size(t);
    if (size == n) return kernel(x, b, false, n, y);
    if (size == 1) return kernel(x, b, true, n, y);
    for (std::uint64_t o = 0; o < shape.outer; ++o) kernel(x + o * last, b + o, true, last, y + o * last);
  };
  const auto norm = [&](const float* from, std::uint32_t weight, float eps, float* to) {
    for (std::uint64_t o = 0; o < shape.outer; ++o) {
      const float* w = weight == kNone ? nullptr : part(vector(weight), plan_.weights[weight].vector_size, shape, o);
      k.rms_norm(from + o * last, w, last, eps, to + o * last);
    }
  };
  const auto rope = [&](const float* from) {
    const auto dim = static_cast<std::uint32_t>(op.ints[0]);
    const float* table = reinterpret_cast<const float*>(buffer(r.buffer)) + static_cast<std::size_t>(row) * dim;
    for (std::uint64_t o = 0; o < shape.outer; ++o)
      k.rope(from + o * last, last, table, table + dim / 2, dim, static_cast<int>(op.ints[1]), y + o * last);
  };
  switch (op.code) {
    case op::rms_norm:
      return norm(x, op.in[1], f(0), y);
    case op::layer_norm:
      for (std::uint64_t o = 0; o < shape.outer; ++o) {
        const auto w = [&](std::uint32_t i) {
          return op.in[i] == kNone ? nullptr : part(vector(op.in[i]), plan_.weights[op.in[i]].vector_size, shape, o);
        };
        k.layer_norm(x + o * last, w(1), w(2), last, f(0), y + o * last);
      }
      return;
    case op::l2_norm:
      for (std::uint64_t o = 0; o < shape.outer; ++o) k.l2_norm(x + o * last, last, f(0), y + o * last);
      return;
    case op::mean:
      for (std::uint64_t o = 0; o < shape.outer; ++o) y[o] = k.mean(x + o * last, last);
      return;
    case op::concat: {
      const auto more = static_cast<std::uint32_t>(row_shape(program_.tensor(op.in[1])).last);
      const float* b = view(op.in[1]).row(row);
      for (std::uint64_t o = 0; o < shape.outer; ++o) {
        std::memcpy(y + o * (last + more), x + o * last, last * sizeof(float));
        std::memcpy(y + o * (last + more) + last, b + o * more, more * sizeof(float));
      }
      return;
    }
    case op::softmax:
      for (std::uint64_t o = 0; o < shape.outer; ++o) k.softmax(x + o * last, last, y + o * last);
      return;
    case op::argmax:
      for (std::uint64_t o = 0; o < shape.outer; ++o) {
        std::int32_t best = 0;
        for (std::uint32_t i = 1; i < last; ++i)
          if (x[o * last + i] > x[o * last + static_cast<std::uint32_t>(best)]) best = static_cast<std::int32_t>(i);
        std::memcpy(y + o, &best, sizeof best);
      }
      return;
    case op::add:
      return combine(k.add);
    case op::mul:
      return combine(k.mul);
    case op::add_norm: {
      combine(k.add);
      float* normed = view(op.out[1]).row(row);
      if (normed != nullptr) norm(y, op.in[2], f(0), normed);
      return;
    }
    case op::act:
      return k.act(static_cast<int>(op.ints[0]), x, n, y);
    case op::glu:
      return k.glu(static_cast<int>(op.ints[0]), x, view(op.in[1]).row(row), n, f(0), f(1), y);
    case op::scale:
      return k.scale(x, n, f(0), f(1), y);
    case op::clamp:
      return k.clamp(x, n, f(0), f(1), y);
    case op::softcap:
      return k.softcap(x, n, f(0), y);
    case op::rope:
      return rope(x);
    case op::norm_rope:
      norm(x, op.in[1], f(0), y);
      return rope(y);
    case op::cast: {
      const Num to = op.ints[0] == MEKIK_F16 ? Num::f16 : op.ints[0] == MEKIK_BF16 ? Num::bf16 : Num::f32;
      std::uint16_t half[64];
      if (to == Num::f32) return k.cast(to, x, n, y);
      for (std::uint32_t i = 0; i < n; i += 64) {
        const std::uint32_t count = std::min(64u, n - i);
        k.cast(to, x + i, count, half);
        for (std::uint32_t j = 0; j < count; ++j) y[i + j] = load_num(to == Num::f16 ? MEKIK_F16 : MEKIK_BF16, half, j);
      }
      return;
    }
    default:
      return;
  }
}

}  // namespace mekik::cpu
