// Attention: a task is some rows of one sequence and one kv head with all its query heads (at most 24 vectors).
#include <algorithm>

#include "exec.hpp"

namespace mekik::cpu {

AttentionHeads Exec::heads_of(const PhasePlan& p) const {
  const mekik_op& op = program_.op(p.op);
  AttentionHeads h;
  h.kv = p.kind == PhasePlan::Kind::latent ? 1
         : p.kind == PhasePlan::Kind::full ? static_cast<std::uint32_t>(row_shape(program_.tensor(op.in[1])).outer)
                                           : plan_.states[op.in[1]].heads;
  h.each = static_cast<std::uint32_t>(row_shape(program_.tensor(op.in[0])).outer) / h.kv;
  h.parts = (h.each + kAttentionVectors - 1) / kAttentionVectors;
  return h;
}

const AttentionItems& Exec::items_for(std::uint32_t heads) const {
  const std::uint32_t rows = std::max(1u, kAttentionVectors / heads);
  return *std::find_if(items_.begin(), items_.end(), [&](const AttentionItems& i) { return i.rows_per_item == rows; });
}

// What all kinds share: the rows, the heads, the places of queries and results, the sequence's blocks.
Attention Exec::attention_task(const AttentionHeads& h, std::uint32_t task, View q, View out, std::uint32_t thread, std::uint32_t& kv_head,
                               std::uint32_t& seq) const {
  const AttentionItem& item = items_for(h.each).items[task / (h.kv * h.parts)];
  kv_head = task / h.parts % h.kv;
  seq = item.seq;
  const std::uint32_t part = task % h.parts;
  const auto start = static_cast<std::size_t>(batch_.seq_start[item.seq]);
  Attention a;
  a.q = q.row(start);
  a.out = out.row(start);
  a.q_stride = q.stride;
  a.out_stride = out.stride;
  a.row0 = item.row0;
  a.row1 = item.row1;
  a.head0 = kv_head * h.each + part * kAttentionVectors;
  a.heads = std::min(kAttentionVectors, h.each - part * kAttentionVectors);
  a.length = static_cast<std::uint32_t>(batch_.seq_start[item.seq + 1] - batch_.seq_start[item.seq]);
  a.scratch = scratch(thread);
  return a;
}

void Exec::in_blocks(Attention& a, std::uint32_t state, std::uint32_t kv_head, std::uint32_t seq) const {
  const StatePlan& s = plan_.states[state];
  const std::uint32_t group = program_.tensor(state).group;
  a.context = static_cast<std::uint32_t>(batch_.context_len[seq]);
  a.length += a.context;
  a.d = s.d;
  a.dv = s.dv;
  a.dvp = s.dvp;
  a.kv = s.num;
  a.codes = s.codes;
  a.latents = s.latents;
  a.exact = settings_.exact;
  a.base = pools_[group].data();
  a.table = batch_.blocks[group] + static_cast<std::size_t>(seq) * batch_.max_blocks;
  a.block_bytes = plan_.block_bytes[group];
  a.k_off = s.offset + kv_head * s.k_head;
  a.v_off = s.offset + s.v_offset + kv_head * s.v_head;
  a.block_tokens = limits_.block_tokens;
  a.lanes = plan_.lanes;
}

void Exec::run_attention(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const {
  const mekik_op& op = program_.op(p.op);
  const View out = view(op.out[0]);
  if (out.data == nullptr) return;
  std::uint32_t kv_head, seq;
  Attention a = attention_task(heads_of(p), task, view(op.in[0]), out, thread, kv_head, seq);
  in_blocks(a, op.in[1], kv_head, seq);
  a.causal = op.ints[1] != 0;
  (op.code == op::attention_chunk ? a.chunk : a.window) = static_cast<std::uint64_t>(op.ints[2]);
  a.scale = static_cast<float>(op.reals[0]);
  a.softcap = static_cast<float>(op.reals[1]);
  a.sinks = vector(op.in[2]);
  a.slopes = vector(op.in[3]);
  settings_.kernels->attention(a);
}

void Exec::run_latent(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const {
  const mekik_op& op = program_.op(p.op);
  const AttentionHeads h = heads_of(p);
  const auto rank = static_cast<std::size_t>(op.ints[0]);
  const View latents{reinterpret_cast<float*>(buffer(p.buffer)), h.each * rank}, turned = view(op.in[1]);
  std::uint32_t kv_head, seq;
  Attention a = attention_task(h, task, latents, latents, thread, kv_head, seq);  // each query's place takes its result
  in_blocks(a, op.in[4], kv_head, seq);
  a.q_rot = turned.row(static_cast<std::size_t>(batch_.seq_start[seq]));
  a.q_rot_stride = turned.stride;
  a.rot = static_cast<std::uint32_t>(op.ints[1]);
  a.window = static_cast<std::uint64_t>(op.ints[2]);
  a.scale = static_cast<float>(op.reals[0]);
  settings_.kernels->latent(a);
}

// Keys and values of one row to where run_full reads them: all keys of a head, [rows / 16][d][16], then all values, [rows][dvp].
void Exec::pack_row(const RowOp& r, std::uint32_t row) const {
  const mekik_op& op = program_.op(r.op);
  const RowShape k = row_shape(program_.tensor(op.in[1])), v = row_shape(program_.tensor(op.in[2]));
  const std::size_t dvp = round_up(v.last, 16), rows = plan_.full_rows();
  const std::uint32_t seq = seq_of_[row];
  const std::size_t at = full_place_[seq] + row - static_cast<std::size_t>(batch_.seq_start[seq]);
  auto* keys = reinterpret_cast<float*>(buffer(r.buffer));
  float* values = keys + k.outer * rows * k.last;
  for (std::size_t h = 0; h < k.outer; ++h) {
    const float *from = view(op.in[1]).row(row) + h * k.last, *value = view(op.in[2]).row(row) + h * v.last;
    float* to = keys + (h * rows + at / 16 * 16) * k.last + at % 16;
    for (std::size_t i = 0; i < k.last; ++i) to[i * 16] = from[i];
    float* out = values + (h * rows + at) * dvp;
    std::copy_n(value, v.last, out);
    std::fill(out + v.last, out + dvp, 0.0F);
  }
}

void Exec::run_full(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const {
  static constexpr std::int32_t kOneBlock = 0;
  const mekik_op& op = program_.op(p.op);
  const RowShape k = row_shape(program_.tensor(op.in[1])), v = row_shape(program_.tensor(op.in[2]));
  const View out = view(op.out[0]);
  if (out.data == nullptr) return;
  std::uint32_t kv_head, seq;
  Attention a = attention_task(heads_of(p), task, view(op.in[0]), out, thread, kv_head, seq);
  const std::uint64_t rows = plan_.full_rows(), place = kv_head * rows + full_place_[seq];
  a.d = static_cast<std::uint32_t>(k.last);
  a.dv = static_cast<std::uint32_t>(v.last);
  a.dvp = static_cast<std::uint32_t>(round_up(v.last, 16));
  a.causal = false;
  a.scale = static_cast<float>(op.reals[0]);
  if (op.code == op::attention_near) {
    a.near = true;
    a.window = static_cast<std::uint64_t>(op.ints[0]);
    a.softcap = static_cast<float>(op.reals[1]);
    a.sinks = vector(op.in[4]);
    a.slopes = vector(op.in[5]);
  }
  a.kv = Num::f32;
  a.base = buffer(p.buffer);
  a.table = &kOneBlock;
  a.block_tokens = 1u << 31;
  a.k_off = place * a.d * sizeof(float);
  a.v_off = (k.outer * rows * k.last + place * a.dvp) * sizeof(float);
  settings_.kernels->attention(a);
}

}  // namespace mekik::cpu
