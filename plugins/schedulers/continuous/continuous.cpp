// Continuous batching: every step takes all sequences that are decoding, then fills the rest of its tokens with pieces of prompts.
// First come, first served within a priority. The plan is a function of the view alone.
#include <mekik/plugin.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace {

class Continuous {
 public:
  static constexpr const char* name = "continuous";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Decodes first, then fills the step with pieces of prompts, in order of priority and arrival.";
  static constexpr std::array options{
      mekik::opt::integer("max_prefill_tokens", "0", 0, 1 << 20, "Most prompt tokens of one sequence in a step; 0: as the step has room."),
  };
  explicit Continuous(mekik::Config config) : max_prefill_{static_cast<std::uint32_t>(config.i64("max_prefill_tokens"))} {}

  std::uint32_t plan(const mekik_step_view& view, mekik::Strided<const mekik_seq_view> seqs, mekik::Strided<mekik_choice> out) {
    std::vector<std::uint32_t> order(seqs.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return before(seqs[a], seqs[b]); });
    std::vector<std::uint32_t> running, waiting;
    for (const auto i : order)
      if (seqs[i].waiting_fetch == 0) (seqs[i].running != 0 ? running : waiting).push_back(i);

    Room room{view.max_tokens, std::min<std::uint32_t>(view.max_seqs, static_cast<std::uint32_t>(out.size())), view.free_blocks,
              view.block_tokens};
    std::uint32_t n = 0;
    std::vector<std::uint32_t> taken(seqs.size(), 0);
    // Decoding sequences in order; when blocks run out, the last in order gives up its own.
    std::size_t keep = running.size();
    for (std::size_t r = 0; r < keep; ++r) {
      const auto& s = seqs[running[r]];
      if (s.prompt_left > 0) continue;
      while (blocks_for(s, 1, room) > room.blocks && keep > r + 1) {
        const auto victim = running[--keep];
        room.give_back(seqs[victim].blocks_held);
        out[n++] = {victim, MEKIK_DROP, 0, 0, 0};
      }
      taken[running[r]] = room.take(s, 1);
    }
    // Then prompts that have begun; each keeps what the rest of its prompt needs, before others may begin.
    std::uint32_t promised = 0;
    for (std::size_t r = 0; r < keep; ++r) {
      const auto& s = seqs[running[r]];
      if (s.prompt_left == 0) continue;
      const auto whole = blocks_for(s, s.prompt_left, room);
      const auto before_blocks = room.blocks;
      taken[running[r]] = room.take(s, piece(s));
      promised += whole - std::min(whole, before_blocks - room.blocks);
    }
    // Those that run hold all blocks, and none of them can go on: the last in order starts again later.
    if (keep > 1 && std::none_of(running.begin(), running.end(), [&](std::uint32_t i) { return taken[i] > 0; })) {
      out[n++] = {running[keep - 1], MEKIK_DROP, 0, 0, 0};
      return n;
    }
    const std::uint32_t first_run = n;
    for (std::size_t r = 0; r < keep; ++r)
      if (taken[running[r]] > 0) out[n++] = {running[r], MEKIK_RUN, taken[running[r]], 0, 0};
    const std::uint32_t end_run = n;
    // Who begins must find blocks for the whole prompt and its first token, unless nobody else is there to wait for.
    std::uint32_t begun = static_cast<std::uint32_t>(keep);
    for (const auto i : waiting) {
      if (begun >= view.max_seqs || n >= out.size()) break;
      const auto& s = seqs[i];
      const auto whole = blocks_for(s, s.prompt_left + 1, room);
      if (begun > 0 && std::uint64_t{whole} + promised > room.blocks) break;  // not past it: it would starve
      const auto before_blocks = room.blocks;
      const auto tokens = room.take(s, piece(s));
      if (tokens == 0) break;
      promised += whole - std::min(whole, before_blocks - room.blocks);
      out[n++] = {i, MEKIK_RUN, tokens, 0, 0};
      ++begun;
    }
    // What is left may be tried on drafts.
    room.blocks -= std::min(room.blocks, promised);
    for (std::uint32_t c = first_run; c < end_run; ++c) {
      mekik_seq_view s = seqs[out[c].seq];
      if (s.max_drafts == 0) continue;
      s.cached += out[c].tokens;
      Room tried = room;
      out[c].drafts = tried.more(s, s.max_drafts);
      room.blocks = tried.blocks;
    }
    return n;
  }

 private:
  struct Room {
    std::uint32_t tokens, seqs, blocks, block_tokens;
    // Up to `want` tokens of s; 0 when a limit leaves none.
    std::uint32_t take(const mekik_seq_view& s, std::uint32_t want) {
      if (seqs == 0) return 0;
      const auto n = more(s, want);
      if (n > 0) --seqs;
      return n;
    }
    // Of a sequence that has a part in the step.
    std::uint32_t more(const mekik_seq_view& s, std::uint32_t want) {
      const std::uint64_t own = (std::uint64_t{s.cached} + block_tokens - 1) / block_tokens;
      const auto fits = (own + blocks) * block_tokens - s.cached;
      const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>({want, tokens, fits}));
      if (n == 0) return 0;
      tokens -= n;
      blocks -= static_cast<std::uint32_t>((std::uint64_t{s.cached} + n + block_tokens - 1) / block_tokens - own);
      return n;
    }
    void give_back(std::uint32_t held) { blocks += held; }
  };

  static bool before(const mekik_seq_view& a, const mekik_seq_view& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    return a.arrival_ns != b.arrival_ns ? a.arrival_ns < b.arrival_ns : a.id < b.id;
  }
  // Blocks that s needs on top of those of its stored tokens.
  static std::uint32_t blocks_for(const mekik_seq_view& s, std::uint32_t tokens, const Room& room) {
    const auto round_up = [&](std::uint64_t n) { return (n + room.block_tokens - 1) / room.block_tokens; };
    return static_cast<std::uint32_t>(round_up(std::uint64_t{s.cached} + tokens) - round_up(s.cached));
  }
  std::uint32_t piece(const mekik_seq_view& s) const { return max_prefill_ == 0 ? s.prompt_left : std::min(s.prompt_left, max_prefill_); }

  std::uint32_t max_prefill_;
};

}  // namespace

MEKIK_PLUGIN("mekik.scheduler.continuous", "1.0", mekik::scheduler<Continuous>());
