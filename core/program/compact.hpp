// Helpers that the passes share.
#pragma once
#include "program/program.hpp"

namespace mekik::program {

// Drops operations whose results nobody reads, then tensors, weights and groups that nobody names. Copies into outputs vanish where
// the copied value has no other reader.
Program compact(Program program);

// How often each tensor is read by an operation, itself or through a view.
std::vector<std::uint32_t> count_readers(const Program& program);

// The tensor that holds the numbers: itself, or what it is a view of.
inline std::uint32_t base_of(const Program& program, std::uint32_t tensor) {
  return program.tensors[tensor].view_of != 0 ? program.tensors[tensor].view_of - 1 : tensor;
}

}  // namespace mekik::program
