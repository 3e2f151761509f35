// Static batching, as a baseline: a batch is formed of whoever waits, and nobody joins before all of it have ended.
// The plan is a function of the view alone: a batch is going on while any sequence runs.
#include <mekik/plugin.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace {

class Static {
 public:
  static constexpr const char* name = "static";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Forms a batch of the waiting requests and runs it to its end before the next one.";
  static constexpr std::array<mekik_option, 0> options{};
  explicit Static(mekik::Config) {}

  std::uint32_t plan(const mekik_step_view& view, mekik::Strided<const mekik_seq_view> seqs, mekik::Strided<mekik_choice> out) {
    std::vector<std::uint32_t> order(seqs.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const auto &x = seqs[a], &y = seqs[b];
      if (x.priority != y.priority) return x.priority > y.priority;
      return x.arrival_ns != y.arrival_ns ? x.arrival_ns < y.arrival_ns : x.id < y.id;
    });
    const bool going = std::any_of(order.begin(), order.end(), [&](std::uint32_t i) { return seqs[i].running != 0; });
    std::vector<std::uint32_t> members;
    for (const auto i : order)
      if (seqs[i].waiting_fetch == 0 && members.size() < view.max_seqs && (!going || seqs[i].running != 0)) members.push_back(i);
    // Decoding members first: a long prompt must not take the tokens of those that are ahead of it.
    std::stable_partition(members.begin(), members.end(), [&](std::uint32_t i) { return seqs[i].prompt_left == 0; });
    std::uint32_t tokens = view.max_tokens, n = 0;
    for (const auto i : members) {
      const auto take = std::min(tokens, std::max(1u, seqs[i].prompt_left - std::min(seqs[i].prompt_left, seqs[i].known)));
      if (take == 0) break;
      out[n++] = {i, MEKIK_RUN, take, 0, 0};
      tokens -= take;
    }
    // What is left may be tried on drafts; blocks only of those that nobody waits for.
    std::uint32_t blocks = view.free_blocks;
    const auto blocks_of = [&](std::uint64_t stored) {
      return static_cast<std::uint32_t>((stored + view.block_tokens - 1) / view.block_tokens);
    };
    for (std::uint32_t c = 0; c < n; ++c) {
      const auto& s = seqs[out[c].seq];
      blocks -= std::min(blocks, blocks_of(std::uint64_t{s.cached} + s.known + out[c].tokens) - blocks_of(s.cached));
    }
    for (std::uint32_t c = 0; c < n; ++c) {
      const auto& s = seqs[out[c].seq];
      const std::uint64_t stored = std::uint64_t{s.cached} + out[c].tokens,
                          room = (std::uint64_t{blocks_of(stored)} + blocks) * view.block_tokens;
      out[c].drafts = static_cast<std::uint32_t>(std::min<std::uint64_t>({s.max_drafts, tokens, room - stored}));
      blocks -= blocks_of(stored + out[c].drafts) - blocks_of(stored);
    }
    return n;
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheduler.static", "1.0", mekik::scheduler<Static>());
