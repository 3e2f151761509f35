#include "weights/form_layout.hpp"

#include <mekik/numbers.hpp>

#include <algorithm>
#include <cstring>

namespace mekik::weights {

namespace {

std::uint64_t round_up_divide(std::uint64_t value, std::uint64_t by) { return by == 0 ? 0 : value / by + (value % by != 0 ? 1 : 0); }

template <class T>
bool same_array(const T* a, const T* b, std::uint64_t n) {
  if (n == 0 || (a == nullptr && b == nullptr)) return true;
  return a != nullptr && b != nullptr && std::memcmp(a, b, n * sizeof(T)) == 0;
}

}  // namespace

FormLayout::FormLayout(const mekik_form& form) : group_n{std::max(form.group_n, 1u)} {
  if (form.kind == MEKIK_FORM_FLOAT) {
    members[6] = {form.k * num_size(form.kept_num), false};
    return;
  }
  const std::uint64_t groups = round_up_divide(form.k, form.group_k), supers = round_up_divide(form.k, form.super_k);
  members[0] = {form.k, false};
  members[1] = {groups * num_size(form.scale_num), true};
  members[2] = {supers * num_size(form.super_num), true};
  members[3] = {groups * num_size(form.min_num), true};
  members[4] = {supers * num_size(form.super_min_num), true};
  members[5] = {groups * num_size(form.zero_num), true};
  members[6] = {form.n_kept * num_size(form.kept_num), false};
}

std::size_t FormLayout::bytes(std::uint64_t rows) const {
  std::size_t sum = 0;
  for (const Member& member : members) sum += member.row_bytes * (member.grouped ? round_up_divide(rows, group_n) : rows);
  return sum;
}

MemberPointers::MemberPointers(const mekik_form_rows& rows)
    : at{rows.codes,
         static_cast<std::uint8_t*>(rows.scale),
         static_cast<std::uint8_t*>(rows.super),
         static_cast<std::uint8_t*>(rows.min),
         static_cast<std::uint8_t*>(rows.super_min),
         static_cast<std::uint8_t*>(rows.zero),
         static_cast<std::uint8_t*>(rows.kept)} {}

mekik_form_rows MemberPointers::rows() const { return {sizeof(mekik_form_rows), 0, at[0], at[1], at[2], at[3], at[4], at[5], at[6]}; }

FormBuffer::FormBuffer(const FormLayout& layout, std::uint64_t rows) {
  // Each member starts at a multiple of 16, so that a plugin may use aligned stores.
  std::size_t total = 0, starts[FormLayout::kMembers] = {};
  for (std::size_t i = 0; i < FormLayout::kMembers; ++i) {
    const Member& member = layout.members[i];
    starts[i] = total;
    total += (member.row_bytes * (member.grouped ? round_up_divide(rows, layout.group_n) : rows) + 15) / 16 * 16;
  }
  memory_.resize(total + 16);
  std::uint8_t* base = memory_.data() + (16 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 16) % 16;
  MemberPointers pointers{mekik_form_rows{}};
  for (std::size_t i = 0; i < FormLayout::kMembers; ++i) pointers.at[i] = layout.members[i].row_bytes != 0 ? base + starts[i] : nullptr;
  rows_ = pointers.rows();
}

bool same_form(const mekik_form& a, const mekik_form& b) {
  const bool numbers = a.kind == b.kind && a.bits == b.bits && a.group_k == b.group_k && a.group_n == b.group_n && a.super_k == b.super_k &&
                       a.scale_num == b.scale_num && a.super_num == b.super_num && a.min_num == b.min_num &&
                       a.super_min_num == b.super_min_num && a.zero_num == b.zero_num && a.zero == b.zero && a.round_num == b.round_num &&
                       a.exact == b.exact && a.n_table == b.n_table && a.n_kept == b.n_kept && a.kept_num == b.kept_num && a.k == b.k;
  const bool tables = numbers && std::memcmp(&a.table_unit, &b.table_unit, sizeof a.table_unit) == 0 &&
                      std::memcmp(&a.act_outlier, &b.act_outlier, sizeof a.act_outlier) == 0 && same_array(a.table, b.table, a.n_table);
  return tables && same_array(a.k_perm, b.k_perm, a.k) && same_array(a.kept_k, b.kept_k, a.n_kept) &&
         (a.tensor_scale == nullptr) == (b.tensor_scale == nullptr);
}

bool can_cut(const mekik_form& form, std::uint64_t from, std::uint64_t to) {
  if (from == 0 && to == form.k) return true;
  if (form.kind == MEKIK_FORM_FLOAT) return true;
  if (form.k_perm != nullptr || form.n_kept != 0) return false;
  const std::uint64_t edge = form.super_k != 0 ? form.super_k : form.group_k;
  return edge != 0 && from % edge == 0 && (to % edge == 0 || to == form.k);
}

void convert_floats(const float* from, std::size_t count, std::uint32_t num, void* to) {
  if (num == MEKIK_F32) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  auto* out = static_cast<std::uint8_t*>(to);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t value = num == MEKIK_F16 ? to_f16(from[i]) : to_bf16(from[i]);
    std::memcpy(out + 2 * i, &value, 2);
  }
}

}  // namespace mekik::weights
