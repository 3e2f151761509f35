// Attention: a task is some rows of one sequence and one kv head with all its query heads (at most 24 vectors).
#include <algorithm>

#include "exec.hpp"

namespace mekik::cpu {

const AttentionItems& Exec::items_for(std::uint32_t heads) const {
  const std::uint32_t rows = std::max(1u, kAttentionVectors / heads);
  return *std::find_if(items_.begin(), items_.end(), [&](const AttentionItems& i) { return i.rows_per_item == rows; });
}

void Exec::run_attention(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const {
  const mekik_op& op = program_.op(p.op);
  const StatePlan& s = plan_.states[op.in[1]];
  const RowShape q = row_shape(program_.tensor(op.in[0]));
  const auto heads = static_cast<std::uint32_t>(q.outer / s.heads);
  const std::uint32_t parts = (heads + kAttentionVectors - 1) / kAttentionVectors;
  const AttentionItem& item = items_for(heads).items[task / (s.heads * parts)];
  const std::uint32_t kv_head = task / parts % s.heads, part = task % parts;
  const std::uint32_t group = program_.tensor(op.in[1]).group;
  const auto start = static_cast<std::size_t>(batch_.seq_start[item.seq]);
  Attention a;
  a.q = view(op.in[0]).row(start);
  a.out = view(op.out[0]).row(start);
  if (view(op.out[0]).data == nullptr) return;
  a.q_stride = view(op.in[0]).stride;
  a.out_stride = view(op.out[0]).stride;
  a.row0 = item.row0;
  a.row1 = item.row1;
  a.context = static_cast<std::uint32_t>(batch_.context_len[item.seq]);
  a.length = a.context + static_cast<std::uint32_t>(batch_.seq_start[item.seq + 1] - batch_.seq_start[item.seq]);
  a.head0 = kv_head * heads + part * kAttentionVectors;
  a.heads = std::min(kAttentionVectors, heads - part * kAttentionVectors);
  a.d = s.d;
  a.dv = s.dv;
  a.dvp = s.dvp;
  a.causal = op.ints[1] != 0;
  a.window = static_cast<std::uint64_t>(op.ints[2]);
  a.scale = static_cast<float>(op.reals[0]);
  a.softcap = static_cast<float>(op.reals[1]);
  a.sinks = vector(op.in[2]);
  a.slopes = vector(op.in[3]);
  a.kv = s.num;
  a.base = pools_[group].data();
  a.table = batch_.blocks[group] + static_cast<std::size_t>(item.seq) * batch_.max_blocks;
  a.block_bytes = plan_.block_bytes[group];
  a.k_off = s.offset + kv_head * s.k_head;
  a.v_off = s.offset + s.v_offset + kv_head * s.v_head;
  a.block_tokens = limits_.block_tokens;
  a.lanes = plan_.lanes;
  a.scratch = scratch(thread);
  settings_.kernels->attention(a);
}

}  // namespace mekik::cpu
