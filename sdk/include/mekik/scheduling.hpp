// mekik/scheduling.hpp - one step of continuous batching, filled in a given order: what most schedulers need beside the order.
//
//   std::uint32_t plan(const mekik_step_view& view, Seqs seqs, mekik::Strided<mekik_choice> out) {
//     return Step{view, seqs, out, order_of(seqs, before)}.fill();
//   }
// It keeps to every limit of the view, never lets a sequence starve that stands first in the order, gives blocks back when they run out
// (the last in order gives up its own), knows what the cache has of a prompt, and leaves what is free to drafts.
#pragma once
#include <mekik/plugin.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {
#endif
namespace scheduling {

using Seqs = Strided<const mekik_seq_view>;

// Tokens of a prompt that must be computed: all that the cache does not have, the last in any case.
inline std::uint32_t work(const mekik_seq_view& s) { return s.prompt_left - std::min(s.known, std::max(s.prompt_left, 1u) - 1); }

// What is left of a step.
struct Room {
  std::uint32_t tokens, seqs, blocks, block_tokens;
  // Up to `want` tokens of s; 0 when a limit leaves none.
  std::uint32_t take(const mekik_seq_view& s, std::uint32_t want) {
    if (seqs == 0) return 0;
    const auto n = more(s, want);
    if (n > 0) --seqs;
    return n;
  }
  // Of a sequence that has a part in the step. Blocks that the cache has of it count, too, since they are no longer free for others; but
  // some may be in use already, or of a window, so that it is not held up for want of them.
  std::uint32_t more(const mekik_seq_view& s, std::uint32_t want) {
    const std::uint64_t own = (std::uint64_t{s.cached} + block_tokens - 1) / block_tokens, all = (own + blocks) * block_tokens;
    const std::uint64_t begin = s.cached + (std::uint64_t{s.cached} + s.known < all ? std::uint64_t{s.known} : 0);
    const auto fits = all - begin;
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>({want, tokens, fits}));
    if (n == 0) return 0;
    tokens -= n;
    blocks -= static_cast<std::uint32_t>(std::max((begin + n + block_tokens - 1) / block_tokens, own) - own);
    return n;
  }
  // Blocks that s needs on top of those of its stored tokens.
  std::uint32_t blocks_for(const mekik_seq_view& s, std::uint32_t n) const {
    const auto round_up = [&](std::uint64_t x) { return (x + block_tokens - 1) / block_tokens; };
    return static_cast<std::uint32_t>(round_up(std::uint64_t{s.cached} + n) - round_up(s.cached));
  }
};

// By priority, then by arrival. Total, so that the same view always gives the same plan.
inline bool goes_before(const mekik_seq_view& a, const mekik_seq_view& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  return a.arrival_ns != b.arrival_ns ? a.arrival_ns < b.arrival_ns : a.id < b.id;
}

template <class Before>
std::vector<std::uint32_t> order_of(const Seqs& seqs, Before&& before) {
  std::vector<std::uint32_t> order(seqs.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return before(seqs[a], seqs[b]); });
  return order;
}

// A step: all that decode, then prompts that have begun, then those that wait, each in order. Construct, drop or refuse some, fill().
class Step {
 public:
  // `order`: indices of all sequences, the first to be served first.
  Step(const mekik_step_view& view, Seqs seqs, Strided<mekik_choice> out, std::vector<std::uint32_t> order)
      : view_{view},
        seqs_{seqs},
        out_{out},
        order_{std::move(order)},
        out_of_it_(seqs.size(), false),
        room_{view.max_tokens, std::min<std::uint32_t>(view.max_seqs, static_cast<std::uint32_t>(out.size())), view.free_blocks,
              view.block_tokens} {
    for (const auto i : order_) {
      if (seqs[i].waiting_fetch == 0) (seqs[i].running != 0 ? running_ : waiting_).push_back(i);
      else out_of_it_[i] = true;
    }
  }
  const std::vector<std::uint32_t>& running() const { return running_; }  // in order
  const std::vector<std::uint32_t>& waiting() const { return waiting_; }
  const Room& room() const { return room_; }
  std::uint32_t decoding() const {
    return static_cast<std::uint32_t>(
        std::count_if(running_.begin(), running_.end(), [&](std::uint32_t i) { return seqs_[i].prompt_left == 0; }));
  }
  // A running sequence gives up its blocks.
  void drop(std::uint32_t i) {
    std::erase(running_, i);
    out_of_it_[i] = true;
    room_.blocks += seqs_[i].blocks_held;
    out_[n_++] = {i, seqs_[i].swap_bytes > 0 ? std::uint32_t{MEKIK_SWAP} : std::uint32_t{MEKIK_DROP}, 0, 0, 0};
  }
  // A waiting one ends.
  void refuse(std::uint32_t i, std::uint64_t retry_ns) {
    std::erase(waiting_, i);
    out_of_it_[i] = true;
    out_[n_++] = {i, MEKIK_REFUSE, 0, 0, retry_ns};
  }

  // At most `piece` prompt tokens of one sequence, and `prompts` of all. Returns how many choices there are.
  std::uint32_t fill(std::uint32_t piece = UINT32_MAX, std::uint32_t prompts = UINT32_MAX) {
    taken_.assign(seqs_.size(), 0);
    // When blocks run out, the last in order gives up its own.
    for (std::size_t r = 0; r < running_.size(); ++r) {
      const auto& s = seqs_[running_[r]];
      if (s.prompt_left > 0) continue;
      while (room_.blocks_for(s, 1) > room_.blocks && running_.size() > r + 1) drop(running_.back());
      taken_[running_[r]] = room_.take(s, 1);
    }
    const bool may = prompts > 0;
    std::vector<std::uint32_t> begins;
    const std::uint64_t promised = take_prompts(piece, prompts, begins);
    // Those that run hold all blocks, and none of them can go on: the last in order starts again later.
    if (running_.size() > 1 && may && std::all_of(taken_.begin(), taken_.end(), [](std::uint32_t n) { return n == 0; })) {
      drop(running_.back());
      return n_;
    }
    const std::uint32_t first_run = n_;
    for (const auto i : running_)
      if (taken_[i] > 0) out_[n_++] = {i, MEKIK_RUN, taken_[i], 0, 0};
    const std::uint32_t end_run = n_;
    for (const auto i : begins) out_[n_++] = {i, MEKIK_RUN, taken_[i], 0, 0};
    // What is left may be tried on drafts.
    room_.blocks -= static_cast<std::uint32_t>(std::min<std::uint64_t>(room_.blocks, promised));
    for (std::uint32_t c = first_run; c < end_run; ++c) {
      mekik_seq_view s = seqs_[out_[c].seq];
      if (s.max_drafts == 0) continue;
      s.cached += out_[c].tokens;
      Room tried = room_;
      out_[c].drafts = tried.more(s, s.max_drafts);
      room_.blocks = tried.blocks;
    }
    return n_;
  }

 private:
  // Tokens go by the order alone, so that a long prompt that has begun does not keep out those that are to be served before the rest of it;
  // but it keeps the blocks that the rest needs. `begins`: those that waited. Returns the blocks that prompts will still need.
  std::uint64_t take_prompts(std::uint32_t piece, std::uint32_t prompts, std::vector<std::uint32_t>& begins) {
    std::uint64_t promised = 0;
    for (const auto i : running_)
      if (seqs_[i].prompt_left > 0) promised += room_.blocks_for(seqs_[i], seqs_[i].prompt_left);
    auto begun = static_cast<std::uint32_t>(running_.size());
    bool closed = false;
    for (const auto i : order_) {
      const auto& s = seqs_[i];
      const bool runs = s.running != 0;
      if (out_of_it_[i] || (runs && s.prompt_left == 0)) continue;
      const std::uint64_t needs = runs ? 0 : room_.blocks_for(s, s.prompt_left + 1);
      // Who begins must find blocks for the whole prompt and its first token, unless nobody else is there to wait for. Nobody goes past
      // one that does not: it would starve.
      // One that gave up its blocks before leaves one for each that runs, so that it need not do so again at the next step.
      const std::uint64_t spare = s.generated > 0 ? running_.size() : 0;
      if (!runs && (begun >= view_.max_seqs || n_ + begun >= out_.size() || (begun > 0 && needs + spare + promised > room_.blocks)))
        closed = true;
      if (!runs && closed) continue;
      const auto before = room_.blocks;
      taken_[i] = room_.take(s, std::min({work(s), piece, prompts}));
      prompts -= taken_[i];
      if (!runs && taken_[i] == 0) closed = true;
      if (!runs && taken_[i] > 0) {
        promised += needs;
        begins.push_back(i);
        ++begun;
      }
      promised -= std::min<std::uint64_t>(promised, before - room_.blocks);
    }
    return promised;
  }

  const mekik_step_view& view_;
  const Seqs seqs_;
  Strided<mekik_choice> out_;
  const std::vector<std::uint32_t> order_;
  std::vector<bool> out_of_it_;  // dropped, refused, or waiting for a fetch
  Room room_;
  std::vector<std::uint32_t> running_, waiting_, taken_;
  std::uint32_t n_ = 0;
};

}  // namespace scheduling
#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
