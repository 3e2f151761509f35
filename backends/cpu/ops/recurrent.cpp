// Recurrences: a task is some channels of one sequence, with all its tokens of the step in order.
// Layout of a slot's part, F32: conv [taps - 1][channels], oldest input first; ssm and delta by group of channels that share their inputs
// (a group of heads, a head), within it by block of at most 64 channels: [n or dk][channels of the block]. Channels of a group are padded
// to 16.
#include <algorithm>
#include <cstring>

#include "exec.hpp"

namespace mekik::cpu {

namespace {

// Groups of channels, each group in blocks of 64.
struct Pieces {
  std::uint32_t groups, channels, rows;  // channels of one group; rows of the state
  std::uint32_t padded() const { return (channels + 15) / 16 * 16; }
  std::uint32_t blocks() const { return (padded() + kScanLanes - 1) / kScanLanes; }
  std::uint32_t count() const { return groups * blocks(); }
  std::uint64_t floats() const { return times(times(groups, padded()), rows); }
};
struct Piece {
  std::uint32_t group, first, width, columns;  // columns: of its width that are channels
  std::uint64_t offset, floats;
  Piece(const Pieces& p, std::uint32_t i) : group{i / p.blocks()}, first{i % p.blocks() * kScanLanes} {
    width = std::min(kScanLanes, p.padded() - first);
    columns = std::min(width, p.channels - first);
    offset = (std::uint64_t{group} * p.padded() + first) * p.rows;
    floats = std::uint64_t{width} * p.rows;
  }
};

Pieces pieces_of(const ProgramReader& program, const mekik_op& op) {
  const auto narrow = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const RowShape x = row_shape(program.tensor(op.in[0]));
  if (op.code == op::conv_state) return {1, narrow(x.size()), narrow(last_size(program.tensor(op.in[1])) - 1)};
  if (op.code == op::ssm_scan) {
    const RowShape b = row_shape(program.tensor(op.in[3]));
    return {narrow(b.outer), narrow(x.size() / b.outer), narrow(b.last)};
  }
  const RowShape v = row_shape(program.tensor(op.in[2]));
  return {narrow(v.outer), narrow(v.last), narrow(x.last)};
}

}  // namespace

std::uint64_t scan_floats(const ProgramReader& program, const mekik_op& op) { return pieces_of(program, op).floats(); }

bool a_by_column(const ProgramReader& program, const mekik_op& op) {
  return whole_size(program.tensor(op.in[2])) != row_shape(program.tensor(op.in[0])).outer;
}

// The states that a step starts from are read before any is written. Where another token's state goes to a slot that a sequence starts
// from, that sequence starts from a copy of it.
bool Exec::find_staged() {
  bool any = false;
  for (std::uint32_t t = 0; t < batch_.n_tokens; ++t)
    if (batch_.state_out[t] >= 0) writer_[static_cast<std::size_t>(batch_.state_out[t])] = static_cast<std::int32_t>(t);
  for (std::uint32_t s = 0; s < batch_.n_seqs; ++s) {
    const std::int32_t in = batch_.state_in[s], writer = in >= 0 ? writer_[static_cast<std::size_t>(in)] : -1;
    staged_[s] = writer >= 0 && writer != batch_.seq_start[s + 1] - 1 ? 1 : 0;
    any = any || staged_[s] != 0;
  }
  for (std::uint32_t t = 0; t < batch_.n_tokens; ++t)
    if (batch_.state_out[t] >= 0) writer_[static_cast<std::size_t>(batch_.state_out[t])] = -1;
  return any;
}

void Exec::stage(const PhasePlan& p) const {
  const SlotPlan& slot = plan_.slots[slot_of(p)];
  for (std::uint32_t s = 0; s < batch_.n_seqs; ++s)
    if (staged_[s] != 0) std::memcpy(stages_ + s * plan_.staged_floats, slot_at(slot, batch_.state_in[s]), slot.floats * sizeof(float));
}

float* Exec::slot_at(const SlotPlan& slot, std::int32_t id) const {
  return reinterpret_cast<float*>(slots_.data() + static_cast<std::uint64_t>(id) * plan_.slot_bytes + slot.offset);
}

// What a sequence's state was before the step; nullptr: nothing, it is zeros.
const float* Exec::state_before(const SlotPlan& slot, std::uint32_t seq) const {
  if (batch_.state_in[seq] < 0) return nullptr;
  return staged_[seq] != 0 ? stages_ + seq * plan_.staged_floats : slot_at(slot, batch_.state_in[seq]);
}

std::uint32_t Exec::scan_parts(const PhasePlan& p) const {  // of one sequence
  const std::uint32_t count = pieces_of(program_, program_.op(p.op)).count();
  return std::clamp(4 * settings_.threads / batch_.n_seqs + 1, 1u, count);
}

void Exec::run_scan(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const {
  const mekik_op& op = program_.op(p.op);
  if (view(op.out[0]).data == nullptr) return;
  const Pieces pieces = pieces_of(program_, op);
  const std::uint32_t parts = scan_parts(p), seq = task / parts, part = task % parts, count = pieces.count();
  const SlotPlan& slot = plan_.slots[slot_of(p)];
  const auto t0 = static_cast<std::uint32_t>(batch_.seq_start[seq]), t1 = static_cast<std::uint32_t>(batch_.seq_start[seq + 1]);
  const std::int32_t* saved = batch_.state_out;
  for (std::uint32_t i = count * part / parts; i < count * (part + 1) / parts; ++i) {
    const Piece piece{pieces, i};
    if (op.code == op::conv_state) {
      run_conv(op, slot, seq, piece.first, piece.columns);
      continue;
    }
    // The state is worked on where it is saved after the last token, and copied out where it is saved on the way.
    const float* before = state_before(slot, seq);
    float* state = saved[t1 - 1] >= 0 ? slot_at(slot, saved[t1 - 1]) + piece.offset : scratch(thread);
    float* rest = scratch(thread) + piece.floats;
    if (before == nullptr) std::fill(state, state + piece.floats, 0.0F);
    else if (before + piece.offset != state) std::memcpy(state, before + piece.offset, piece.floats * sizeof(float));
    for (std::uint32_t t = t0; t < t1;) {
      std::uint32_t end = t + 1;
      while (end < t1 && saved[end - 1] < 0) ++end;
      if (op.code == op::ssm_scan) run_ssm(op, piece.group, piece.first, piece.width, piece.columns, t, end, state, rest);
      else run_delta(op, piece.group, piece.first, piece.width, piece.columns, t, end, state, rest);
      if (saved[end - 1] >= 0 && end != t1) std::memcpy(slot_at(slot, saved[end - 1]) + piece.offset, state, piece.floats * sizeof(float));
      t = end;
    }
  }
}

void Exec::run_ssm(const mekik_op& op, std::uint32_t group, std::uint32_t first, std::uint32_t width, std::uint32_t columns,
                   std::uint32_t t0, std::uint32_t t1, float* state, float* rest) const {
  const RowShape x = row_shape(program_.tensor(op.in[0])), b = row_shape(program_.tensor(op.in[3]));
  const std::size_t lane = group * (x.size() / b.outer) + first;
  Scan a;
  a.state = state;
  a.n = static_cast<std::uint32_t>(b.last);
  a.width = width;
  a.columns = columns;
  a.tokens = t1 - t0;
  a.head0 = static_cast<std::uint32_t>(group * (x.outer / b.outer));
  a.channel0 = first;
  a.per_head = static_cast<std::uint32_t>(x.last);
  a.x = view(op.in[0]).row(t0) + lane;
  a.dt = view(op.in[1]).row(t0);
  a.b = view(op.in[3]).row(t0) + group * b.last;
  a.c = view(op.in[4]).row(t0) + group * b.last;
  a.x_stride = view(op.in[0]).stride;
  a.dt_stride = view(op.in[1]).stride;
  a.b_stride = view(op.in[3]).stride;
  a.c_stride = view(op.in[4]).stride;
  const bool by_column = plan_.weights[op.in[2]].columns;
  a.a = by_column ? by_columns(op.in[2]) : vector(op.in[2]);
  a.a_stride = by_column ? static_cast<std::uint32_t>(x.outer) : 0;
  a.d = vector(op.in[5]);
  a.y = view(op.out[0]).row(t0) + lane;
  a.y_stride = view(op.out[0]).stride;
  a.scratch = rest;
  settings_.kernels->scan(a);
}

void Exec::run_delta(const mekik_op& op, std::uint32_t head, std::uint32_t first, std::uint32_t width, std::uint32_t columns,
                     std::uint32_t t0, std::uint32_t t1, float* state, float* rest) const {
  const RowShape k = row_shape(program_.tensor(op.in[1])), v = row_shape(program_.tensor(op.in[2]));
  const std::size_t key_head = op.ints[0] == 1 ? head % k.outer : head / (v.outer / k.outer);
  const auto of = [&](std::uint32_t i, std::size_t column) { return view(op.in[i]).row(t0) + column; };
  const std::size_t each = row_shape(program_.tensor(op.in[3])).size() / v.outer;
  Delta a;
  a.state = state;
  a.dk = static_cast<std::uint32_t>(k.last);
  a.width = width;
  a.columns = columns;
  a.tokens = t1 - t0;
  a.q = of(0, key_head * k.last);
  a.k = of(1, key_head * k.last);
  a.v = of(2, head * v.last + first);
  a.decay = of(3, head * each);
  a.beta = of(4, head);
  a.q_stride = view(op.in[0]).stride;
  a.k_stride = view(op.in[1]).stride;
  a.v_stride = view(op.in[2]).stride;
  a.decay_stride = view(op.in[3]).stride;
  a.beta_stride = view(op.in[4]).stride;
  a.decay_by_row = each != 1;
  a.scale = static_cast<float>(op.reals[0]);
  a.y = view(op.out[0]).row(t0) + head * v.last + first;
  a.y_stride = view(op.out[0]).stride;
  a.scratch = rest;
  settings_.kernels->delta(a);
}

// Inputs before the step come from the slot, the others are rows of x; what is saved are the last of both.
void Exec::run_conv(const mekik_op& op, const SlotPlan& slot, std::uint32_t seq, std::uint32_t first, std::uint32_t columns) const {
  static constexpr float kZeros[kScanLanes] = {};
  const auto channels = static_cast<std::uint32_t>(row_size(program_.tensor(op.in[0])));
  const auto kept = static_cast<std::uint32_t>(last_size(program_.tensor(op.in[1]))) - 1;
  const std::size_t pitch = round_up(channels, 16);
  const auto t0 = static_cast<std::uint32_t>(batch_.seq_start[seq]), t1 = static_cast<std::uint32_t>(batch_.seq_start[seq + 1]);
  const float* before = state_before(slot, seq);
  // The input `i` places after the oldest that token t0 sees.
  const auto input = [&](std::uint32_t i) -> const float* {
    if (i >= kept) return view(op.in[0]).row(t0 + i - kept) + first;
    return before != nullptr ? before + i * pitch + first : kZeros;
  };
  const float* bias = op.in[2] == kNone ? nullptr : vector(op.in[2]) + first;
  const float* inputs[64];
  for (std::uint32_t t = t0; t < t1; ++t) {
    for (std::uint32_t i = 0; i <= kept; ++i) inputs[i] = input(t - t0 + i);
    settings_.kernels->conv(inputs, by_columns(op.in[1]) + first, channels, kept + 1, bias, static_cast<int>(op.ints[0]), columns,
                            view(op.out[0]).row(t) + first);
  }
  const auto save = [&](std::uint32_t t) {  // ascending: a slot may be the one that was read
    if (batch_.state_out[t] < 0) return;
    float* to = slot_at(slot, batch_.state_out[t]) + first;
    for (std::uint32_t i = 0; i < kept; ++i) std::memmove(to + i * pitch, input(t - t0 + 1 + i), columns * sizeof(float));
  };
  for (std::uint32_t t = t0; t < t1; ++t) save(t);
}

}  // namespace mekik::cpu
