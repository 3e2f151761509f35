// The shapes of one operation.
#pragma once
#include <string>

#include "program/program.hpp"

namespace mekik::program {

// What is wrong with the shapes and attributes of an operation by ops.def; empty: nothing. Counts and indices were checked before.
std::string shape_fault(const Program& program, const Op& op);

}  // namespace mekik::program
