#include <algorithm>
#include <cmath>
#include <cstring>

#include "pack/pack.hpp"

namespace mekik::cpu {

namespace {

std::uint64_t up(std::uint64_t x, std::uint64_t to) { return (x + to - 1) / to * to; }

// How a scale of the form is held: the narrowest type that holds every value exactly. Small integers stay bytes under a super.
Num held(std::uint32_t num, bool under_super) {
  switch (num) {
    case 0:
      return Num::none;
    case MEKIK_F16:
    case MEKIK_UE4M3:
    case MEKIK_E4M3:
    case MEKIK_E5M2:
      return Num::f16;
    case MEKIK_BF16:
      return Num::bf16;
    case MEKIK_E8M0:
      return Num::e8m0;
    case MEKIK_E8M0_HALF:
      return Num::e8m0_half;
    case MEKIK_I8:
      return under_super ? Num::i8 : Num::f16;
    case MEKIK_U8:
      return under_super ? Num::u8 : Num::f16;
    default:
      return Num::f32;
  }
}

bool small_integer(std::uint32_t num) { return num == MEKIK_I8 || num == MEKIK_U8; }

Codes codes_for(std::uint32_t bits) {
  switch (bits) {
    case 1:
      return Codes::b1;
    case 2:
      return Codes::b2;
    case 3:
      return Codes::b3;
    case 4:
      return Codes::b4;
    case 5:
      return Codes::b5;
    case 6:
      return Codes::b6;
    default:
      return Codes::b8;
  }
}

// Codes that need no more than `bits` bits through a table of bytes.
Codes table_codes_for(std::uint32_t bits, bool narrow) {
  if (bits == 1 && narrow) return Codes::t1u;
  if (bits <= 3) return narrow ? Codes::t3u : Codes::t3s;
  return narrow ? Codes::t4u : Codes::t4s;
}

bool is_e4m3(const mekik_form& form) {
  if (form.bits != 8 || form.n_table != 256) return false;
  for (std::uint32_t i = 0; i < 256; ++i) {
    const float x = from_e4m3(static_cast<std::uint8_t>(i)), y = form.table[i];
    if (std::isnan(x) ? !std::isnan(y) : std::memcmp(&x, &y, sizeof x) != 0) return false;
  }
  return true;
}

// Tables of integers: codes through a table of 16 bytes, unsigned when they span less than 32.
void integer_table(const mekik_form& form, Matrix& m) {
  if (!(form.table_unit > 0) || form.bits > 4 || form.n_table == 0) return;
  long low = 1000, high = -1000;
  long values[16] = {};
  for (std::uint32_t i = 0; i < std::min(form.n_table, 16u); ++i) {
    const float q = form.table[i] / form.table_unit;
    if (!(std::fabs(q) <= 128.0F) || q != std::nearbyint(q)) return;
    values[i] = std::lround(q);
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
  if (low < -128 || high > 127) return;
  const bool narrow = high - low < 32;
  m.codes = table_codes_for(form.bits, narrow);
  for (int i = 0; i < 16; ++i) m.table_codes[i] = static_cast<std::uint8_t>(narrow ? std::max(values[i] - low, 0L) : values[i]);
  m.zero = narrow ? static_cast<std::int32_t>(-low) : 0;
  m.post *= form.table_unit;
  m.integer = true;
}

void number_kinds(const mekik_form& form, Matrix& m) {
  const bool sub = form.super_k != 0 && form.super_num != 0 && small_integer(form.scale_num);
  m.scale = form.super_k != 0 && form.super_num != 0 && !sub ? Num::f32 : held(form.scale_num, sub);
  m.super = sub ? held(form.super_num, false) : Num::none;
  const bool min_sub = form.super_k != 0 && form.super_min_num != 0 && small_integer(form.min_num);
  m.min = form.super_k != 0 && form.super_min_num != 0 && !min_sub ? Num::f32 : held(form.min_num, min_sub);
  m.super_min = min_sub ? held(form.super_min_num, false) : Num::none;
}

void kinds(const mekik_form& form, Matrix& m) {
  m.codebook = form.kind == MEKIK_FORM_CODEBOOK;
  m.codes = codes_for(form.bits);
  m.has_zero = !m.codebook && form.zero_num != 0;
  number_kinds(form, m);
  if (form.tensor_scale != nullptr) {
    m.tensor_scale = form.tensor_scale[0];
    m.has_tensor_scale = true;
    m.post = m.tensor_scale;
  }
  m.round = form.round_num == MEKIK_F16 ? Num::f16 : form.round_num == MEKIK_BF16 ? Num::bf16 : Num::none;
  if (m.codebook) {
    for (std::uint32_t i = 0; i < 256; ++i) m.table[i] = i < form.n_table ? form.table[i] : 0.0F;
    m.e4m3 = is_e4m3(form);
    integer_table(form, m);
  } else {
    m.zero = form.zero - (m.codes == Codes::b8 ? 128 : 0);
    m.integer = std::abs(form.zero) <= 256;
  }
  const bool groups_fit = m.group_k % kBlock == 0 || m.group_k == 16;
  if (!groups_fit || form.n_kept != 0) m.integer = false;
  if (form.act_outlier > 0) m.act_outlier = form.act_outlier;
}

void place(Matrix& m, std::uint32_t n_kept) {
  std::uint64_t at = static_cast<std::uint64_t>(m.blocks) * block_bytes(m.codes);
  const auto take = [&](std::uint64_t bytes) {
    const std::uint64_t here = at;
    at = up(at + bytes, 64);
    return here;
  };
  m.off_scale = take(static_cast<std::uint64_t>(m.groups) * kLanes * num_bytes(m.scale));
  m.off_min = take(static_cast<std::uint64_t>(m.groups) * kLanes * num_bytes(m.min));
  m.off_zero = take(m.has_zero ? static_cast<std::uint64_t>(m.groups) * kLanes : 0);
  m.off_super = take(static_cast<std::uint64_t>(m.supers) * kLanes * num_bytes(m.super));
  m.off_super_min = take(static_cast<std::uint64_t>(m.supers) * kLanes * num_bytes(m.super_min));
  m.off_kept = take(static_cast<std::uint64_t>(n_kept) * kLanes * sizeof(float));
  m.stripe_bytes = at;
}

}  // namespace

std::string why_not_packed(const mekik_form& f) {
  constexpr std::uint64_t kMost = 1u << 30;
  if (f.experts == 0 || f.experts > kMost || f.n == 0 || f.k == 0 || f.n > kMost || f.k > kMost) return "its shape is outside 1 .. 2^30";
  if (f.kind == MEKIK_FORM_FLOAT) {
    if (f.kept_num != MEKIK_F32 && f.kept_num != MEKIK_F16 && f.kept_num != MEKIK_BF16)
      return "floats other than F32, F16 and BF16 are not supported";
    return {};
  }
  if (f.kind != MEKIK_FORM_AFFINE && f.kind != MEKIK_FORM_CODEBOOK) return "its form is of an unknown kind";
  if (f.bits < 1 || f.bits > 8) return "its codes have neither 1 to 8 bits";
  if (f.group_k == 0 || f.group_n == 0) return "its groups are empty";
  if (num_size(f.scale_num) == 0) return "its scales are of an unknown number type";
  if (f.super_k != 0 && f.super_k % f.group_k != 0) return "its super-groups are not whole groups";
  if (f.kind == MEKIK_FORM_CODEBOOK && (f.table == nullptr || f.n_table == 0 || f.n_table > 256))
    return "its table has neither 1 to 256 values";
  if (f.zero_num != 0 && f.zero_num != MEKIK_U8) return "its zero points are not U8";
  if (f.round_num != 0 && f.round_num != MEKIK_F16 && f.round_num != MEKIK_BF16 && f.round_num != MEKIK_F32)
    return "its rounding is not to F16, BF16 or F32";
  if (f.n_kept > f.k || (f.n_kept != 0 && f.kept_k == nullptr)) return "its kept columns are not a list of inputs";
  return {};
}

Layout make_layout(const mekik_form& form) {
  Layout layout;
  Matrix& m = layout.matrix;
  m.n = static_cast<std::uint32_t>(form.n);
  m.k = static_cast<std::uint32_t>(form.k);
  m.stripes = (m.n + kLanes - 1) / kLanes;
  m.blocks = (m.k + kBlock - 1) / kBlock;
  if (form.k_perm != nullptr) layout.inputs.assign(form.k_perm, form.k_perm + m.k);
  if (form.kind == MEKIK_FORM_FLOAT) {
    m.floats = true;
    m.number = held(form.kept_num, false);
    m.stripe_bytes = static_cast<std::uint64_t>(m.k) * kLanes * num_bytes(m.number);
    layout.inputs.clear();
    return layout;
  }
  m.groups = (m.k + form.group_k - 1) / form.group_k;
  m.group_k = m.groups == 1 ? static_cast<std::uint32_t>(up(m.k, kBlock)) : form.group_k;
  kinds(form, m);
  const bool supers = m.super != Num::none || m.super_min != Num::none;
  m.groups_per_super = supers ? form.super_k / form.group_k : 0;
  m.supers = supers ? (m.k + form.super_k - 1) / form.super_k : 0;
  for (std::uint32_t i = 0; i < form.n_kept; ++i) {
    std::uint32_t column = form.kept_k[i];
    if (!layout.inputs.empty())
      column = static_cast<std::uint32_t>(std::find(layout.inputs.begin(), layout.inputs.end(), column) - layout.inputs.begin());
    layout.kept.push_back(column);
  }
  m.n_kept = static_cast<std::uint32_t>(layout.kept.size());
  place(m, m.n_kept);
  return layout;
}

}  // namespace mekik::cpu
