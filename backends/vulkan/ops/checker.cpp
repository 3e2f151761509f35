#include "ops/checker.hpp"

#include <mekik/head_form.hpp>

namespace mekik::vulkan {

RowShape Checker::rows_of(const mekik_tensor& t, const std::string& what) const {
  need(t.role == MEKIK_ROLE_TEMP || t.role == MEKIK_ROLE_OUTPUT, what + " must be rows");
  need(t.shape[0] < 0, what + " must have a row for each token, sequence or chosen row");
  need(row_size(t) <= kMostColumns, what + " has rows of more than 2^24 numbers");
  return row_shape(t);
}

WeightShape Checker::weight(std::uint32_t i) const {
  const mekik_tensor& t = in(i);
  need(t.role == MEKIK_ROLE_WEIGHT, named(i) + " must be a weight");
  if (t.form != nullptr) {
    const std::string why = check_form(*t.form);
    need(why.empty(), named(i) + ": " + why);
    need(weight_shape(t).size() == whole_size(t), named(i) + " does not have the size of its form");
  }
  return weight_shape(t);
}

void Checker::vector(std::uint32_t i, std::uint64_t size, std::uint64_t other) const {
  if (!has(i)) return;
  const std::uint64_t got = weight(i).size();
  need(got == size || (other != 0 && got == other),
       named(i) + " has " + std::to_string(got) + " numbers where " + std::to_string(size) + " are needed");
}

void Checker::stack(std::uint32_t i, std::uint64_t groups, std::uint64_t rows, std::uint64_t k) const {
  const WeightShape w = weight(i);
  need(w.k == k && w.rows() == groups * rows && w.n % rows == 0,
       named(i) + " must be " + std::to_string(groups) + " matrices of " + std::to_string(rows) + " x " + std::to_string(k));
  const mekik_form* f = in(i).form;
  if (f == nullptr || w.n == rows) return;
  need(rows % std::max(f->row_step, 1u) == 0 && (f->kind == MEKIK_FORM_FLOAT || rows % f->group_n == 0),
       named(i) + " has scales that span two of its matrices");
}

std::uint64_t Checker::state(std::uint32_t i) const {
  const mekik_tensor& t = in(i);
  need(t.role == MEKIK_ROLE_STATE && t.rank == 3 && t.shape[0] < 0, named(i) + " must be a state [tokens][heads][numbers]");
  const KvForm form = kv_form(t.scheme);
  need(form != KvForm::none, "the state " + std::string{program.name(op.in[i])} + " is stored as \"" +
                                 (t.scheme != nullptr ? t.scheme : "") + "\"; this backend offers " + kKvFormNames);
  need(row_size(t) <= kMostColumns, named(i) + " has rows of more than 2^24 numbers");
  const bool codes = form == KvForm::codes8 || form == KvForm::codes4;
  const std::uint64_t most = codes ? kMostHeadNumbers : kMostKeyNumbers;
  need(last_size(t) <= most, named(i) + " has heads of more than " + std::to_string(most) + " numbers");
  return static_cast<std::uint64_t>(t.shape[1]);
}

void Checker::ids(std::uint32_t i, std::uint64_t bound) const {
  if (in(i).role == MEKIK_ROLE_INPUT) {
    const std::string_view name = program.name(op.in[i]);
    return need(name == "tokens" || name == "positions" || name == "segments" || name == "token_types",
                named(i) + " must be the input \"tokens\", \"positions\", \"segments\" or \"token_types\"");
  }
  const auto root = root_of(program, op.in[i]);
  for (std::uint32_t o = 0; root && o < index_; ++o) {
    const mekik_op& maker = program.op(o);
    if (maker.n_in == 0 || maker.n_out == 0 || maker.in == nullptr || maker.out == nullptr || maker.out[0] != root->tensor) continue;
    if (maker.in[0] >= program.n_tensors()) continue;
    const mekik_tensor& source = program.tensor(maker.in[0]);
    if (maker.code == op::argmax && last_size(source) <= bound) return;
    if ((maker.code == op::moe_route || maker.code == op::moe_route_mixer) && row_size(source) <= bound) return;
  }
  need(false, named(i) + " must be an input or what an argmax or a route made, within the rows of the weight");
}

}  // namespace mekik::vulkan
