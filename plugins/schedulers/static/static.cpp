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
      const auto take = std::min(tokens, std::max(1u, seqs[i].prompt_left));
      if (take == 0) break;
      out[n++] = {i, MEKIK_RUN, take, 0, 0};
      tokens -= take;
    }
    return n;
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheduler.static", "1.0", mekik::scheduler<Static>());
