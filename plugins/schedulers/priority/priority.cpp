// Continuous batching with classes: a request of a higher one need not wait until others end. The plan is a function of the view alone.
#include <array>

#include <mekik/scheduling.hpp>

namespace {

using namespace mekik::scheduling;

class Priority {
 public:
  static constexpr const char* name = "priority";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "As continuous; a waiting request takes the place of running ones with a lower priority.";
  static constexpr std::array options{
      mekik::opt::integer("max_prefill_tokens", "0", 0, 1 << 20, "Most prompt tokens of one sequence in a step; 0: as the step has room."),
      mekik::opt::duration("aging", "\"10s\"", 0, 86400e9,
                           "A request that has waited so long is served as if its priority were one higher, and so on; it takes nobody's "
                           "place for that. 0: never."),
  };
  explicit Priority(mekik::Config config)
      : max_prefill_{static_cast<std::uint32_t>(config.i64("max_prefill_tokens"))},
        aging_{static_cast<std::uint64_t>(config.i64("aging"))} {}

  std::uint32_t plan(const mekik_step_view& view, Seqs seqs, mekik::Strided<mekik_choice> out) {
    const auto rank = [&](const mekik_seq_view& s) {
      const bool waits = s.running == 0 && aging_ > 0 && view.now_ns > s.arrival_ns;
      return std::int64_t{s.priority} + (waits ? static_cast<std::int64_t>((view.now_ns - s.arrival_ns) / aging_) : 0);
    };
    Step step{view, seqs, out, order_of(seqs, [&](const mekik_seq_view& a, const mekik_seq_view& b) {
                const auto x = rank(a), y = rank(b);
                return x != y ? x > y : goes_before(a, b);
              })};
    for (const auto i : step.waiting()) {
      if (!make_room(view, seqs, step, seqs[i])) break;
    }
    return step.fill(max_prefill_ == 0 ? UINT32_MAX : max_prefill_);
  }

 private:
  // Whether s can begin, after running sequences of a lower priority gave up their places if that is enough. One that ran for a higher
  // priority gets its place back when that has ended, so that nobody changes places to and fro.
  bool make_room(const mekik_step_view& view, Seqs seqs, Step& step, const mekik_seq_view& s) {
    const std::uint64_t needs = step.room().blocks_for(s, s.prompt_left + 1);
    std::vector<std::uint32_t> victims;
    std::uint64_t blocks = step.room().blocks, places = view.max_seqs - std::min<std::size_t>(view.max_seqs, step.running().size());
    auto at = step.running().rbegin();
    while (blocks < needs || places == 0) {
      while (at != step.running().rend() && seqs[*at].priority >= s.priority) ++at;
      if (at == step.running().rend()) return false;
      victims.push_back(*at);
      blocks += seqs[*at].blocks_held;
      ++places;
      ++at;
    }
    for (const auto victim : victims) step.drop(victim);
    return victims.empty();  // one at a time: what it needs is not yet taken
  }

  std::uint32_t max_prefill_;
  std::uint64_t aging_;
};

}  // namespace

MEKIK_PLUGIN("mekik.scheduler.priority", "1.0", mekik::scheduler<Priority>());
