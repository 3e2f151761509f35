#include <openssl/sha.h>

#include <algorithm>
#include <cstring>

#include "planner.hpp"

namespace mekik::cpu {

void Planner::place_buffers() {
  std::vector<const Buffer*> alive;
  for (Buffer& b : plan_.buffers) {  // in order of their first phase
    std::erase_if(alive, [&](const Buffer* other) { return other->last < b.first; });
    std::sort(alive.begin(), alive.end(), [](const Buffer* x, const Buffer* y) { return x->offset < y->offset; });
    std::uint64_t at = 0;
    for (const Buffer* other : alive) {
      if (other->offset >= at + b.bytes) break;
      at = std::max(at, other->offset + other->bytes);
    }
    b.offset = at;
    alive.push_back(&b);
    plan_.buffer_bytes = std::max(plan_.buffer_bytes, at + b.bytes);
  }
}

void Planner::place_weights() {
  for (std::uint32_t i = 0; i < raw_.n_tensors; ++i) {
    const mekik_tensor& t = program_.tensor(i);
    if (t.role != MEKIK_ROLE_WEIGHT) continue;
    WeightPlan& w = plan_.weights[i];
    if (const std::string why = why_not_packed(*t.form); !why.empty())
      throw Error{MEKIK_E_UNSUPPORTED, "weight \"" + std::string{program_.name(i)} + "\": " + why};
    w.form = *t.form;
    w.form.table = w.form.tensor_scale = nullptr;
    w.form.k_perm = w.form.kept_k = nullptr;
    w.form.owner = nullptr;
    w.vector_size = times(times(t.form->experts, t.form->n), t.form->k);
    const auto take = [&](std::uint64_t bytes) {
      const std::uint64_t here = w.bytes;
      w.bytes += round_up(bytes, 64);
      return here;
    };
    if (w.matrix) w.matrix_offset = take(times(w.layout.bytes(), w.experts));
    if (w.vector) w.vector_offset = take(times(w.vector_size, sizeof(float)));
    if (w.columns) w.columns_offset = take(times(w.vector_size, sizeof(float)));
    w.offset = plan_.weight_bytes;
    plan_.weight_bytes += w.bytes;
    std::uint64_t staging = times(staging_bytes(*t.form), w.matrix ? settings_.threads : 1);
    if (w.columns) staging += times(panel_rows(*t.form), t.form->k * sizeof(float));
    plan_.load_bytes = std::max(plan_.load_bytes, staging);
  }
}

void Planner::place_codes(StatePlan& s, std::uint32_t bits, std::string_view name) const {
  const auto tokens = limits_.block_tokens;
  if (s.latent) {
    s.latents = {bits, s.dv, s.d - s.dv};
    s.v_head = round_up(times(tokens, s.latents.bytes()), 64);
    return;
  }
  if (s.d > kMostHeadNumbers)
    throw Error{MEKIK_E_UNSUPPORTED, "state \"" + std::string{name} + "\": q8_head and q4_head hold keys of at most " +
                                         std::to_string(kMostHeadNumbers) + " numbers, these have " + std::to_string(s.d) +
                                         "; use kv = \"f16\" in [cache]"};
  s.dvp = HeadLayout::padded(s.dv, bits);
  s.codes = {bits, s.d, s.dvp, tokens, plan_.lanes};
  s.k_head = round_up(s.codes.key_scales() + s.codes.scale_bytes(), 64);
  s.v_head = round_up(s.codes.value_scales() + s.codes.scale_bytes(), 64);
}

void Planner::place_state(std::uint32_t tensor) {
  const mekik_tensor& t = program_.tensor(tensor);
  StatePlan& s = plan_.states[tensor];
  const KvForm form = kv_form(t.scheme);
  if (t.rank != 3 || !form.offered())
    throw Error{MEKIK_E_UNSUPPORTED, "state \"" + std::string{program_.name(tensor)} + "\" cannot be stored"};
  s.num = form.num;
  s.heads = static_cast<std::uint32_t>(t.shape[1]);
  const auto both = static_cast<std::uint32_t>(t.shape[2]);
  for (std::uint32_t o = 0; o < raw_.n_ops; ++o) {
    const mekik_op& op = program_.op(o);
    if (op.code != op::kv_append || op.in[2] != tensor) continue;
    const auto dv = static_cast<std::uint32_t>(last_size(program_.tensor(op.in[1])));
    if (s.latent || (s.dv != 0 && s.dv != dv))
      throw Error{MEKIK_E_INVALID, describe_op(program_, o) + ": attention reads values of another width"};
    s.dv = dv;
  }
  const std::uint64_t e = num_bytes(s.num), tokens = limits_.block_tokens;
  if (s.latent) {
    s.d = both;
    s.dvp = static_cast<std::uint32_t>(round_up(both, 16));
  } else {
    s.d = both - s.dv;
    s.dvp = static_cast<std::uint32_t>(round_up(s.dv, 16));
    s.k_head = round_up(times(tokens * s.d, e), 64);
  }
  s.v_head = round_up(times(tokens * s.dvp, e), 64);
  if (form.bits != 0) place_codes(s, form.bits, program_.name(tensor));
  s.v_offset = times(s.k_head, s.heads);
  std::uint64_t& block = plan_.block_bytes[t.group];
  s.offset = block;
  block += s.v_offset + times(s.v_head, s.heads);
  if (block > (std::uint64_t{1} << 40)) throw Error{MEKIK_E_NO_MEMORY, "blocks of more than 2^40 bytes"};
}

void Planner::place_states() {
  for (std::uint32_t i = 0; i < raw_.n_tensors; ++i)
    if (program_.tensor(i).role == MEKIK_ROLE_STATE) place_state(i);
  for (std::uint32_t g = 0; g < raw_.n_groups; ++g) plan_.kv_bytes += times(plan_.block_bytes[g], limits_.n_blocks[g]);
}

void Planner::place_slots() {
  for (std::uint32_t i = 0; i < raw_.n_tensors; ++i) {
    if (program_.tensor(i).role != MEKIK_ROLE_SLOT) continue;
    SlotPlan& s = plan_.slots[i];
    s.floats = round_up(s.floats != 0 ? s.floats : whole_size(program_.tensor(i)), 16);
    s.offset = plan_.slot_bytes;
    plan_.slot_bytes += times(s.floats, sizeof(float));
    plan_.staged_floats = std::max(plan_.staged_floats, s.floats);
  }
}

void Planner::count_scratch() {
  std::uint64_t floats = 2 * kColumnChunk * 16 + kPanelColumns * 16;
  for (const PhasePlan& p : plan_.phases) {
    if (p.op == kNone) continue;
    const mekik_op& op = program_.op(p.op);
    if (p.kind == PhasePlan::Kind::attention || p.kind == PhasePlan::Kind::latent) {
      const StatePlan& s = plan_.states[op.in[p.kind == PhasePlan::Kind::latent ? 4 : 1]];
      const bool codes = s.codes.bits != 0;
      floats = std::max<std::uint64_t>(
          floats, codes ? head_attention_scratch_floats(s.d, s.dvp) : attention_scratch_floats(s.latent ? s.dvp : s.d, s.dvp));
    }
    if (p.kind == PhasePlan::Kind::full) {
      const auto d = static_cast<std::uint32_t>(last_size(program_.tensor(op.in[0])));
      const auto dvp = static_cast<std::uint32_t>(round_up(last_size(program_.tensor(op.in[2])), 16));
      floats = std::max<std::uint64_t>(floats, attention_scratch_floats(d, dvp));
    }
    if (p.kind == PhasePlan::Kind::scan) floats = std::max(floats, scan_scratch(p.op));
  }
  for (std::uint32_t o = 0; o < raw_.n_ops; ++o) {
    const mekik_op& op = program_.op(o);
    const auto row = [&](std::uint32_t i) { return row_size(program_.tensor(op.in[i])); };
    if (op.code == op::kv_append || op.code == op::mla_append) floats = std::max<std::uint64_t>(floats, 2 * row(2) + 256);
    if (op.code == op::moe_route || op.code == op::moe_route_mixer) floats = std::max<std::uint64_t>(floats, 4 * row(0));
    if (op.code == op::moe_combine) floats = std::max<std::uint64_t>(floats, 17 * (row(0) / row_size(program_.tensor(op.out[0])) + 1));
  }
  plan_.scratch_bytes = times(round_up(floats * sizeof(float), 128), settings_.threads);
  plan_.batch_bytes = round_up(times(limits_.max_tokens, 2 * sizeof(std::uint32_t)) + times(limits_.max_rows, sizeof(std::uint32_t)) +
                                   times(limits_.max_seqs, 2 * sizeof(std::uint32_t)),
                               64) +
                      times(times(plan_.staged_floats, limits_.max_seqs), sizeof(float));
}

void Planner::identify() {
  std::string layout = "mekik cpu state 1; block_tokens " + std::to_string(limits_.block_tokens) + "; lanes " + std::to_string(plan_.lanes);
  for (std::uint32_t i = 0; i < raw_.n_tensors; ++i) {
    const mekik_tensor& t = program_.tensor(i);
    if (t.role == MEKIK_ROLE_SLOT) {
      layout += "; slot";
      for (std::uint32_t d = 0; d < t.rank; ++d) layout += " " + std::to_string(t.shape[d]);
      layout += " of " + std::to_string(plan_.slots[i].code);
    }
    if (t.role != MEKIK_ROLE_STATE) continue;
    const StatePlan& s = plan_.states[i];
    layout += "; group " + std::to_string(t.group) + " " + t.scheme + " " + std::to_string(s.heads) + " " + std::to_string(s.d) + " " +
              std::to_string(s.dv) + (s.latent ? " latent" : "");
  }
  // Raise the number with every change of a kernel that can change a bit.
  const std::string numeric = std::string{"mekik cpu kernels 3; isa "} + settings_.kernels->name + "; math " +
                              (settings_.exact ? "exact" : "quantized") + "; " + layout;
  // Raise this one with every change of the packed layout.
  std::string packed = "mekik cpu packed 1";
  for (const WeightPlan& w : plan_.weights)
    packed += "; " + std::to_string(w.bytes) + " " + std::to_string(w.matrix) + std::to_string(w.vector) + std::to_string(w.columns) + " " +
              std::to_string(w.experts);
  const auto digest = [](const std::string& text, std::uint8_t* out) {
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out);
  };
  digest(layout, plan_.layout_id);
  digest(numeric, plan_.numeric_id);
  digest(packed, plan_.packed_id);
}

}  // namespace mekik::cpu
