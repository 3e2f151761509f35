// The operands of one operation, found in memory: inputs and outputs by their position, attributes as ops.def lists them.
#pragma once
#include "reference/execute.hpp"

namespace mekik::reference {

// Borrows all that it is made of.
class Operands {
 public:
  Operands(const ProgramReader& program, std::uint32_t index, const Memory& memory, const Step& step)
      : program_{program}, op_{program.op(index)}, memory_{memory}, step_{step} {}

  bool has(std::uint32_t i) const { return op_.in[i] != MEKIK_NONE; }
  Rows rows(std::uint32_t i) const { return matrix<float>(op_.in[i]); }
  Rows out(std::uint32_t i = 0) const { return matrix<float>(op_.out[i]); }
  Ids ids(std::uint32_t i) const {
    const auto m = matrix<std::int32_t>(op_.in[i]);
    return {m.data, m.n, m.stride, m.outer, m.last};
  }
  Matrix<std::int32_t> out_ids() const { return matrix<std::int32_t>(op_.out[0]); }
  const Weight& weight(std::uint32_t i) const { return *memory_.places[op_.in[i]].weight; }
  Flat flat(std::uint32_t i) const { return has(i) ? weight(i).decode_all() : Flat{}; }
  const State& state(std::uint32_t i) const { return memory_.places[op_.in[i]].state; }
  const Slot& slot(std::uint32_t i) const { return memory_.places[op_.in[i]].slot; }
  RopeAxes axes() const { return {step_.batch->positions, std::max(step_.batch->n_axes, 1u), step_.batch->n_tokens}; }
  std::int64_t whole(std::uint32_t i) const { return op_.ints[i]; }
  double real(std::uint32_t i) const { return op_.reals[i]; }
  const mekik_op& op() const { return op_; }
  const Step& step() const { return step_; }
  float* scratch() const { return memory_.scratch; }
  bool is_weight(std::uint32_t i) const { return program_.tensor(op_.in[i]).role == MEKIK_ROLE_WEIGHT; }

 private:
  std::size_t count(std::int64_t dim) const {
    if (dim == MEKIK_DIM_TOKENS) return step_.batch->n_tokens;
    if (dim == MEKIK_DIM_SEQS) return step_.batch->n_seqs;
    return dim == MEKIK_DIM_ROWS ? step_.batch->n_rows : static_cast<std::size_t>(dim);
  }
  template <class T>
  Matrix<T> matrix(std::uint32_t i) const {
    const mekik_tensor& t = program_.tensor(i);
    const Root root = *root_of(program_, i);
    const std::size_t last = last_size(t);
    return {static_cast<T*>(memory_.places[root.tensor].data) + root.column, count(t.shape[0]), row_size(program_.tensor(root.tensor)),
            row_size(t) / last, last};
  }

  const ProgramReader& program_;
  const mekik_op& op_;
  const Memory& memory_;
  const Step& step_;
};

}  // namespace mekik::reference
