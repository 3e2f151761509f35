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
  if ((b.uses & MEKIK_USE_TYPES) == 0) batch_.token_types = nullptr;
  for (std::uint32_t s = 0; s < b.n_seqs; ++s)
    for (std::int32_t t = b.seq_start[s]; t < b.seq_start[s + 1]; ++t) seq_of_[t] = s;
  for (const std::uint32_t i : bound_) {
    const Root root = *root_of(program_, i);
    const std::string_view name = program_.name(root.tensor);
    float* data = nullptr;
    if (program_.tensor(root.tensor).role == MEKIK_ROLE_OUTPUT) data = name == "logits" ? batch_.logits : batch_.hidden;
    views_[i] = {data != nullptr ? data + root.column : nullptr, row_size(program_.tensor(root.tensor))};
  }
  bind_inputs();
  bind_items();
}

void Exec::bind_inputs() {
  const mekik_batch& b = batch_;
  std::fill(first_put_, first_put_ + b.n_tokens, kNone);
  for (std::uint32_t r = b.n_rows; r-- > 0 && b.rows != nullptr;) {  // lists of the rows of a token, ascending
    const std::int32_t t = b.rows[r];
    if (t < 0 || static_cast<std::uint32_t>(t) >= b.n_tokens) continue;  // a program that reads rows has had them checked
    next_put_[r] = first_put_[t];
    first_put_[t] = r;
  }
  std::uint32_t place = 0;
  for (std::uint32_t s = 0; s < b.n_seqs; ++s) {
    full_place_[s] = place;
    place += static_cast<std::uint32_t>(round_up(static_cast<std::uint64_t>(b.seq_start[s + 1] - b.seq_start[s]), 16));
  }
}

void Exec::bind_items() {
  for (AttentionItems& list : items_) {
    list.items.clear();
    for (std::uint32_t s = 0; s < batch_.n_seqs; ++s) {
      const auto length = static_cast<std::uint32_t>(batch_.seq_start[s + 1] - batch_.seq_start[s]);
      for (std::uint32_t row = 0; row < length; row += list.rows_per_item)
        list.items.push_back({s, row, std::min(length, row + list.rows_per_item)});
    }
    std::reverse(list.items.begin(), list.items.end());  // the rows that see most come first, so that no thread ends with them
  }
}

std::uint32_t Exec::tasks_of_linear(const PhasePlan& p) const {
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

// The tasks of row-like work on `rows` rows of `cost` numbers.
static std::uint32_t tasks_of_rows(std::uint64_t rows, std::uint64_t cost, std::uint32_t threads) {
  return rows * cost < 8192 ? 1 : static_cast<std::uint32_t>(std::min<std::uint64_t>(rows, 4 * threads));
}

std::uint32_t Exec::tasks_of(const PhasePlan& p) const {
  const std::uint32_t rows = rows_in(p.domain), threads = settings_.threads;
  if (rows == 0) return 0;
  switch (p.kind) {
    case PhasePlan::Kind::rows:
      return tasks_of_rows(rows, p.row_cost, threads);
    case PhasePlan::Kind::linear:
      return tasks_of_linear(p);
    case PhasePlan::Kind::group:
      return 1;
    case PhasePlan::Kind::spread:
      return tasks_of_rows(std::uint64_t{rows} * plan_.groupings[p.grouping].top, matrices_[p.products[0].weight].k, threads);
    case PhasePlan::Kind::experts: {  // how many experts have rows is known only when it runs
      const Grouping& g = plan_.groupings[p.grouping];
      std::uint64_t stripes = 0;
      for (const Product& x : p.products) stripes += matrices_[x.weight].stripes;
      stripes *= std::min<std::uint64_t>(g.experts, std::uint64_t{rows} * g.top);
      return threads == 1 ? 1 : static_cast<std::uint32_t>(std::clamp<std::uint64_t>(stripes / 4, 1, 16 * threads));
    }
    case PhasePlan::Kind::scan:
      return batch_.n_seqs * scan_parts(p);
    default: {
      const AttentionHeads h = heads_of(p);
      return static_cast<std::uint32_t>(items_for(h.each).items.size()) * h.kv * h.parts;
    }
  }
}

void Exec::schedule() {
  phases_.clear();
  const bool staged = plan_.slot_bytes != 0 && find_staged();
  for (std::uint32_t i = 0; i < plan_.phases.size(); ++i) {
    const std::uint32_t n = tasks_of(plan_.phases[i]);
    if (staged && n != 0 && plan_.phases[i].kind == PhasePlan::Kind::scan) phases_.push_back({1, run_stage, i});
    if (n != 0) phases_.push_back({n, run_task, i});
  }
}

void Exec::run_stage(void* self, std::uint32_t phase, std::uint32_t, std::uint32_t) {
  const auto& exec = *static_cast<const Exec*>(self);
  exec.stage(exec.plan_.phases[phase]);
}

void Exec::run_task(void* self, std::uint32_t phase, std::uint32_t task, std::uint32_t thread) {
  const auto& exec = *static_cast<const Exec*>(self);
  const PhasePlan& p = exec.plan_.phases[phase];
  switch (p.kind) {
    case PhasePlan::Kind::rows:
      return exec.run_rows(p, task, thread);
    case PhasePlan::Kind::linear:
      return exec.run_linear(p, task, thread);
    case PhasePlan::Kind::attention:
      return exec.run_attention(p, task, thread);
    case PhasePlan::Kind::full:
      return exec.run_full(p, task, thread);
    case PhasePlan::Kind::latent:
      return exec.run_latent(p, task, thread);
    case PhasePlan::Kind::scan:
      return exec.run_scan(p, task, thread);
    case PhasePlan::Kind::group:
      return exec.run_group(p);
    case PhasePlan::Kind::spread:
      return exec.run_spread(p, task);
    case PhasePlan::Kind::experts:
      return exec.run_experts(p, task, thread);
  }
}

std::uint64_t Exec::submit(const mekik_batch& batch) {
  for (std::uint32_t i = 0; i < program_.n_tensors(); ++i)
    if (program_.tensor(i).role == MEKIK_ROLE_WEIGHT && packed_[i] == nullptr)
      throw Error{MEKIK_E_INVALID, "weight \"" + std::string{program_.name(i)} + "\" has not been loaded"};
  check_batch(batch);
  bind(batch);
  schedule();
  run_phases();
  return ++ticket_;
}

}  // namespace mekik::cpu
