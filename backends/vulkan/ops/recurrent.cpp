// Recurrences: a sequence's tokens one after the other, on a copy of the state that the step starts from.
#include "planner.hpp"

namespace mekik::vulkan {

namespace {
std::uint32_t narrow(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
}  // namespace

std::uint32_t Planner::load_slot(std::uint32_t slot) {
  const std::uint64_t numbers = whole_size(tensor(slot));
  const std::uint32_t states = new_buffer(MEKIK_DIM_SEQS, numbers);
  Dispatch& d = open("slot_load", MEKIK_DIM_SEQS, numbers);
  d.state = slot;
  d.set(kK, narrow(numbers));
  d.set(kI0, narrow(plan_.batch.state_in));
  bind(d, 0, {states, 0});
  return states;
}

void Planner::add_scan(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  const std::uint32_t slot = op.in[op.n_in - 1];
  std::vector<Ref> in(op.n_in);
  for (std::uint32_t i = 0; i + 1 < op.n_in; ++i)
    if (op.in[i] != kNone && tensor(op.in[i]).role != MEKIK_ROLE_WEIGHT) in[i] = read(op.in[i], o);
  const Ref states{load_slot(slot), 0}, y = write(op.out[0], o);
  const auto last = [&](std::uint32_t i) { return narrow(last_size(tensor(op.in[i]))); };
  const auto outer = [&](std::uint32_t i) { return narrow(row(op.in[i]) / last_size(tensor(op.in[i]))); };
  Dispatch& d = open(op.code == op::conv_state ? "conv_state"
                     : op.code == op::ssm_scan ? "ssm_scan"
                                               : "gated_delta",
                     MEKIK_DIM_SEQS, row(op.out[0]));
  d.state = slot;
  d.set(kK, narrow(whole_size(tensor(slot))));
  d.set(kI3, narrow(plan_.batch.starts));
  d.set(kI4, narrow(plan_.batch.state_out));
  bind(d, 0, y);
  bind(d, 1, in[0]);
  bind(d, 3, states);
  if (op.code == op::conv_state) {
    const auto channels = narrow(row(op.in[0]));
    d.constants = {narrow(static_cast<std::uint64_t>(op.ints[0]))};
    d.set(kN, channels);
    d.set(kH, narrow(whole_size(tensor(op.in[1])) / channels - 1));
    vector(d, kW2, op.in[1]);
    vector(d, kW3, op.in[2]);
    return;
  }
  d.local = 32;
  const auto beside = [&](std::uint32_t i, std::uint32_t offset, std::uint32_t stride) {
    patch(d, Patch::Kind::offset, offset, in[i]);
    patch(d, Patch::Kind::stride, stride, in[i]);
  };
  if (op.code == op::ssm_scan) {
    const std::uint32_t heads = outer(0), groups = outer(3);
    d.set(kM, heads);
    d.set(kH, last(0));
    d.set(kN, last(3));
    d.set(kI5, whole_size(tensor(op.in[2])) != heads ? 1 : 0);
    d.set(kI6, heads / groups);
    bind(d, 2, in[3]);
    beside(4, kI0, kI7);
    beside(1, kI1, kI2);
    vector(d, kW1, op.in[2]);
    vector(d, kW2, op.in[5]);
    return;
  }
  const std::uint32_t heads = outer(2);
  d.set(kM, heads);
  d.set(kH, last(2));
  d.set(kN, last(1));
  d.set(kI5, outer(1));
  d.set(kI6, narrow(static_cast<std::uint64_t>(op.ints[0])) | (row(op.in[3]) != heads ? 2u : 0u));
  d.set_float(kF0, op.reals[0]);
  bind(d, 2, in[1]);
  beside(2, kI0, kW1);
  beside(3, kI1, kW2);
  beside(4, kI2, kW3);
}

}  // namespace mekik::vulkan
