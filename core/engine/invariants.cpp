// What must hold between any two steps. Tests ask after every one.
#include <set>

#include "engine/loop.hpp"

namespace mekik::engine {
namespace {

// Every id is free, pending, or held by exactly as many leases as its count says.
Status check_pool(const Pool& pool, const std::vector<std::uint32_t>& counted, const std::string& what) {
  std::vector<int> places(pool.size(), 0);
  for (const auto id : pool.free_ids()) ++places[static_cast<std::size_t>(id)];
  for (const auto id : pool.pending_ids()) ++places[static_cast<std::size_t>(id)];
  for (std::uint32_t i = 0; i < pool.size(); ++i) {
    const auto references = pool.references(static_cast<std::int32_t>(i));
    const auto name = what + " " + std::to_string(i);
    if (references != counted[i])
      return internal_error(name + " counts " + std::to_string(references) + " references, held are " + std::to_string(counted[i]));
    if (places[i] + (references > 0 ? 1 : 0) != 1) return internal_error(name + " is not in exactly one of free, pending, held");
  }
  return {};
}

}  // namespace

Status Loop::check_invariants() const {
  std::vector<std::vector<std::uint32_t>> counts;
  for (const auto& pool : pools_) counts.emplace_back(pool.size(), 0);
  std::vector<std::uint32_t> slots(slots_.size(), 0);
  prefixes_.count(counts, slots);
  tier_.count(counts);
  MEKIK_CHECK_OK(prefixes_.check());
  MEKIK_CHECK_OK(speculation_.check_invariants());
  for (const auto& s : sequences_) {
    const auto name = "sequence " + std::to_string(s->id);
    const bool holds = s->state == SequenceState::running;
    if (!holds && (s->computed != 0 || !s->blocks.empty() || s->slot || !s->checkpoints.empty()))
      return internal_error(name + " does not run but holds state");
    if (holds && s->left() == 0) return internal_error(name + " runs with nothing to compute");
    if (s->tokens.size() > runtime_.context) return internal_error(name + " is longer than the context");
    for (std::size_t g = 0; g < s->blocks.size(); ++g) {
      if (s->blocks[g].size() < blocks_for(s->computed)) return internal_error(name + " lacks blocks for what it has stored");
      for (const auto& block : s->blocks[g])
        if (block) ++counts[g][static_cast<std::size_t>(block.id())];
      // Whoever writes into a block has it alone.
      if (s->computed % runtime_.limits.block_tokens != 0) {
        const auto& last = s->blocks[g][s->computed / runtime_.limits.block_tokens];
        if (!last || pools_[g].references(last.id()) != 1) return internal_error(name + " shares the block that it fills");
      }
    }
    if (s->slot) ++slots[static_cast<std::size_t>(s->slot.id())];
    if (s->next_slot) return internal_error(name + " has a slot for a state that no step makes");
    if (runtime_.slots && s->computed > 0 && !s->slot) return internal_error(name + " lacks its state");
    for (const auto& c : s->checkpoints) {
      if (c.tokens > s->computed) return internal_error(name + " has a checkpoint of what it has not computed");
      ++slots[static_cast<std::size_t>(c.slot.id())];
    }
  }
  for (std::size_t g = 0; g < pools_.size(); ++g) MEKIK_CHECK_OK(check_pool(pools_[g], counts[g], "block " + std::to_string(g) + "/"));
  return check_pool(slots_, slots, "slot");
}

}  // namespace mekik::engine
