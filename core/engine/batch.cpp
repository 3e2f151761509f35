#include "engine/batch.hpp"

#include <algorithm>

namespace mekik::engine {

void Batch::fill(const std::vector<Part>& parts, const Runtime& runtime, float* output) {
  const auto n_groups = static_cast<std::uint32_t>(runtime.groups.size());
  const bool slots = runtime.slots;
  bool on_the_way = false;  // states are saved after other tokens than the last of a sequence
  token_ids_.clear();
  positions_.clear();
  seq_start_.assign(1, 0);
  context_len_.clear();
  rows_.clear();
  token_types_.clear();
  state_in_.clear();
  state_out_.clear();
  std::size_t max_blocks = 0;
  for (const auto& part : parts) {
    const auto& s = *part.sequence;
    for (std::uint32_t i = 0; i < part.tokens; ++i) {
      if (i >= part.tokens - part.n_rows) rows_.push_back(static_cast<std::int32_t>(token_ids_.size()));
      const std::uint32_t own = part.tokens - static_cast<std::uint32_t>(part.drafts.size());
      token_ids_.push_back(i < own ? s.tokens[s.computed + i] : part.drafts[i - own]);
      positions_.push_back(static_cast<std::int32_t>(s.computed + i));
      const auto& types = s.request->request.token_types;
      if (runtime.token_types) token_types_.push_back(s.computed + i < types.size() ? types[s.computed + i] : 0);
    }
    seq_start_.push_back(static_cast<std::int32_t>(token_ids_.size()));
    context_len_.push_back(static_cast<std::int32_t>(s.computed));
    for (const auto& table : s.blocks) max_blocks = std::max(max_blocks, table.size());
    if (slots) {
      const std::size_t begin = state_out_.size();
      state_in_.push_back(s.slot.id());
      state_out_.resize(token_ids_.size(), -1);
      state_out_.back() = (s.next_slot ? s.next_slot : s.slot).id();
      for (const auto& c : s.checkpoints) {
        if (c.tokens <= s.computed) continue;
        state_out_[begin + c.tokens - s.computed - 1] = c.slot.id();
        on_the_way = true;
      }
    }
  }
  tables_.resize(n_groups);
  table_pointers_.clear();
  for (std::uint32_t g = 0; g < n_groups; ++g) {
    tables_[g].assign(parts.size() * max_blocks, -1);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto& table = parts[i].sequence->blocks[g];
      for (std::size_t b = 0; b < table.size(); ++b) tables_[g][i * max_blocks + b] = table[b].id();
    }
    table_pointers_.push_back(tables_[g].data());
  }
  raw_ = {};
  raw_.struct_size = sizeof raw_;
  raw_.n_tokens = static_cast<std::uint32_t>(token_ids_.size());
  raw_.n_seqs = static_cast<std::uint32_t>(parts.size());
  raw_.n_rows = static_cast<std::uint32_t>(rows_.size());
  raw_.max_blocks = static_cast<std::uint32_t>(max_blocks);
  raw_.n_axes = 1;
  raw_.pick_size = sizeof(mekik_pick);
  raw_.token_ids = token_ids_.data();
  raw_.positions = positions_.data();
  raw_.seq_start = seq_start_.data();
  raw_.context_len = context_len_.data();
  raw_.blocks = table_pointers_.data();
  raw_.rows = rows_.data();
  raw_.state_in = slots ? state_in_.data() : nullptr;
  raw_.state_out = slots ? state_out_.data() : nullptr;
  float*& to = runtime.vectors ? raw_.hidden : raw_.logits;
  to = rows_.empty() ? nullptr : output;
  if (on_the_way) raw_.uses |= MEKIK_USE_STATE_OUT;
  if (runtime.vectors) raw_.uses |= MEKIK_USE_HIDDEN;
  if (runtime.token_types) raw_.uses |= MEKIK_USE_TYPES;
  raw_.token_types = runtime.token_types ? token_types_.data() : nullptr;
}

}  // namespace mekik::engine
