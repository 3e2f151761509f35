// Weights: pulled from the host in panels, packed into tiles, carried over through a staging buffer.
#include <algorithm>
#include <cstring>

#include "exec.hpp"

namespace mekik::vulkan {

namespace {

constexpr std::uint64_t kPanelBytes = std::uint64_t{8} << 20;  // of packed tiles

bool same(const mekik_form& a, const mekik_form& b) {
  return a.kind == b.kind && a.bits == b.bits && a.group_k == b.group_k && a.group_n == b.group_n && a.super_k == b.super_k &&
         a.scale_num == b.scale_num && a.super_num == b.super_num && a.min_num == b.min_num && a.super_min_num == b.super_min_num &&
         a.zero_num == b.zero_num && a.zero == b.zero && a.round_num == b.round_num && a.n_table == b.n_table && a.n_kept == b.n_kept &&
         a.kept_num == b.kept_num && a.experts == b.experts && a.n == b.n && a.k == b.k;
}

std::uint64_t down(std::uint64_t x, std::uint64_t to) { return x / to * to; }

}  // namespace

void Exec::upload(const Buffer& to, std::uint64_t offset, const void* data, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes; at += staging_.bytes()) {
    const std::uint64_t size = std::min(staging_.bytes(), bytes - at);
    std::memcpy(staging_.data(), static_cast<const std::byte*>(data) + at, size);
    begin(copies_);
    const VkBufferCopy copy{0, offset + at, size};
    vk_.vkCmdCopyBuffer(copies_, staging_.handle(), to.handle(), 1, &copy);
    check(vk_.vkEndCommandBuffer(copies_), "recording a copy");
    device_.run(copies_);
  }
}

mekik_status Exec::load_matrix(const mekik_weight& weight) {
  const WeightPlan& plan = plan_.weights[weight.tensor];
  const WeightLayout& w = plan.layout;
  const mekik_form& f = *weight.form;
  const Buffer& block = weight_blocks_[plan.block];
  const std::uint64_t tile_bytes = w.tile_code_bytes() + w.tile_number_bytes(), step = Panel::step(f);
  const auto at_once = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kPanelBytes / tile_bytes, 1, w.tiles()));
  Panel panel{f};
  std::vector<std::byte> codes, numbers;
  for (std::uint64_t expert = 0; expert < w.experts; ++expert)
    for (std::uint32_t tile = 0; tile < w.tiles(); tile += at_once) {
      const std::uint32_t n_tiles = std::min(at_once, w.tiles() - tile);
      // Rows of all the form's matrices, one after another.
      const std::uint64_t row0 = expert * w.n + std::uint64_t{tile} * kTileRows,
                          row1 = std::min<std::uint64_t>(row0 + n_tiles * kTileRows, (expert + 1) * w.n);
      const std::uint64_t of = row0 / f.n, n0 = down(row0 - of * f.n, step), n1 = std::min(f.n, (row1 - of * f.n + step - 1) / step * step);
      if (const mekik_status status = panel.pull(weight, of, n0, n1); status != MEKIK_OK) return status;
      codes.assign(n_tiles * w.tile_code_bytes(), std::byte{0});
      numbers.assign(n_tiles * w.tile_number_bytes(), std::byte{0});
      parallel(n_tiles, [&](std::uint32_t t) {
        for (std::uint64_t row = row0 + t * kTileRows; row < std::min<std::uint64_t>(row1, row0 + (t + std::uint64_t{1}) * kTileRows);
             ++row)
          panel.pack(row - of * f.n - n0, w, static_cast<std::uint32_t>((row - row0) % kTileRows), codes.data() + t * w.tile_code_bytes(),
                     numbers.data() + t * w.tile_number_bytes());
      });
      const std::uint64_t first = expert * w.tiles() + tile;
      upload(block, plan.offset + first * w.tile_code_bytes(), codes.data(), codes.size());
      upload(block, plan.offset + w.numbers_offset() + first * w.tile_number_bytes(), numbers.data(), numbers.size());
    }
  if (w.n_table != 0) {
    std::vector<float> table(w.n_table, 0.0F);
    std::copy(f.table, f.table + f.n_table, table.begin());
    upload(block, plan.offset + w.table_offset(), table.data(), table.size() * sizeof(float));
  }
  if (w.permuted) upload(vectors_, plan.permutation * 4, f.k_perm, f.k * 4);
  if (w.tensor_scale) upload(vectors_, plan.scale_offset * 4, f.tensor_scale, f.experts * 4);
  return MEKIK_OK;
}

mekik_status Exec::load_vector(const mekik_weight& weight) {
  const mekik_form& f = *weight.form;
  std::vector<float> values(f.experts * f.n * f.k);
  Panel panel{f};
  for (std::uint64_t expert = 0; expert < f.experts; ++expert) {
    if (const mekik_status status = panel.pull(weight, expert, 0, f.n); status != MEKIK_OK) return status;
    for (std::uint64_t row = 0; row < f.n; ++row) panel.decode(row, values.data() + (expert * f.n + row) * f.k);
  }
  const WeightPlan& plan = plan_.weights[weight.tensor];
  if (plan.vector) upload(vectors_, plan.vector_offset * 4, values.data(), values.size() * sizeof(float));
  if (std::any_of(plan_.turns.begin(), plan_.turns.end(), [&](const TurnPlan& t) { return t.weight == weight.tensor; }))
    tables_[weight.tensor] = std::move(values);
  return MEKIK_OK;
}

mekik_status Exec::weight(const mekik_weight& w) {
  if (w.struct_size < sizeof(mekik_weight) || w.form == nullptr || w.rows == nullptr)
    throw Error{MEKIK_E_INVALID, "a weight without its form or rows"};
  if (w.tensor >= program_.n_tensors() || program_.tensor(w.tensor).role != MEKIK_ROLE_WEIGHT)
    throw Error{MEKIK_E_INVALID, "tensor " + std::to_string(w.tensor) + " is no weight"};
  const std::string name = "weight \"" + std::string{program_.name(w.tensor)} + "\"";
  if (const std::string why = check_form(*w.form); !why.empty()) throw Error{MEKIK_E_INVALID, name + ": " + why};
  const WeightPlan& plan = plan_.weights[w.tensor];
  const WeightLayout layout = lay_out(*w.form, plan.matrix ? plan.layout.experts : w.form->experts, !plan.layout.permuted);
  if (!same(*w.form, plan.form) || (plan.matrix && layout.bytes() != plan.layout.bytes()))
    throw Error{MEKIK_E_INVALID, name + " does not come in the form of the plan"};
  const bool turns = std::any_of(plan_.turns.begin(), plan_.turns.end(), [&](const TurnPlan& t) { return t.weight == w.tensor; });
  try {
    if (plan.matrix)
      if (const mekik_status status = load_matrix(w); status != MEKIK_OK) return status;
    if (plan.vector || turns)
      if (const mekik_status status = load_vector(w); status != MEKIK_OK) return status;
  } catch (const Error& e) {
    throw Error{e.code, name + ": " + e.what()};
  }
  loaded_[w.tensor] = true;
  return MEKIK_OK;
}

}  // namespace mekik::vulkan
