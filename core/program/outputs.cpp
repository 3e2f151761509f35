// What a program gives, and what it asks of a batch.
#include <algorithm>
#include <numeric>

#include "program/program.hpp"

namespace mekik::program {

namespace {

constexpr std::int64_t kPoolLast = 2;  // takes a sequence's last row of the step, however the rest came

}  // namespace

const Tensor& output_of(const Program& program) {
  return *std::find_if(program.tensors.begin(), program.tensors.end(), [](const Tensor& t) { return t.role == MEKIK_ROLE_OUTPUT; });
}

std::uint64_t output_size(const Program& program) {
  const std::vector<std::int64_t>& shape = output_of(program).shape;
  return std::accumulate(shape.begin() + 1, shape.end(), std::uint64_t{1},
                         [](std::uint64_t product, std::int64_t side) { return product * static_cast<std::uint64_t>(side); });
}

bool reads_input(const Program& program, std::string_view name) {
  return std::any_of(program.tensors.begin(), program.tensors.end(),
                     [&](const Tensor& t) { return t.role == MEKIK_ROLE_INPUT && t.name == name; });
}

bool needs_whole_sequences(const Program& program) {
  return reads_input(program, "segments") ||
         std::any_of(program.ops.begin(), program.ops.end(), [](const Op& op) { return op.code == op_pool && op.ints[0] != kPoolLast; });
}

}  // namespace mekik::program
