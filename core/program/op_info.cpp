// The table of operations, from ops.def, and the ABI's view of a program.
#include <algorithm>
#include <array>

#include "program/program.hpp"

namespace mekik::program {

namespace {

constexpr OpInfo kOps[] = {
#define MEKIK_OP(code, name, min_in, max_in, n_out, n_ints, n_reals, doc) {code, #name, min_in, max_in, n_out, n_ints, n_reals, doc},
#include <mekik/ops.def>
};

}  // namespace

const OpInfo* op_info(std::uint32_t code) {
  for (const OpInfo& info : kOps)
    if (info.code == code) return &info;
  return nullptr;
}

const OpInfo* op_info(std::string_view name) {
  for (const OpInfo& info : kOps)
    if (info.name == name) return &info;
  return nullptr;
}

ProgramView::ProgramView(const Program& program, const std::vector<const mekik_form*>& forms) {
  tensors_.reserve(program.tensors.size());
  for (const Tensor& tensor : program.tensors) {
    mekik_tensor raw{};
    raw.name = tensor.name.c_str();
    raw.scheme = tensor.scheme.c_str();
    if (tensor.weight >= 0 && static_cast<std::size_t>(tensor.weight) < forms.size())
      raw.form = forms[static_cast<std::size_t>(tensor.weight)];
    raw.role = tensor.role;
    raw.rank = static_cast<std::uint32_t>(std::min<std::size_t>(tensor.shape.size(), 4));
    std::copy_n(tensor.shape.begin(), raw.rank, raw.shape);
    raw.group = tensor.group;
    raw.view_of = tensor.view_of;
    raw.column = tensor.column;
    tensors_.push_back(raw);
  }
  ops_.reserve(program.ops.size());
  for (const Op& op : program.ops) {
    mekik_op raw{};
    raw.code = op.code;
    raw.layer = op.layer;
    raw.in = op.in.data();
    raw.out = op.out.data();
    raw.n_in = static_cast<std::uint32_t>(op.in.size());
    raw.n_out = static_cast<std::uint32_t>(op.out.size());
    raw.ints = op.ints.data();
    raw.reals = op.reals.data();
    raw.n_ints = static_cast<std::uint32_t>(op.ints.size());
    raw.n_reals = static_cast<std::uint32_t>(op.reals.size());
    ops_.push_back(raw);
  }
  raw_.struct_size = sizeof raw_;
  raw_.op_set = 1;
  raw_.tensors = tensors_.data();
  raw_.n_tensors = static_cast<std::uint32_t>(tensors_.size());
  raw_.tensor_size = sizeof(mekik_tensor);
  raw_.ops = ops_.data();
  raw_.n_ops = static_cast<std::uint32_t>(ops_.size());
  raw_.op_size = sizeof(mekik_op);
  raw_.n_groups = static_cast<std::uint32_t>(program.groups.size());
}

}  // namespace mekik::program
