// Serves by targets: the prompt that must be answered first goes first, steps are short enough for those that decode, and a request that
// the queue makes late is refused at once rather than answered too late.
#include <algorithm>
#include <array>

#include "../common/costs.hpp"

namespace {

using namespace mekik::scheduling;

class Deadline {
 public:
  static constexpr const char* name = "deadline";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Earliest deadline first, by targets for the first token and for each further one.";
  static constexpr std::array options{
      mekik::opt::duration("ttft", "\"500ms\"", 1e6, 86400e9, "From a request's arrival to its first token."),
      mekik::opt::duration("tpot", "\"50ms\"", 1e5, 86400e9, "From a token to the next; steps are planned to take no longer."),
      mekik::opt::boolean(
          "refuse", "true",
          "Whether a request that would be in time alone, and is not for those before it, is refused (429, Retry-After). One "
          "that would be late even alone is served last."),
  };
  explicit Deadline(mekik::Config config)
      : ttft_{static_cast<std::uint64_t>(config.i64("ttft"))},
        tpot_{static_cast<double>(config.i64("tpot"))},
        refuse_{config.boolean("refuse")} {}

  std::uint32_t plan(const mekik_step_view& view, Seqs seqs, mekik::Strided<mekik_choice> out) {
    Step step{view, seqs, out, order_of(seqs, [&](const mekik_seq_view& a, const mekik_seq_view& b) {
                if (a.priority != b.priority) return a.priority > b.priority;
                const bool x = hopeless(a), y = hopeless(b);
                if (x != y) return y;
                const auto m = due(a), n = due(b);
                return m != n ? m < n : goes_before(a, b);
              })};
    if (refuse_) refuse_late(view, seqs, step);
    const std::uint32_t n = step.fill(UINT32_MAX, step.decoding() > 0 ? costs_.prompt_tokens(tpot_) : UINT32_MAX);
    costs_.planned(seqs, out, n);
    return n;
  }
  void observe(const mekik_step_view&, std::uint64_t step_ns) { costs_.observed(step_ns); }

 private:
  std::uint64_t target(const mekik_seq_view& s) const { return s.ttft_ns > 0 ? s.ttft_ns : ttft_; }
  std::uint64_t due(const mekik_seq_view& s) const {
    const std::uint64_t at = s.arrival_ns + target(s);
    return s.deadline_ns > 0 ? std::min(at, s.deadline_ns) : at;
  }
  bool hopeless(const mekik_seq_view& s) const { return s.generated == 0 && costs_.token_ns() * work(s) > static_cast<double>(target(s)); }
  // Prompts are computed one after another in the time that decoding leaves of each step. What is near its target counts as late, since
  // more may decode by then; and while all places are taken nobody knows when the first of those that wait begins.
  void refuse_late(const mekik_step_view& view, Seqs seqs, Step& step) const {
    if (costs_.token_ns() == 0) return;
    double speed = 1;  // the part of the time that prompts get
    if (step.decoding() > 0) {
      const double tokens = std::min<double>(costs_.prompt_tokens(tpot_), view.max_tokens) * costs_.token_ns();
      speed = tokens / (tokens + costs_.decode_ns());
    }
    const bool full = step.running().size() >= view.max_seqs;
    double ahead = 0;
    for (const auto i : step.running()) ahead += costs_.token_ns() * work(seqs[i]);
    const std::vector<std::uint32_t> waiting = step.waiting();
    for (const auto i : waiting) {
      const mekik_seq_view& s = seqs[i];
      const double own = costs_.token_ns() * work(s);
      const double ready = static_cast<double>(view.now_ns) + (ahead + own) / speed;
      const double late = ready - static_cast<double>(due(s));
      const bool refused = late > -kMargin * static_cast<double>(target(s)) && (ahead > 0 || full) && s.generated == 0 && !hopeless(s);
      if (refused) step.refuse(i, static_cast<std::uint64_t>(std::max(late, 0.0)) + kLeastRetryNs);
      else ahead += own;
    }
  }

  static constexpr double kMargin = 0.1;  // of a target
  static constexpr std::uint64_t kLeastRetryNs = 100'000'000;
  std::uint64_t ttft_;
  double tpot_;
  bool refuse_;
  Costs costs_;
};

}  // namespace

MEKIK_PLUGIN("mekik.scheduler.deadline", "1.0", mekik::scheduler<Deadline>());
