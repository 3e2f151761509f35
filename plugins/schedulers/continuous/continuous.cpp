// Continuous batching: every step takes all sequences that are decoding, then fills the rest of its tokens with pieces of prompts.
// First come, first served within a priority. The plan is a function of the view alone.
#include <array>

#include <mekik/scheduling.hpp>

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
    mekik::scheduling::Step step{view, seqs, out, mekik::scheduling::order_of(seqs, mekik::scheduling::goes_before)};
    return step.fill(max_prefill_ == 0 ? UINT32_MAX : max_prefill_);
  }

 private:
  std::uint32_t max_prefill_;
};

}  // namespace

MEKIK_PLUGIN("mekik.scheduler.continuous", "1.0", mekik::scheduler<Continuous>());
