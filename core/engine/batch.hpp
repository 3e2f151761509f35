// The arrays of one step in the layout that a backend reads.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/runtime.hpp"
#include "engine/sequence.hpp"

namespace mekik::engine {

// A sequence's share of a step: its next `tokens` tokens, of which the last `n_rows` reach the head as rows first_row and up. The last
// ones may be drafts, which are not the sequence's own yet.
struct Part {
  Sequence* sequence = nullptr;
  std::uint32_t tokens = 0, first_row = 0, n_rows = 0;
  std::span<const std::int32_t> drafts{};
  std::span<const float> confidences{};  // of the drafts
};

// Reused from step to step; what get() returns points into it and is good until the next fill().
class Batch {
 public:
  // `output` is [rows][row_size] for all rows of the parts.
  void fill(const std::vector<Part>& parts, const Runtime& runtime, float* output);
  const mekik_batch* get() const { return &raw_; }

 private:
  mekik_batch raw_{};
  std::vector<std::int32_t> token_ids_, positions_, seq_start_, context_len_, rows_, state_in_, state_out_, token_types_;
  std::vector<std::vector<std::int32_t>> tables_;  // per group [n_seqs][max_blocks]
  std::vector<const std::int32_t*> table_pointers_;
};

}  // namespace mekik::engine
