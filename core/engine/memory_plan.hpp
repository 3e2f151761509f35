// The memory of a loaded model, decided and printed before any weight is read, and held to.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "config/pipeline.hpp"
#include "program/program.hpp"

namespace mekik::engine {

// All in bytes, or tokens and counts where the name says so.
struct MemoryPlan {
  std::uint64_t file_bytes = 0;                       // on disk; no page of it stays resident
  std::uint64_t weight_bytes = 0;                     // packed, on the device
  std::uint64_t kv_bytes = 0;                         // all blocks
  std::uint64_t slot_bytes = 0;                       // recurrent states
  std::uint64_t work_bytes = 0;                       // activations and scratch of the backend
  std::uint64_t host_bytes = 0;                       // of the core: tokenizer, program, logits, the process itself
  std::uint64_t tier_bytes = 0;                       // of the host, that the cache's slower tier may take
  std::uint64_t draft_bytes = 0;                      // all that a draft model takes
  std::uint64_t peak_load_bytes = 0;                  // what loading needs beyond the above, for a moment
  std::uint64_t machine_bytes = 0, budget_bytes = 0;  // the machine's; what of it may be planned for
  std::uint64_t token_bytes = 0;                      // of keys and values that one more token of a sequence keeps for good
  std::uint64_t window_bytes = 0;                     // of one sequence in layers that see a window only, however long it is
  std::uint32_t kept_states = 0;                      // slots beyond one a sequence: what the cache can keep
  std::uint32_t n_blocks = 0;                         // of the largest group
  std::uint32_t block_tokens = 0, context = 0, max_sequences = 0, max_batch_tokens = 0;
  std::uint64_t pool_tokens = 0;  // that all sequences together can keep
  std::string kv;                 // the form of keys and values

  std::uint64_t total() const { return weight_bytes + kv_bytes + slot_bytes + work_bytes + host_bytes + tier_bytes + draft_bytes; }
  // The longest sequence that fits this machine beside the model, whatever the model was made for; 0: nothing is kept by token.
  std::uint64_t longest() const;
  std::string render() const;  // a few lines for people
};

// The bytes of memory that this process may use: the machine's, or less where a control group says so.
// Blocks that a sequence needs in a group with a window: the window, the block being filled and a border.
std::uint32_t window_blocks(std::uint64_t window, std::uint32_t block_tokens);
// Tokens that one sequence could store alone.
std::uint64_t longest_sequence(const std::vector<program::StateGroup>& groups, const mekik_limits& limits);
std::uint64_t machine_memory();

// Fills `limits` and `plan` for a program on an opened device. `vocab_bytes`: what the tokenizer's tables take, about. `keeps`: whether the
// cache keeps anything that no sequence holds.
// plan.tier_bytes is set before.
// Code::invalid when the pipeline asks for more than the machine has, or for a cache that cannot hold one sequence.
Status plan_memory(const config::Pipeline& pipeline, const program::Program& program, std::uint32_t context, std::uint64_t vocab_bytes,
                   bool keeps, const std::function<Status(const mekik_limits&, mekik_plan&)>& ask_backend, mekik_limits& limits,
                   mekik_plan& backend_plan, MemoryPlan& plan);

}  // namespace mekik::engine
