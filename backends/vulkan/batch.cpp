// Checks of a batch: every number in it before any of it is used.
#include <algorithm>
#include <utility>

#include "exec.hpp"

namespace mekik::vulkan {

namespace {

void need(bool holds, const char* why) {
  if (!holds) throw Error{MEKIK_E_INVALID, why};
}
void need_within(std::uint64_t value, std::uint64_t most, const char* what) {
  if (value > most) throw Error{MEKIK_E_INVALID, std::to_string(value) + " " + what + " where the limit is " + std::to_string(most)};
}
void need_below(const std::int32_t* values, std::uint32_t n, std::uint64_t bound, const char* what) {
  for (std::uint32_t i = 0; i < n; ++i)
    if (values[i] < 0 || static_cast<std::uint64_t>(values[i]) >= bound)
      throw Error{MEKIK_E_INVALID,
                  std::string{what} + "[" + std::to_string(i) + "] = " + std::to_string(values[i]) + ", of " + std::to_string(bound)};
}

void check_sequences(const mekik_batch& b, bool stateful) {
  need(b.seq_start != nullptr && b.seq_start[0] == 0, "sequences must start at token 0");
  for (std::uint32_t s = 0; s < b.n_seqs; ++s)
    if (b.seq_start[s] >= b.seq_start[s + 1] || static_cast<std::uint32_t>(b.seq_start[s + 1]) > b.n_tokens)
      throw Error{MEKIK_E_INVALID, "sequence " + std::to_string(s) + " has no tokens or too many"};
  need(static_cast<std::uint32_t>(b.seq_start[b.n_seqs]) == b.n_tokens, "tokens that belong to no sequence");
  need(!stateful || b.context_len != nullptr, "context_len is missing");
  for (std::uint32_t s = 0; b.context_len != nullptr && s < b.n_seqs; ++s) need(b.context_len[s] >= 0, "a negative context");
}

void check_embeds(const mekik_batch& b) {
  need(b.embed_rows != nullptr && (b.embeds != nullptr || b.n_embeds == 0), "EMBEDS without embeddings");
  for (std::uint32_t t = 0; t < b.n_tokens; ++t)
    if (b.embed_rows[t] >= static_cast<std::int64_t>(b.n_embeds))
      throw Error{MEKIK_E_INVALID, "embedding " + std::to_string(b.embed_rows[t]) + " of " + std::to_string(b.n_embeds)};
}

}  // namespace

void Exec::check_batch(const mekik_batch& b) const {
  need(b.struct_size >= sizeof(mekik_batch), "the batch is smaller than this backend knows it");
  if ((b.uses & ~plan_.uses()) != 0)
    throw Error{MEKIK_E_UNSUPPORTED, "the batch uses " + std::to_string(b.uses & ~plan_.uses()) + ", which the plan does not list"};
  need(b.n_tokens > 0 && b.n_seqs > 0, "an empty batch");
  need_within(b.n_tokens, limits_.max_tokens, "tokens");
  need_within(b.n_seqs, limits_.max_seqs, "sequences");
  need_within(b.n_rows, limits_.max_rows, "rows");
  need_within(b.max_blocks, limits_.max_blocks, "blocks a sequence");
  const std::uint32_t n_axes = (b.uses & MEKIK_USE_AXES) != 0 ? b.n_axes : 1;
  need(n_axes >= 1 && n_axes <= 8, "position axes: 1 to 8 are possible");
  check_sequences(b, program_.raw().n_groups != 0 || plan_.slot_bytes != 0);
  if ((b.uses & MEKIK_USE_EMBEDS) != 0) check_embeds(b);
  need((b.uses & MEKIK_USE_TYPES) == 0 || b.token_types != nullptr, "TYPES without token_types");
  for (std::uint32_t i = 0; i < program_.n_tensors(); ++i) {
    const mekik_tensor& t = program_.tensor(i);
    const std::string_view name = program_.name(i);
    if (t.role == MEKIK_ROLE_OUTPUT && t.shape[0] == MEKIK_DIM_SEQS)
      need(b.n_rows == b.n_seqs, "a pooled output has a row for each sequence: n_rows must be n_seqs");
    if (t.role != MEKIK_ROLE_INPUT) continue;
    if (name == "positions") need(b.positions != nullptr, "positions are missing");
    if (name == "rows" && b.n_rows != 0) {
      need(b.rows != nullptr, "rows are missing");
      need_below(b.rows, b.n_rows, b.n_tokens, "rows");
    }
  }
  check_ids(b);
  if (program_.raw().n_groups != 0) check_blocks(b);
  if (plan_.slot_bytes != 0) check_slots(b);
}

void Exec::check_ids(const mekik_batch& b) const {
  const bool embeds = (b.uses & MEKIK_USE_EMBEDS) != 0;
  for (std::uint32_t o = 0; o < program_.n_ops(); ++o) {
    const mekik_op& op = program_.op(o);
    const bool whole = op.code == op::attention_full || op.code == op::attention_near || (op.code == op::pool && op.ints[0] != 2);
    for (std::uint32_t s = 0; whole && b.context_len != nullptr && s < b.n_seqs; ++s)
      if (b.context_len[s] != 0) throw Error{MEKIK_E_INVALID, describe_op(program_, o) + " needs the whole sequence in one step"};
    if ((op.code != op::embed && op.code != op::embed_mix) || program_.tensor(op.in[0]).role != MEKIK_ROLE_INPUT) continue;
    const std::string_view name = program_.name(op.in[0]);
    const std::uint32_t bound = plan_.weights[op.in[op.code == op::embed ? 1 : 2]].layout.n;
    if (name == "positions") need_below(b.positions, b.n_tokens, bound, "positions");
    if (name == "segments") need_within(b.n_seqs, bound, "segments");
    if (name == "token_types" && (b.uses & MEKIK_USE_TYPES) != 0) need_below(b.token_types, b.n_tokens, bound, "token_types");
    if (name != "tokens") continue;
    need(b.token_ids != nullptr, "token_ids are missing");
    for (std::uint32_t t = 0; t < b.n_tokens; ++t) {
      if (op.code == op::embed && embeds && b.embed_rows[t] >= 0) continue;
      if (b.token_ids[t] < 0 || static_cast<std::uint32_t>(b.token_ids[t]) >= bound)
        throw Error{MEKIK_E_INVALID,
                    "token_ids[" + std::to_string(t) + "] = " + std::to_string(b.token_ids[t]) + ", of " + std::to_string(bound)};
    }
  }
}

void Exec::check_slots(const mekik_batch& b) const {
  need(b.state_in != nullptr && b.state_out != nullptr, "slots are missing");
  const auto check = [&](std::int32_t id) {
    if (id < -1 || id >= static_cast<std::int64_t>(limits_.n_slots))
      throw Error{MEKIK_E_INVALID, "slot " + std::to_string(id) + " of " + std::to_string(limits_.n_slots)};
  };
  std::vector<std::int32_t> saved;
  for (std::uint32_t s = 0; s < b.n_seqs; ++s) {
    check(b.state_in[s]);
    if (b.state_in[s] < 0 && b.context_len[s] != 0)
      throw Error{MEKIK_E_INVALID, "sequence " + std::to_string(s) + " has a past but no state"};
    for (std::int32_t t = b.seq_start[s]; t < b.seq_start[s + 1]; ++t) {
      check(b.state_out[t]);
      if (b.state_out[t] < 0) continue;
      need((b.uses & MEKIK_USE_STATE_OUT) != 0 || t + 1 == b.seq_start[s + 1],
           "a state is saved within a sequence's tokens without STATE_OUT");
      saved.push_back(b.state_out[t]);
    }
  }
  std::sort(saved.begin(), saved.end());
  need(std::adjacent_find(saved.begin(), saved.end()) == saved.end(), "one slot is written twice");
}

void Exec::check_blocks(const mekik_batch& b) const {
  need(b.blocks != nullptr, "block tables are missing");
  std::vector<std::pair<std::uint32_t, std::int32_t>> written;
  for (std::uint32_t g = 0; g < program_.raw().n_groups; ++g) {
    need(b.blocks[g] != nullptr, "a block table is missing");
    for (std::uint32_t s = 0; s < b.n_seqs; ++s) {
      const auto context = static_cast<std::uint64_t>(b.context_len[s]), size = std::uint64_t{limits_.block_tokens};
      const std::uint64_t end = context + static_cast<std::uint64_t>(b.seq_start[s + 1] - b.seq_start[s]), back = plan_.look_back[g];
      const std::uint64_t first = back >= context ? 0 : context - back;
      const std::int32_t* table = b.blocks[g] + static_cast<std::size_t>(s) * b.max_blocks;
      const auto where = [&] { return "group " + std::to_string(g) + ", sequence " + std::to_string(s) + ": "; };
      if ((end + size - 1) / size > b.max_blocks)
        throw Error{MEKIK_E_INVALID, where() + std::to_string(end) + " tokens do not fit its blocks"};
      for (std::uint64_t i = 0; i < b.max_blocks; ++i)
        if (table[i] < -1 || (table[i] >= 0 && static_cast<std::uint32_t>(table[i]) >= limits_.n_blocks[g]))
          throw Error{MEKIK_E_INVALID, where() + "block " + std::to_string(table[i]) + " of " + std::to_string(limits_.n_blocks[g])};
      for (std::uint64_t i = first / size; i <= (end - 1) / size; ++i) {
        if (table[i] < 0) throw Error{MEKIK_E_INVALID, where() + "block " + std::to_string(i) + " is missing"};
        if (i >= context / size) written.emplace_back(g, table[i]);
      }
    }
  }
  std::sort(written.begin(), written.end());
  need(std::adjacent_find(written.begin(), written.end()) == written.end(), "two sequences write one block");
}

}  // namespace mekik::vulkan
