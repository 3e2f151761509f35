#include "reference/form.hpp"

#include <algorithm>

#include <mekik/numbers.hpp>

namespace mekik::reference {

namespace {

std::uint64_t groups(std::uint64_t size, std::uint64_t each) { return (size + each - 1) / each; }
std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

bool is_scale(std::uint32_t num) {
  return num == MEKIK_F32 || num == MEKIK_F16 || num == MEKIK_BF16 || num == MEKIK_E8M0 || num == MEKIK_E8M0_HALF || num == MEKIK_UE4M3 ||
         num == MEKIK_I8 || num == MEKIK_U8;
}

std::string check_scales(const mekik_form& f) {
  if (f.group_k == 0 || f.group_n == 0) return "a group of no columns or rows";
  if (f.super_k != 0 && f.super_k % f.group_k != 0) return "super_k must be a multiple of group_k";
  if (f.super_k == 0 && (f.super_num != 0 || f.super_min_num != 0)) return "a super scale without super_k";
  if (f.scale_num == 0) return "no scale";
  for (const std::uint32_t num : {f.scale_num, f.super_num, f.min_num, f.super_min_num})
    if (num != 0 && !is_scale(num)) return "scale type " + std::to_string(num) + " is not known";
  if (f.super_min_num != 0 && f.min_num == 0) return "a super minimum without a minimum";
  if (f.zero_num != 0 && f.zero_num != MEKIK_U8) return "zero points must be U8";
  if (f.round_num != 0 && !is_storable(f.round_num)) return "weights round to F32, F16 or BF16 only";
  return {};
}

std::string check_indices(const mekik_form& f) {
  if (f.n_kept != 0 && (f.kept_k == nullptr || !is_storable(f.kept_num))) return "kept columns without indices or of an unknown type";
  for (std::uint32_t i = 0; i < f.n_kept; ++i)
    if (f.kept_k[i] >= f.k || (i > 0 && f.kept_k[i] <= f.kept_k[i - 1])) return "kept columns must ascend within k";
  if (f.k_perm == nullptr) return {};
  std::vector<bool> seen(f.k, false);
  for (std::uint64_t j = 0; j < f.k; ++j) {
    if (f.k_perm[j] >= f.k || seen[f.k_perm[j]]) return "k_perm is not a permutation of the inputs";
    seen[f.k_perm[j]] = true;
  }
  return {};
}

// The scale, minimum and zero point of one group, each product rounded to F32.
struct Group {
  float scale, min;
  std::int32_t zero;
};
Group group_at(const mekik_form& f, const mekik_form_rows& rows, std::uint64_t row_group, std::uint64_t g) {
  const std::uint64_t at = row_group * groups(f.k, f.group_k) + g;
  Group out{load_num(f.scale_num, rows.scale, at), 0.0f, f.zero};
  if (f.min_num != 0) out.min = load_num(f.min_num, rows.min, at);
  if (f.super_k != 0) {
    const std::uint64_t super_at = row_group * groups(f.k, f.super_k) + g * f.group_k / f.super_k;
    if (f.super_num != 0) out.scale = load_num(f.super_num, rows.super, super_at) * out.scale;
    if (f.super_min_num != 0) out.min = load_num(f.super_min_num, rows.super_min, super_at) * out.min;
  }
  if (f.zero_num != 0) out.zero = static_cast<const std::uint8_t*>(rows.zero)[at];
  return out;
}

void decode_row(const mekik_form& f, const mekik_form_rows& rows, std::uint64_t expert, std::uint64_t row, std::uint64_t row_group,
                float* out) {
  const std::uint8_t* codes = rows.codes + row * f.k;
  for (std::uint64_t g = 0; g < groups(f.k, f.group_k); ++g) {
    const Group group = group_at(f, rows, row_group, g);
    const std::uint64_t end = std::min<std::uint64_t>(f.k, (g + 1) * f.group_k);
    for (std::uint64_t j = g * f.group_k; j < end; ++j) {
      const float c = f.kind == MEKIK_FORM_AFFINE ? static_cast<float>(codes[j] - group.zero) : f.table[codes[j]];
      float w = group.scale * c;
      if (f.min_num != 0) w -= group.min;
      if (f.tensor_scale != nullptr) w *= f.tensor_scale[expert];
      if (f.round_num != 0) w = round_num(f.round_num, w);
      out[f.k_perm != nullptr ? f.k_perm[j] : j] = w;
    }
  }
  for (std::uint32_t i = 0; i < f.n_kept; ++i) out[f.kept_k[i]] = load_num(f.kept_num, rows.kept, row * f.n_kept + i);
}

}  // namespace

std::string check_form(const mekik_form& f) {
  if (f.struct_size < sizeof(mekik_form)) return "the form's table is smaller than this library knows it";
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  if (f.experts == 0 || f.n == 0 || f.k == 0 || f.experts > most || f.n > most / f.experts || f.k > most / (f.experts * f.n))
    return "sizes that cannot be: " + std::to_string(f.experts) + " x " + std::to_string(f.n) + " x " + std::to_string(f.k);
  if (f.kind == MEKIK_FORM_FLOAT) return is_storable(f.kept_num) ? "" : "a float form must be F32, F16 or BF16";
  if (f.kind != MEKIK_FORM_AFFINE && f.kind != MEKIK_FORM_CODEBOOK) return "unknown kind " + std::to_string(f.kind);
  if (f.bits < 1 || f.bits > 8) return "codes of " + std::to_string(f.bits) + " bits; 1 to 8 are known";
  if (f.kind == MEKIK_FORM_CODEBOOK && (f.table == nullptr || f.n_table == 0 || f.n_table > 256)) return "a codebook without its table";
  if (std::string why = check_scales(f); !why.empty()) return why;
  return check_indices(f);
}

std::size_t FormBytes::total() const {
  return padded(codes) + padded(scale) + padded(super) + padded(min) + padded(super_min) + padded(zero) + padded(kept);
}

FormBytes form_bytes(const mekik_form& f, std::uint64_t n_rows) {
  FormBytes bytes{};
  if (f.kind == MEKIK_FORM_FLOAT) {
    bytes.kept = n_rows * f.k * num_size(f.kept_num);
    return bytes;
  }
  const std::uint64_t n_groups = groups(n_rows, f.group_n) * groups(f.k, f.group_k);
  const std::uint64_t n_supers = f.super_k != 0 ? groups(n_rows, f.group_n) * groups(f.k, f.super_k) : 0;
  bytes.codes = n_rows * f.k;
  bytes.scale = n_groups * num_size(f.scale_num);
  bytes.min = n_groups * num_size(f.min_num);
  bytes.zero = n_groups * num_size(f.zero_num);
  bytes.super = n_supers * num_size(f.super_num);
  bytes.super_min = n_supers * num_size(f.super_min_num);
  bytes.kept = f.n_kept != 0 ? n_rows * f.n_kept * num_size(f.kept_num) : 0;
  return bytes;
}

mekik_form_rows place_rows(const mekik_form& form, std::uint64_t n_rows, void* memory) {
  auto* at = static_cast<std::byte*>(memory);
  const auto take = [&](std::size_t bytes) {
    std::byte* here = bytes != 0 ? at : nullptr;
    at += padded(bytes);
    return here;
  };
  const FormBytes bytes = form_bytes(form, n_rows);
  mekik_form_rows rows{};
  rows.struct_size = sizeof rows;
  rows.codes = reinterpret_cast<std::uint8_t*>(take(bytes.codes));
  rows.scale = take(bytes.scale);
  rows.super = take(bytes.super);
  rows.min = take(bytes.min);
  rows.super_min = take(bytes.super_min);
  rows.zero = take(bytes.zero);
  rows.kept = take(bytes.kept);
  return rows;
}

void decode_rows(const mekik_form& form, const mekik_form_rows& rows, std::uint64_t expert, std::uint64_t first, std::uint64_t n0,
                 std::uint64_t n1, float* out) {
  for (std::uint64_t n = n0; n < n1; ++n, out += form.k) {
    if (form.kind == MEKIK_FORM_FLOAT) {
      for (std::uint64_t j = 0; j < form.k; ++j) out[j] = load_num(form.kept_num, rows.kept, (n - first) * form.k + j);
    } else {
      decode_row(form, rows, expert, n - first, (n - first) / form.group_n, out);
    }
  }
}

std::string check_codes(const mekik_form& form, const mekik_form_rows& rows, std::uint64_t n_rows) {
  if (form.kind == MEKIK_FORM_FLOAT) return {};
  const std::uint32_t most = form.kind == MEKIK_FORM_CODEBOOK ? std::min(1u << form.bits, form.n_table) : 1u << form.bits;
  const std::uint8_t *begin = rows.codes, *end = begin + n_rows * form.k;
  const std::uint8_t* bad = std::find_if(begin, end, [&](std::uint8_t code) { return code >= most; });
  return bad == end ? "" : "code " + std::to_string(*bad) + " where codes end at " + std::to_string(most - 1);
}

Weight::Weight(const mekik_form& form, void* memory)
    : form_{form}, memory_{static_cast<std::byte*>(memory)}, expert_bytes_{form_bytes(form, form.n).total()} {
  if (form.table != nullptr) table_.assign(form.table, form.table + form.n_table);
  if (form.tensor_scale != nullptr) tensor_scale_.assign(form.tensor_scale, form.tensor_scale + form.experts);
  if (form.k_perm != nullptr) k_perm_.assign(form.k_perm, form.k_perm + form.k);
  if (form.kept_k != nullptr) kept_k_.assign(form.kept_k, form.kept_k + form.n_kept);
  form_.table = table_.data();
  form_.tensor_scale = tensor_scale_.empty() ? nullptr : tensor_scale_.data();
  form_.k_perm = k_perm_.empty() ? nullptr : k_perm_.data();
  form_.kept_k = kept_k_.data();
  form_.owner = nullptr;
}

std::size_t Weight::bytes(const mekik_form& form) { return form.experts * form_bytes(form, form.n).total(); }

mekik_form_rows Weight::expert(std::uint64_t e) const { return place_rows(form_, form_.n, memory_ + e * expert_bytes_); }

void Weight::decode(std::uint64_t row0, std::uint64_t row1, float* out) const {
  while (row0 < row1) {
    const std::uint64_t e = row0 / form_.n;
    const std::uint64_t end = std::min(row1, (e + 1) * form_.n);
    decode_rows(form_, expert(e), e, 0, row0 - e * form_.n, end - e * form_.n, out);
    out += (end - row0) * form_.k;
    row0 = end;
  }
}

std::vector<float> Weight::decode_all() const {
  std::vector<float> out(n_rows() * k());
  decode(0, n_rows(), out.data());
  return out;
}

}  // namespace mekik::reference
