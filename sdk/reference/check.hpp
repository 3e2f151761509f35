// Does an operation of a program have the operands, attributes and shapes that ops.def asks for? The reference operations and
// execute() rely on it: an operation that passes touches no memory outside its operands, whatever the data.
#pragma once
#include <mekik/program.hpp>

#include <string>

#include "reference/rows.hpp"

namespace mekik::reference {

// What is wrong with operation `i`; empty: the reference runs it. The tensors must have passed mekik::check_tensors. Thread: any.
std::string check_op(const ProgramReader& program, std::uint32_t i);
// F32 numbers of scratch that operation `i`, which passed check_op, needs at the given limits.
struct ScratchLimits {
  std::uint64_t rows, seqs;
};
std::uint64_t scratch_floats(const ProgramReader& program, std::uint32_t i, const ScratchLimits& limits);
// A KV form by its name ("f16", "q8_head", ...); without a number or a form of heads: not offered.
StateForm state_form(const char* scheme);

}  // namespace mekik::reference
