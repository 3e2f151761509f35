// Runs the operations of a program, one after the other, on memory that the caller gives.
#pragma once
#include <mekik/program.hpp>

#include <memory>
#include <vector>

#include "reference/ops.hpp"

namespace mekik::reference {

// Where the tensors of a program are, by index. Views need no entry: they are found through what they view.
struct Memory {
  struct Place {
    void* data = nullptr;            // rows: F32 or i32, row after row without gaps
    const Weight* weight = nullptr;  // WEIGHT
    State state;                     // STATE
    Slot slot;                       // SLOT
  };
  std::vector<Place> places;
  float* scratch = nullptr;  // the largest scratch_floats of the program
};

// Every operation must have passed check_op, and the batch the checks of whoever calls: ids within what they count, rows within the
// tokens, blocks and slots within the pools. Results are the same for any Threads.
void execute(const ProgramReader& program, std::uint32_t op, const Memory& memory, const Step& step);

}  // namespace mekik::reference
