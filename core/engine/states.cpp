// Recurrent states of sequences: where a step reads and writes them, and which of them are kept on the way.
#include <algorithm>

#include "engine/loop.hpp"

namespace mekik::engine {
namespace {

constexpr std::uint32_t kEndTokens = 8;  // of a prompt, in which the next turn often differs: the words that ask for an answer

}  // namespace

Lease Loop::take_slot() {
  while (slots_.free() == 0 && prefixes_.evict_state(slots_)) {}
  return slots_.take();
}

// Whether a slot is left for a state that is only kept, after every sequence that can run has its own.
bool Loop::spare_slot() const {
  std::uint32_t without = runtime_.limits.max_seqs;
  for (const auto& s : sequences_)
    if (s->slot && without > 0) --without;
  return slots_.free() + slots_.only_kept() > without;
}

// How likely it is that somebody goes on from the state after so many tokens of the prompt. 0: it is not kept.
int Loop::worth(const Sequence& s, std::uint32_t tokens) const {
  const std::uint32_t block = runtime_.limits.block_tokens, end = s.prompt_tokens;
  if (tokens == 0 || tokens >= end || tokens % runtime_.plan.slot_every != 0) return 0;
  if (tokens == s.branch || tokens == end - 1) return 3;  // the same prompt again begins before its last token
  if (end > kEndTokens && tokens == (end - kEndTokens) / block * block) return 2;
  return tokens % (block * state_blocks_) == 0 ? 1 : 0;
}

// Where the step of so many tokens writes the sequence's state, and those on the way that are kept. False: there is no slot.
bool Loop::take_slots(Sequence& s, std::uint32_t tokens) {
  if (!s.slot || slots_.references(s.slot.id()) > 1) {
    s.next_slot = take_slot();
    if (!s.next_slot && s.slot) {  // it was to be kept besides
      std::erase_if(s.checkpoints, [&](const Checkpoint& c) { return c.slot.id() == s.slot.id(); });
      prefixes_.forget_state(s.slot.id());
    }
    if (!s.next_slot && (!s.slot || slots_.references(s.slot.id()) > 1)) return false;
  }
  if (!prefixes_.on() || s.generated() > 0 || (runtime_.plan.uses & MEKIK_USE_STATE_OUT) == 0) return true;
  for (int least = 3; least > 0; --least)
    for (std::uint32_t at = s.computed + 1; at < s.computed + tokens; ++at)
      if (worth(s, at) == least && spare_slot()) s.checkpoints.push_back({at, take_slot()});
  std::erase_if(s.checkpoints, [](const Checkpoint& c) { return !c.slot; });
  std::sort(s.checkpoints.begin(), s.checkpoints.end(), [](const Checkpoint& a, const Checkpoint& b) { return a.tokens < b.tokens; });
  return true;
}

void Loop::name_slots(const Sequence& s, std::uint64_t ticket) {
  for (const Lease* slot : {&s.slot, &s.next_slot})
    if (*slot) slots_.named(slot->id(), ticket);
  for (const Checkpoint& c : s.checkpoints) slots_.named(c.slot.id(), ticket);
}

// The step is over: its state is the sequence's. It need not be copied to be kept: the next step writes elsewhere.
void Loop::keep_slots(Sequence& s) {
  if (s.next_slot) s.slot = std::move(s.next_slot);
  if (prefixes_.on() && s.generated() == 0 && worth(s, s.computed) > 0 && spare_slot())
    s.checkpoints.push_back({s.computed, s.slot.share()});
}

}  // namespace mekik::engine
