#include "program/compact.hpp"

#include <algorithm>

namespace mekik::program {

namespace {

constexpr std::uint32_t kGone = MEKIK_NONE;

// Copies into outputs: the operation that made the value writes the output itself.
void shorten_outputs(Program& program) {
  const std::vector<std::uint32_t> readers = count_readers(program);
  std::vector<std::uint32_t> writer(program.tensors.size(), kGone);
  for (std::uint32_t i = 0; i < program.ops.size(); ++i)
    for (const std::uint32_t out : program.ops[i].out) writer[out] = i;
  for (Op& op : program.ops) {
    if (op.code != op_scale || op.reals != std::vector<double>{1, 0} || op.out.empty()) continue;
    const std::uint32_t from = op.in[0], to = op.out[0];
    const Tensor& source = program.tensors[from];
    if (program.tensors[to].role != MEKIK_ROLE_OUTPUT || source.role != MEKIK_ROLE_TEMP || source.view_of != 0 || readers[from] != 1 ||
        writer[from] == kGone)
      continue;
    Op& maker = program.ops[writer[from]];
    std::replace(maker.out.begin(), maker.out.end(), from, to);
    op.code = 0;  // dropped below: it has no output any more
    op.in.clear();
    op.out.clear();
  }
  std::erase_if(program.ops, [](const Op& op) { return op.code == 0; });
}

void drop_dead(Program& program) {
  std::vector<bool> live(program.tensors.size(), false);
  std::vector<bool> keep(program.ops.size(), false);
  for (std::size_t i = 0; i < program.tensors.size(); ++i) live[i] = program.tensors[i].role == MEKIK_ROLE_OUTPUT;
  for (std::size_t i = program.ops.size(); i-- > 0;) {
    const Op& op = program.ops[i];
    const bool appends = op.out.empty() && !op.in.empty() && live[op.in.back()];
    keep[i] = appends || std::any_of(op.out.begin(), op.out.end(), [&](std::uint32_t out) { return live[out]; });
    if (!keep[i]) continue;
    for (const std::uint32_t in : op.in) {
      if (in == MEKIK_NONE) continue;
      live[in] = true;
      live[base_of(program, in)] = true;
    }
  }
  std::size_t at = 0;
  std::erase_if(program.ops, [&](const Op&) { return !keep[at++]; });
}

void drop_unnamed(Program& program) {
  std::vector<std::uint32_t> next(program.tensors.size(), kGone);
  const auto name = [&](std::uint32_t tensor) {
    if (tensor == MEKIK_NONE) return;
    next[tensor] = 0;
    next[base_of(program, tensor)] = 0;
  };
  for (const Op& op : program.ops) {
    for (const std::uint32_t in : op.in) name(in);
    for (const std::uint32_t out : op.out) name(out);
  }
  std::vector<std::int32_t> weight_next(program.weights.size(), -1);
  std::vector<std::uint32_t> group_next(program.groups.size(), kGone);
  std::vector<Tensor> tensors;
  std::vector<WeightRecipe> weights;
  std::vector<StateGroup> groups;
  program.n_slots = 0;
  for (std::size_t i = 0; i < program.tensors.size(); ++i) {
    if (next[i] == kGone) continue;
    next[i] = static_cast<std::uint32_t>(tensors.size());
    Tensor tensor = std::move(program.tensors[i]);
    if (tensor.weight >= 0) {
      std::int32_t& weight = weight_next[static_cast<std::size_t>(tensor.weight)];
      if (weight < 0) {
        weight = static_cast<std::int32_t>(weights.size());
        weights.push_back(std::move(program.weights[static_cast<std::size_t>(tensor.weight)]));
      }
      tensor.weight = weight;
    }
    if (tensor.role == MEKIK_ROLE_STATE) {
      std::uint32_t& group = group_next[tensor.group];
      if (group == kGone) {
        group = static_cast<std::uint32_t>(groups.size());
        groups.push_back(program.groups[tensor.group]);
      }
      tensor.group = group;
    }
    if (tensor.role == MEKIK_ROLE_SLOT) ++program.n_slots;
    tensors.push_back(std::move(tensor));
  }
  const auto move = [&](std::uint32_t& tensor) {
    if (tensor != MEKIK_NONE) tensor = next[tensor];
  };
  for (Tensor& tensor : tensors)
    if (tensor.view_of != 0) tensor.view_of = 1 + next[tensor.view_of - 1];
  for (Op& op : program.ops) {
    std::for_each(op.in.begin(), op.in.end(), move);
    std::for_each(op.out.begin(), op.out.end(), move);
  }
  program.tensors = std::move(tensors);
  program.weights = std::move(weights);
  program.groups = std::move(groups);
}

}  // namespace

std::vector<std::uint32_t> count_readers(const Program& program) {
  std::vector<std::uint32_t> out(program.tensors.size(), 0);
  for (const Op& op : program.ops)
    for (const std::uint32_t in : op.in) {
      if (in == MEKIK_NONE) continue;
      ++out[in];
      if (const std::uint32_t base = base_of(program, in); base != in) ++out[base];
    }
  return out;
}

Program compact(Program program) {
  drop_dead(program);
  shorten_outputs(program);
  drop_unnamed(program);
  return program;
}

}  // namespace mekik::program
