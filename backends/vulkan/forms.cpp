#include "forms.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <mekik/numbers.hpp>

namespace mekik::vulkan {

namespace {

std::uint64_t pieces(std::uint64_t size, std::uint64_t each) { return (size + each - 1) / each; }

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

WeightKind float_kind(std::uint32_t num) {
  return num == MEKIK_F16 ? WeightKind::f16 : num == MEKIK_BF16 ? WeightKind::bf16 : WeightKind::f32;
}

// The smallest codes that hold the form's bits and whose chunks groups do not cross; false: none.
bool place_codes(const mekik_form& f, WeightLayout& w) {
  constexpr struct {
    WeightKind kind;
    std::uint32_t bits;
  } kinds[] = {{WeightKind::codes2, 2}, {WeightKind::codes4, 4}, {WeightKind::codes8, 8}};
  for (const auto& c : kinds) {
    const std::uint32_t chunk = 128 / c.bits;
    const auto whole = static_cast<std::uint32_t>(pieces(f.k, chunk) * chunk), group = f.group_k >= f.k ? whole : f.group_k;
    if (c.bits < f.bits || group % 4 != 0 || (group >= chunk ? group % chunk : chunk % group) != 0) continue;
    w.kind = c.kind;
    w.chunk = chunk;
    w.group = group;
    return true;
  }
  return false;
}

void put_bits(std::byte* chunk, std::uint32_t column, std::uint32_t bits, std::uint32_t code) {
  const std::uint32_t at = column * bits;
  chunk[at / 8] |= static_cast<std::byte>(code << at % 8);
}

}  // namespace

std::string check_form(const mekik_form& f) {
  if (f.struct_size < sizeof(mekik_form)) return "the form's table is smaller than this backend knows it";
  constexpr std::uint64_t most = std::uint64_t{1} << 40, narrow = std::uint64_t{1} << 31;
  if (f.experts == 0 || f.n == 0 || f.k == 0 || f.experts > most || f.n > most / f.experts || f.k > most / (f.experts * f.n) ||
      f.n > narrow || f.k > narrow)
    return "sizes that cannot be: " + std::to_string(f.experts) + " x " + std::to_string(f.n) + " x " + std::to_string(f.k);
  if (f.kind == MEKIK_FORM_FLOAT) return is_storable(f.kept_num) ? "" : "a float form must be F32, F16 or BF16";
  if (f.kind != MEKIK_FORM_AFFINE && f.kind != MEKIK_FORM_CODEBOOK) return "unknown kind " + std::to_string(f.kind);
  if (f.bits < 1 || f.bits > 8) return "codes of " + std::to_string(f.bits) + " bits; 1 to 8 are known";
  if (f.kind == MEKIK_FORM_CODEBOOK && (f.table == nullptr || f.n_table == 0 || f.n_table > 256)) return "a codebook without its table";
  if (std::string why = check_scales(f); !why.empty()) return why;
  return check_indices(f);
}

WeightLayout lay_out(const mekik_form& f, std::uint64_t experts, bool plain) {
  WeightLayout w;
  w.experts = experts;
  w.n = static_cast<std::uint32_t>(f.experts * f.n / experts);
  w.k = static_cast<std::uint32_t>(f.k);
  if (f.kind == MEKIK_FORM_FLOAT) {
    w.kind = float_kind(f.kept_num);
    w.chunk = w.kind == WeightKind::f32 ? 4 : 8;
    return w;
  }
  const bool apart = f.n_kept != 0 || (plain && f.k_perm != nullptr) || (f.tensor_scale != nullptr && experts != f.experts);
  if (apart || !place_codes(f, w)) {
    w.decoded = true;
    return w;
  }
  w.least = f.min_num != 0;
  w.tensor_scale = f.tensor_scale != nullptr;
  w.permuted = f.k_perm != nullptr;
  w.round = f.round_num == MEKIK_F32 ? 0 : f.round_num;
  if (f.kind == MEKIK_FORM_CODEBOOK) {
    w.lookup = true;
    w.n_table = (f.n_table + 3) / 4 * 4;
  } else if (f.zero_num != 0) {
    w.zero_mode = 2;
  } else if (f.zero != 0) {
    w.zero_mode = 1;
    w.zero = static_cast<float>(f.zero);
  }
  return w;
}

std::uint64_t Panel::step(const mekik_form& f) { return std::lcm(std::max(f.row_step, 1u), f.kind == MEKIK_FORM_FLOAT ? 1u : f.group_n); }

mekik_status Panel::pull(const mekik_weight& weight, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1) {
  const mekik_form& f = form_;
  expert_ = expert;
  n0_ = n0;
  const std::uint64_t rows = n1 - n0;
  mekik_form_rows out{};
  out.struct_size = sizeof out;
  const auto place = [](std::vector<std::uint8_t>& to, std::uint64_t bytes) -> void* {
    to.assign(bytes, 0);
    return bytes != 0 ? to.data() : nullptr;
  };
  if (f.kind == MEKIK_FORM_FLOAT) {
    out.kept = place(kept_, rows * f.k * num_size(f.kept_num));
  } else {
    const std::uint64_t groups = pieces(rows, f.group_n) * pieces(f.k, f.group_k);
    const std::uint64_t supers = f.super_k != 0 ? pieces(rows, f.group_n) * pieces(f.k, f.super_k) : 0;
    out.codes = static_cast<std::uint8_t*>(place(codes_, rows * f.k));
    out.scale = place(scale_, groups * num_size(f.scale_num));
    out.min = place(min_, groups * num_size(f.min_num));
    out.zero = place(zero_, groups * num_size(f.zero_num));
    out.super = place(super_, supers * num_size(f.super_num));
    out.super_min = place(super_min_, supers * num_size(f.super_min_num));
    out.kept = place(kept_, rows * f.n_kept * num_size(f.kept_num));
  }
  if (const mekik_status status = weight.rows(weight.self, expert, n0, n1, &out); status != MEKIK_OK) return status;
  const std::uint32_t most = f.kind == MEKIK_FORM_CODEBOOK ? std::min(1u << f.bits, f.n_table) : 1u << f.bits;
  const auto bad = std::find_if(codes_.begin(), codes_.end(), [&](std::uint8_t code) { return code >= most; });
  if (f.kind != MEKIK_FORM_FLOAT && bad != codes_.end())
    throw Error{MEKIK_E_INVALID, "code " + std::to_string(*bad) + " where codes end at " + std::to_string(most - 1)};
  return MEKIK_OK;
}

Panel::Group Panel::group(std::uint64_t row, std::uint64_t g) const {
  const mekik_form& f = form_;
  const std::uint64_t row_group = row / f.group_n, at = row_group * pieces(f.k, f.group_k) + g;
  Group out{load_num(f.scale_num, scale_.data(), at), 0.0F, static_cast<float>(f.zero)};
  if (f.min_num != 0) out.least = load_num(f.min_num, min_.data(), at);
  if (f.super_k != 0) {
    const std::uint64_t super_at = row_group * pieces(f.k, f.super_k) + g * f.group_k / f.super_k;
    if (f.super_num != 0) out.scale = load_num(f.super_num, super_.data(), super_at) * out.scale;
    if (f.super_min_num != 0) out.least = load_num(f.super_min_num, super_min_.data(), super_at) * out.least;
  }
  if (f.zero_num != 0) out.zero = static_cast<float>(zero_[at]);
  return out;
}

void Panel::decode(std::uint64_t row, float* out) const {
  const mekik_form& f = form_;
  if (f.kind == MEKIK_FORM_FLOAT) {
    for (std::uint64_t j = 0; j < f.k; ++j) out[j] = load_num(f.kept_num, kept_.data(), row * f.k + j);
    return;
  }
  for (std::uint64_t g = 0; g < pieces(f.k, f.group_k); ++g) {
    const Group of = group(row, g);
    for (std::uint64_t j = g * f.group_k; j < std::min<std::uint64_t>(f.k, (g + 1) * f.group_k); ++j) {
      const std::uint8_t code = codes_[row * f.k + j];
      float w = of.scale * (f.kind == MEKIK_FORM_AFFINE ? static_cast<float>(code) - of.zero : f.table[code]);
      if (f.min_num != 0) w -= of.least;
      if (f.tensor_scale != nullptr) w *= f.tensor_scale[expert_];
      if (f.round_num != 0) w = round_num(f.round_num, w);
      out[f.k_perm != nullptr ? f.k_perm[j] : j] = w;
    }
  }
  for (std::uint32_t i = 0; i < f.n_kept; ++i) out[f.kept_k[i]] = load_num(f.kept_num, kept_.data(), row * f.n_kept + i);
}

void Panel::pack(std::uint64_t row, const WeightLayout& w, std::uint32_t row_of_tile, std::byte* codes, std::byte* numbers) const {
  const auto chunk_at = [&](std::uint64_t chunk) { return codes + (chunk * kTileRows + row_of_tile) * 16; };
  if (w.decoded || form_.kind == MEKIK_FORM_FLOAT) {
    std::vector<float> values(w.chunks() * w.chunk);
    const std::uint64_t size = w.kind == WeightKind::f32 ? 4 : 2;
    if (w.decoded || size == 4) decode(row, values.data());
    const auto* bytes = w.decoded || size == 4 ? reinterpret_cast<const std::uint8_t*>(values.data()) : kept_.data() + row * w.k * size;
    for (std::uint64_t c = 0; c < w.chunks(); ++c)
      std::memcpy(chunk_at(c), bytes + c * 16, std::min<std::uint64_t>(16, w.k * size - c * 16));
    return;
  }
  const std::uint32_t bits = 128 / w.chunk;
  const std::uint8_t* from = codes_.data() + row * w.k;
  for (std::uint32_t j = 0; j < w.k; ++j) put_bits(chunk_at(j / w.chunk), j % w.chunk, bits, from[j]);
  for (std::uint32_t g = 0; g < w.groups(); ++g) {
    const Group of = group(row, g);
    float* at = reinterpret_cast<float*>(numbers) + std::size_t{g} * w.planes() * kTileRows + row_of_tile;
    *at = of.scale;
    if (w.least) *(at += kTileRows) = of.least;
    if (w.zero_mode == 2) *(at += kTileRows) = of.zero;
  }
}

}  // namespace mekik::vulkan
