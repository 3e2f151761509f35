// Pulling weights: panels of rows go from the form straight into stripes, on all threads.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "exec.hpp"

namespace mekik::cpu {

namespace {

bool same_numbers(const mekik_form& a, const mekik_form& b) {
  return a.kind == b.kind && a.bits == b.bits && a.group_k == b.group_k && a.group_n == b.group_n && a.super_k == b.super_k &&
         a.scale_num == b.scale_num && a.super_num == b.super_num && a.min_num == b.min_num && a.super_min_num == b.super_min_num &&
         a.zero_num == b.zero_num && a.zero == b.zero && a.round_num == b.round_num && a.n_table == b.n_table && a.n_kept == b.n_kept &&
         a.experts == b.experts && a.n == b.n && a.k == b.k && a.kept_num == b.kept_num && a.row_step == b.row_step;
}

// Codes beyond the form's bits would run into their neighbours.
bool codes_fit(const mekik_form& f, const mekik_form_rows& rows, std::uint64_t n) {
  if (f.kind == MEKIK_FORM_FLOAT) return true;
  std::uint32_t most = (1u << f.bits) - 1;
  if (f.kind == MEKIK_FORM_CODEBOOK) most = std::min(most, f.n_table - 1);
  if (most == 255) return true;
  std::uint8_t top = 0;
  for (std::uint64_t i = 0; i < n * f.k; ++i) top = std::max(top, rows.codes[i]);
  return top <= most;
}

bool permutation(const mekik_form& f) {
  if (f.k_perm == nullptr) return true;
  std::vector<bool> seen(f.k);
  for (std::uint64_t i = 0; i < f.k; ++i) {
    if (f.k_perm[i] >= f.k || seen[f.k_perm[i]]) return false;
    seen[f.k_perm[i]] = true;
  }
  return true;
}

struct Loading {
  const mekik_weight* w;
  const Layout* layout;
  std::uint8_t* data;
  std::uint64_t experts, rows, panel;  // matrices of the stack as it is packed, rows of each, rows asked for at once
  std::vector<Staging>* stages;
  std::atomic<mekik_status> status{MEKIK_OK};
  std::atomic<bool> bad_codes{false};

  std::uint64_t panels() const { return (rows + panel - 1) / panel; }
};

void load_panel(void* ctx, std::uint32_t, std::uint32_t task, std::uint32_t thread) {
  auto& l = *static_cast<Loading*>(ctx);
  if (l.status != MEKIK_OK || l.bad_codes) return;
  const mekik_form& form = *l.w->form;
  const std::uint64_t expert = task / l.panels(), n0 = task % l.panels() * l.panel, n1 = std::min(n0 + l.panel, l.rows);
  const std::uint64_t first = expert * l.rows, before = first % form.n;  // rows of the form's own matrix that come before
  Staging& stage = (*l.stages)[thread];
  if (const mekik_status s = l.w->rows(l.w->self, first / form.n, before + n0, before + n1, stage.get()); s != MEKIK_OK) {
    l.status = s;
    return;
  }
  if (!codes_fit(form, *stage.get(), n1 - n0)) {
    l.bad_codes = true;
    return;
  }
  pack_rows(form, *l.layout, *stage.get(), n0, n1, l.data + expert * l.layout->bytes());
}

// The form of one matrix of the stack, packed as `rows` rows each.
mekik_form one_of(const mekik_form& form, std::uint64_t expert, std::uint64_t rows) {
  mekik_form one = form;
  one.experts = 1;
  one.n = rows;
  if (one.tensor_scale != nullptr) one.tensor_scale += expert * rows / form.n;
  return one;
}

}  // namespace

// What is wrong with a weight before any of it is read. Throws.
const WeightPlan& Exec::check_weight(const mekik_weight& w) const {
  if (w.struct_size < sizeof(mekik_weight) || w.form == nullptr || w.rows == nullptr)
    throw Error{MEKIK_E_INVALID, "a weight without its form or rows"};
  if (w.tensor >= program_.n_tensors() || program_.tensor(w.tensor).role != MEKIK_ROLE_WEIGHT)
    throw Error{MEKIK_E_INVALID, "tensor " + std::to_string(w.tensor) + " is no weight"};
  const std::string name = "weight \"" + std::string{program_.name(w.tensor)} + "\"";
  if (const std::string why = why_not_packed(*w.form); !why.empty()) throw Error{MEKIK_E_INVALID, name + ": " + why};
  if (!permutation(*w.form)) throw Error{MEKIK_E_INVALID, name + ": the order of its columns is no permutation"};
  const WeightPlan& plan = plan_.weights[w.tensor];
  if (!same_numbers(plan.form, *w.form) ||
      (plan.matrix && make_layout(one_of(*w.form, 0, w.form->n)).matrix.integer != plan.layout.matrix.integer))
    throw Error{MEKIK_E_INVALID, name + " does not come in the form of the plan"};
  return plan;
}

// Memory for packed weights comes with the first that is packed here: a program whose weights are all mapped needs none.
std::uint8_t* Exec::own(const WeightPlan& plan) {
  if (weights_.data() == nullptr) weights_ = Arena{plan_.weight_bytes, "weights"};
  return weights_.data() + plan.offset;
}

mekik_status Exec::load_matrix(const mekik_weight& w, const WeightPlan& plan, std::uint8_t* to) {
  const std::uint64_t rows = w.form->experts * w.form->n / plan.experts;
  const Layout layout = make_layout(one_of(*w.form, 0, rows));
  Loading l{&w, &layout, to + plan.matrix_offset, plan.experts, rows, panel_rows(*w.form), nullptr};
  const std::uint64_t tasks = l.experts * l.panels();
  if (tasks >= 1u << 24) throw Error{MEKIK_E_UNSUPPORTED, "a stack of more than 2^24 panels"};
  std::vector<Staging> stages;
  for (std::uint32_t t = 0; t < settings_.threads; ++t) stages.emplace_back(*w.form, std::min(l.panel, rows));
  l.stages = &stages;
  const Phase phase{static_cast<std::uint32_t>(tasks), load_panel, 0};
  device_.team.run(&phase, 1, &l);
  if (l.bad_codes)
    throw Error{MEKIK_E_INVALID, "weight \"" + std::string{program_.name(w.tensor)} + "\" has codes that its form does not know"};
  return l.status;
}

// All rows, decoded: one after another, or by column.
mekik_status Exec::load_vector(const mekik_weight& w, const WeightPlan& plan, std::uint8_t* to) const {
  const mekik_form& form = *w.form;
  const std::uint64_t panel = panel_rows(form), all = form.experts * form.n;
  Staging stage{form, std::min(panel, form.n)};
  auto *rows = reinterpret_cast<float*>(to + plan.vector_offset), *columns = reinterpret_cast<float*>(to + plan.columns_offset);
  std::vector<float> decoded(plan.vector ? 0 : std::min(panel, form.n) * form.k);
  for (std::uint64_t e = 0; e < form.experts; ++e) {
    const mekik_form one = one_of(form, e, form.n);
    for (std::uint64_t n0 = 0; n0 < form.n; n0 += panel) {
      const std::uint64_t n1 = std::min(n0 + panel, form.n), first = e * form.n + n0;
      if (const mekik_status s = w.rows(w.self, e, n0, n1, stage.get()); s != MEKIK_OK) return s;
      float* out = plan.vector ? rows + first * form.k : decoded.data();
      decode_rows(one, *stage.get(), n0, n1, out);
      for (std::uint64_t n = 0; plan.columns && n < n1 - n0; ++n)
        for (std::uint64_t k = 0; k < form.k; ++k) columns[k * all + first + n] = out[n * form.k + k];
    }
  }
  return MEKIK_OK;
}

// The weight's packed bytes are at `data`: tables, scales and kept columns are those of its form.
void Exec::place_weight(const mekik_weight& w, const std::uint8_t* data) {
  static constexpr std::uint8_t kNothing[1] = {};  // a weight that no operation multiplies or reads has no bytes
  WeightPlan& plan = plan_.weights[w.tensor];
  packed_[w.tensor] = data != nullptr ? data : kNothing;
  if (!plan.matrix) return;
  const std::uint64_t rows = w.form->experts * w.form->n / plan.experts;
  expert_scales_[w.tensor].clear();
  for (std::uint64_t e = 0; w.form->tensor_scale != nullptr && e < plan.experts; ++e) {
    const Matrix m = make_layout(one_of(*w.form, e, rows)).matrix;
    expert_scales_[w.tensor].push_back({m.tensor_scale, m.post});
  }
  plan.layout = make_layout(one_of(*w.form, 0, rows));
  matrices_[w.tensor] = plan.layout.matrix;
  matrices_[w.tensor].data = data + plan.matrix_offset;
  matrices_[w.tensor].kept = plan.layout.kept.data();
}

mekik_status Exec::weight(const mekik_weight& w) {
  const WeightPlan& plan = check_weight(w);
  packed_[w.tensor] = nullptr;
  std::uint8_t* to = own(plan);
  if (plan.matrix)
    if (const mekik_status s = load_matrix(w, plan, to); s != MEKIK_OK) return s;
  if (plan.vector || plan.columns)
    if (const mekik_status s = load_vector(w, plan, to); s != MEKIK_OK) return s;
  place_weight(w, to);
  return MEKIK_OK;
}

void Exec::id(std::uint8_t* sha256) const { std::copy_n(plan_.packed_id, sizeof plan_.packed_id, sha256); }

std::span<const std::uint8_t> Exec::packed(std::uint32_t tensor) const {
  if (tensor >= program_.n_tensors() || packed_[tensor] == nullptr)
    throw Error{MEKIK_E_INVALID, "tensor " + std::to_string(tensor) + " is no weight that was loaded"};
  return {packed_[tensor], plan_.weights[tensor].bytes};
}

void Exec::map(const mekik_weight& w, const void* data, std::uint64_t bytes) {
  const WeightPlan& plan = check_weight(w);
  if (bytes != plan.bytes || (data == nullptr && bytes != 0) || reinterpret_cast<std::uintptr_t>(data) % 64 != 0)
    throw Error{MEKIK_E_INVALID, "weight \"" + std::string{program_.name(w.tensor)} + "\" has " + std::to_string(plan.bytes) +
                                     " packed bytes, aligned to 64; " + std::to_string(bytes) + " came"};
  place_weight(w, static_cast<const std::uint8_t*>(data));
}

}  // namespace mekik::cpu
