// When blocks run out: who gives up its own, and how it goes on.
#include "engine/loop.hpp"

namespace mekik::engine {
namespace {

constexpr std::uint8_t kMaxFetches = 4;  // of a preempted sequence; then the rest is computed

bool goes_before(const Sequence& a, const Sequence& b) {  // by priority, then by arrival
  const auto &x = *a.request, &y = *b.request;
  if (x.request.priority != y.request.priority) return x.request.priority > y.request.priority;
  return x.order != y.order ? x.order < y.order : a.index < b.index;
}

}  // namespace

// Nothing could run. When blocks are what is missing, the last in order gives up its own and starts again later, so that the first
// in order always gets on; by the checks of submit() it fits the pools alone.
void Loop::make_room() {
  if (!short_of_blocks_ || tier_.release()) return;
  Sequence *last = nullptr, *only = nullptr;
  std::uint32_t holders = 0;
  for (auto& s : sequences_) {
    if (s->state != SequenceState::running) continue;
    ++holders;
    only = s.get();
    if (last == nullptr || goes_before(*last, *s)) last = s.get();
  }
  if (holders > 1) return preempt(*last, tier_.swap_bytes(*last, now()) > 0);
  for (auto& p : pools_)
    if (p.pending() > 0) return;
  for (auto& s : sequences_)
    if (s->active() && (holders == 0 || s.get() == only))
      return finish(*s, Finish::error, fail(Code::no_memory, "the cache has too few blocks for this request; raise [cache] memory"));
}

void Loop::preempt(Sequence& s, bool swap) {
  prefixes_.insert_tail(s, now());  // what nobody needs the room of is found again
  if (swap) tier_.offer(s, true);
  s.stopped_at = s.computed;
  s.swapped = swap;
  s.fetches = 0;
  s.drop_state();
  s.state = SequenceState::waiting;
  telemetry_.preempted(swap);
}

// Whether a swapped sequence must wait until what it had is there again.
bool Loop::comes_back(Sequence& s) {
  if (!s.swapped || s.fetches >= kMaxFetches) return false;
  ++s.fetches;
  tier_.fetch(s, now());
  return tier_.fetching(s.id);
}

void Loop::resumed(Sequence& s, std::uint32_t known) {
  if (s.stopped_at > known) telemetry_.computed_again(s.stopped_at - known);
  s.stopped_at = 0;
  s.swapped = false;
}

}  // namespace mekik::engine
