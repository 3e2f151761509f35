// Does an operation of a program have the operands, attributes and shapes that ops.def asks for? The reference operations and
// execute() rely on it: an operation that passes touches no memory outside its operands, whatever the data.
#pragma once
#include <mekik/program.hpp>

#include <string>

namespace mekik::reference {

// What is wrong with operation `i`; empty: the reference runs it. The tensors must have passed mekik::check_tensors. Thread: any.
std::string check_op(const ProgramReader& program, std::uint32_t i);
// F32 numbers of scratch that operation `i`, which passed check_op, needs at the given limits.
struct ScratchLimits {
  std::uint64_t rows, seqs;
};
std::uint64_t scratch_floats(const ProgramReader& program, std::uint32_t i, const ScratchLimits& limits);
// Name of a KV form ("f16", "bf16", "f32") as a mekik_num; 0: not offered.
std::uint32_t kv_num(const char* scheme);

}  // namespace mekik::reference
