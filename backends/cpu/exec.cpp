#include "exec.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace mekik::cpu {

namespace {

constexpr std::uint64_t kHugePage = 2u << 20;

}  // namespace

Arena::Arena(std::uint64_t bytes, const char* tag) : HostMemory{bytes, bytes >= kHugePage ? kHugePage : 128, tag} {
#if defined(MADV_HUGEPAGE)
  if (bytes >= kHugePage) madvise(data(), bytes, MADV_HUGEPAGE);  // refused where the kernel has none: then small pages do
#endif
}

Exec::Exec(Device& device, const mekik_program& program, const mekik_limits& limits)
    : device_{device},
      settings_{device.settings},
      limits_{limits},
      plan_{program, limits, settings_},
      copy_{program},
      program_{copy_.reader()} {
  const std::uint64_t all = plan_.weight_bytes + plan_.work_bytes() + plan_.kv_bytes + times(plan_.slot_bytes, limits.n_slots);
  if (limits.device_bytes != 0 && all > limits.device_bytes)
    throw Error{MEKIK_E_NO_MEMORY, std::to_string(all) + " bytes are needed, " + std::to_string(limits.device_bytes) + " are allowed"};
  work_ = Arena{plan_.work_bytes(), "activations"};
  for (std::uint32_t g = 0; g < program.n_groups; ++g) {
    pools_.emplace_back(times(plan_.block_bytes[g], limits.n_blocks[g]), "kv");  // zeroed: what no token has filled yet is multiplied by 0
  }
  slots_ = Arena{times(plan_.slot_bytes, limits.n_slots), "states"};
  writer_.assign(limits.n_slots, -1);
  const std::uint32_t n = program_.n_tensors();
  expert_scales_.resize(n);
  packed_.resize(n);
  matrices_.resize(n);
  views_.resize(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const mekik_tensor& t = program_.tensor(i);
    if (t.role != MEKIK_ROLE_TEMP && t.role != MEKIK_ROLE_INPUT && t.role != MEKIK_ROLE_OUTPUT) continue;
    const std::uint32_t root = root_of(program_, i)->tensor;
    if (plan_.buffer_of[root] == kNone) {
      bound_.push_back(i);
      continue;
    }
    views_[i].stride = row_size(program_.tensor(root));
    views_[i].data = reinterpret_cast<float*>(buffer(plan_.buffer_of[root])) + root_of(program_, i)->column;
  }
  auto* batch = work_.data() + plan_.buffer_bytes + plan_.scratch_bytes;
  seq_of_ = reinterpret_cast<std::uint32_t*>(batch);
  first_put_ = seq_of_ + limits_.max_tokens;
  next_put_ = first_put_ + limits_.max_tokens;
  full_place_ = next_put_ + limits_.max_rows;
  staged_ = full_place_ + limits_.max_seqs;
  stages_ = reinterpret_cast<float*>(batch + plan_.batch_bytes - plan_.staged_floats * limits_.max_seqs * sizeof(float));
  phases_.reserve(2 * plan_.phases.size());
  for (const PhasePlan& p : plan_.phases) {
    if (p.kind != PhasePlan::Kind::attention && p.kind != PhasePlan::Kind::full && p.kind != PhasePlan::Kind::latent) continue;
    const std::uint32_t rows = std::max(1u, kAttentionVectors / heads_of(p).each);
    if (std::any_of(items_.begin(), items_.end(), [&](const AttentionItems& i) { return i.rows_per_item == rows; })) continue;
    items_.push_back({rows, {}});
    items_.back().items.reserve(limits_.max_tokens / rows + limits_.max_seqs + 1);
  }
}

std::uint8_t* Exec::place(std::uint32_t what, std::uint32_t group, std::int32_t id, std::uint64_t bytes) const {
  if (what == MEKIK_WHAT_SLOT) {
    if (id < 0 || static_cast<std::uint32_t>(id) >= limits_.n_slots)
      throw Error{MEKIK_E_INVALID, "slot " + std::to_string(id) + " of " + std::to_string(limits_.n_slots)};
    if (bytes != plan_.slot_bytes)
      throw Error{MEKIK_E_INVALID, std::to_string(bytes) + " bytes where a slot has " + std::to_string(plan_.slot_bytes)};
    return slots_.data() + static_cast<std::uint64_t>(id) * plan_.slot_bytes;
  }
  if (what != MEKIK_WHAT_BLOCK) throw Error{MEKIK_E_INVALID, "what " + std::to_string(what) + " is not a block or a slot"};
  if (group >= program_.raw().n_groups) throw Error{MEKIK_E_INVALID, "there is no group " + std::to_string(group)};
  const std::uint64_t each = plan_.block_bytes[group];
  if (id < 0 || static_cast<std::uint32_t>(id) >= limits_.n_blocks[group])
    throw Error{MEKIK_E_INVALID, "block " + std::to_string(id) + " of " + std::to_string(limits_.n_blocks[group])};
  if (bytes != each) throw Error{MEKIK_E_INVALID, std::to_string(bytes) + " bytes where a block has " + std::to_string(each)};
  return pools_[group].data() + static_cast<std::uint64_t>(id) * each;
}

std::uint64_t Exec::read(std::uint32_t what, std::uint32_t group, std::int32_t id, void* to, std::uint64_t bytes) {
  const std::uint8_t* from = place(what, group, id, bytes);
  if (bytes != 0) std::memcpy(to, from, bytes);
  return ++ticket_;
}

std::uint64_t Exec::write(std::uint32_t what, std::uint32_t group, std::int32_t id, const void* from, std::uint64_t bytes) {
  std::uint8_t* to = place(what, group, id, bytes);
  if (bytes != 0) std::memcpy(to, from, bytes);
  return ++ticket_;
}

void Exec::check_move(const mekik_move& m) const {
  const bool rows = m.what == MEKIK_WHAT_ROWS;
  const std::uint64_t block = m.group < MEKIK_MAX_GROUPS ? plan_.block_bytes[m.group] : 0;
  const std::uint64_t bytes = m.what == MEKIK_WHAT_SLOT ? plan_.slot_bytes : block;
  place(rows ? std::uint32_t{MEKIK_WHAT_BLOCK} : m.what, m.group, m.from, bytes);
  place(rows ? std::uint32_t{MEKIK_WHAT_BLOCK} : m.what, m.group, m.to, bytes);
  const std::uint64_t size = limits_.block_tokens;
  if (rows && (m.n_rows > size || m.from_row > size - m.n_rows || m.to_row > size - m.n_rows))
    throw Error{MEKIK_E_INVALID, "rows past the end of a block of " + std::to_string(size)};
}

// One row after another in an order that is right when the ranges overlap within a block.
template <class F>
void Exec::copy_rows(const mekik_move& m, F&& copy_row) const {
  for (std::uint32_t i = 0; i < m.n_rows; ++i) {
    const std::uint32_t step = m.to_row > m.from_row ? m.n_rows - 1 - i : i;
    copy_row(m.from_row + step, m.to_row + step);
  }
}

template <class T>
void Exec::copy_floats(const StatePlan& s, const mekik_move& m, const std::uint8_t* from, std::uint8_t* to) const {
  copy_rows(m, [&](std::uint32_t a, std::uint32_t b) {
    for (std::uint32_t h = 0; h < s.heads; ++h) {
      const auto* vs = reinterpret_cast<const T*>(from + s.offset + s.v_offset + h * s.v_head);
      auto* vd = reinterpret_cast<T*>(to + s.offset + s.v_offset + h * s.v_head);
      std::memmove(vd + static_cast<std::size_t>(b) * s.dvp, vs + static_cast<std::size_t>(a) * s.dvp, s.dvp * sizeof(T));
      if (s.latent) continue;
      const auto* ks = reinterpret_cast<const T*>(from + s.offset + h * s.k_head);
      auto* kd = reinterpret_cast<T*>(to + s.offset + h * s.k_head);
      if (plan_.lanes)
        for (std::uint32_t j = 0; j < s.d; ++j) kd[((b / 16) * s.d + j) * 16 + b % 16] = ks[((a / 16) * s.d + j) * 16 + a % 16];
      else std::memmove(kd + static_cast<std::size_t>(b) * s.d, ks + static_cast<std::size_t>(a) * s.d, s.d * sizeof(T));
    }
  });
}

void Exec::copy_codes(const StatePlan& s, const mekik_move& m, const std::uint8_t* from, std::uint8_t* to) const {
  const HeadLayout& c = s.codes;
  copy_rows(m, [&](std::uint32_t a, std::uint32_t b) {
    if (s.latent) {
      const std::uint64_t at = s.offset + s.v_offset, bytes = s.latents.bytes();
      std::memmove(to + at + b * bytes, from + at + a * bytes, bytes);
      return;
    }
    for (std::uint32_t h = 0; h < s.heads; ++h) {
      const std::uint64_t key = s.offset + h * s.k_head, value = s.offset + s.v_offset + h * s.v_head;
      for (std::uint32_t i = 0; i < c.key_bytes(); ++i) to[key + c.key_at(b, i)] = from[key + c.key_at(a, i)];
      for (std::uint32_t i = 0; i < c.value_bytes(); ++i) to[value + c.value_at(b, i)] = from[value + c.value_at(a, i)];
      std::memmove(to + key + c.key_scales() + 2 * b, from + key + c.key_scales() + 2 * a, 2);
      std::memmove(to + value + c.value_scales() + 2 * b, from + value + c.value_scales() + 2 * a, 2);
    }
  });
}

void Exec::copy(const mekik_move& m) {
  const bool slot = m.what == MEKIK_WHAT_SLOT;
  const std::uint32_t what = slot ? std::uint32_t{MEKIK_WHAT_SLOT} : std::uint32_t{MEKIK_WHAT_BLOCK};
  const std::uint64_t bytes = slot ? plan_.slot_bytes : plan_.block_bytes[m.group];
  const std::uint8_t* from = place(what, m.group, m.from, bytes);
  std::uint8_t* to = place(what, m.group, m.to, bytes);
  if (m.what != MEKIK_WHAT_ROWS) {
    if (bytes != 0) std::memmove(to, from, bytes);
    return;
  }
  for (std::uint32_t i = 0; i < program_.n_tensors(); ++i) {
    const mekik_tensor& t = program_.tensor(i);
    if (t.role != MEKIK_ROLE_STATE || t.group != m.group) continue;
    const StatePlan& s = plan_.states[i];
    if (s.codes.bits != 0 || s.latents.bits != 0) copy_codes(s, m, from, to);
    else if (s.num == Num::f32) copy_floats<std::uint32_t>(s, m, from, to);
    else copy_floats<std::uint16_t>(s, m, from, to);
  }
}

std::uint64_t Exec::move(Strided<const mekik_move> moves) {
  for (std::size_t i = 0; i < moves.size(); ++i) check_move(moves[i]);
  for (std::size_t i = 0; i < moves.size(); ++i) copy(moves[i]);
  return ++ticket_;
}

}  // namespace mekik::cpu
