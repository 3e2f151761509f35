// One step: the batch is bound to tensors, phases get their numbers of tasks, the team runs them.
#include <algorithm>

#include "exec.hpp"

namespace mekik::cpu {

std::uint32_t Exec::rows_in(std::int64_t domain) const {
  return domain == MEKIK_DIM_TOKENS ? batch_.n_tokens : domain == MEKIK_DIM_SEQS ? batch_.n_seqs : batch_.n_rows;
}

void Exec::bind(const mekik_batch& b) {
  batch_ = b;
  if ((b.uses & MEKIK_USE_AXES) == 0) batch_.n_axes = 1;
  if ((b.uses & MEKIK_USE_EMBEDS) == 0) batch_.embed_rows = nullptr;
  if ((b.uses & MEKIK_USE_HIDDEN) == 0) batch_.hidden = nullptr;
  for (std::uint32_t s = 0; s < b.n_seqs; ++s)
    for (std::int32_t t = b.seq_start[s]; t < b.seq_start[s + 1]; ++t) seq_of_[t] = s;
  for (const std::uint32_t i : bound_) {
    const Root root = *root_of(program_, i);
    const std::string_view name = program_.name(root.tensor);
    float* data = nullptr;
    if (program_.tensor(root.tensor).role == MEKIK_ROLE_OUTPUT) data = name == "logits" ? batch_.logits : batch_.hidden;
    views_[i] = {data != nullptr ? data + root.column : nullptr, row_size(program_.tensor(root.tensor))};
  }
  std::fill(first_put_, first_put_ + b.n_tokens, kNone);
  for (std::uint32_t r = b.n_rows; r-- > 0 && b.rows != nullptr;) {  // lists of the rows of a token, ascending
    const std::int32_t t = b.rows[r];
    if (t < 0 || static_cast<std::uint32_t>(t) >= b.n_tokens) continue;  // a program that reads rows has had them checked
    next_put_[r] = first_put_[t];
    first_put_[t] = r;
  }
  for (AttentionItems& list : items_) {
    list.items.clear();
    for (std::uint32_t s = 0; s < b.n_seqs; ++s) {
      const auto length = static_cast<std::uint32_t>(b.seq_start[s + 1] - b.seq_start[s]);
      for (std::uint32_t row = 0; row < length; row += list.rows_per_item)
        list.items.push_back({s, row, std::min(length, row + list.rows_per_item)});
    }
    std::reverse(list.items.begin(), list.items.end());  // the rows that see most come first, so that no thread ends with them
  }
}

std::uint32_t Exec::tasks_of(const PhasePlan& p) const {
  const std::uint32_t rows = rows_in(p.domain);
  if (rows == 0) return 0;
  switch (p.kind) {
    case PhasePlan::Kind::rows: {
      if (rows * p.row_cost < 8192) return 1;
      return std::min(rows, 4 * settings_.threads);
    }
    case PhasePlan::Kind::linear: {
      std::uint32_t stripes = 0;
      bool wanted = false;
      for (const Product& x : p.products) {
        stripes += matrices_[x.weight].stripes;
        wanted = wanted || view(x.out).data != nullptr;
      }
      if (program_.op(p.op).code == op::linear_glu) stripes /= 2;
      if (!wanted) return 0;
      const std::uint32_t each = stripes_per_task(p);
      return (stripes + each - 1) / each;
    }
    default: {
      const mekik_op& op = program_.op(p.op);
      const std::uint32_t kv_heads = plan_.states[op.in[1]].heads;
      const auto heads = static_cast<std::uint32_t>(row_shape(program_.tensor(op.in[0])).outer / kv_heads);
      const std::uint32_t parts = (heads + kAttentionVectors - 1) / kAttentionVectors;
      return static_cast<std::uint32_t>(items_for(heads).items.size()) * kv_heads * parts;
    }
  }
}

void Exec::schedule() {
  phases_.clear();
  for (std::uint32_t i = 0; i < plan_.phases.size(); ++i)
    if (const std::uint32_t n = tasks_of(plan_.phases[i]); n != 0) phases_.push_back({n, run_task, i});
}

void Exec::run_task(void* self, std::uint32_t phase, std::uint32_t task, std::uint32_t thread) {
  const auto& exec = *static_cast<const Exec*>(self);
  const PhasePlan& p = exec.plan_.phases[phase];
  if (p.kind == PhasePlan::Kind::linear) return exec.run_linear(p, task, thread);
  if (p.kind == PhasePlan::Kind::attention) return exec.run_attention(p, task, thread);
  exec.run_rows(p, task, thread);
}

std::uint64_t Exec::submit(const mekik_batch& batch) {
  for (std::uint32_t i = 0; i < program_.n_tensors(); ++i)
    if (program_.tensor(i).role == MEKIK_ROLE_WEIGHT && !loaded_[i])
      throw Error{MEKIK_E_INVALID, "weight \"" + std::string{program_.name(i)} + "\" has not been loaded"};
  check_batch(batch);
  bind(batch);
  schedule();
  device_.team.run(phases_.data(), static_cast<std::uint32_t>(phases_.size()), this);
  return ++ticket_;
}

}  // namespace mekik::cpu
