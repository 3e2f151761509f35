// Of the prompts that wait, the one with the fewest tokens to compute goes first: the mean time to the first token is the least possible.
// One that has waited longer than `patience` goes before all that are shorter, so that none starves.
#include <mekik/scheduling.hpp>

namespace {

class Shortest {
 public:
  static constexpr const char *name = "shortest", *version = "1.0", *summary = "Fewest prompt tokens left to compute go first.";
  static constexpr std::array options{
      mekik::opt::duration("patience", "\"10s\"", 0, 86400e9, "Who has waited so long goes before shorter prompts."),
  };
  explicit Shortest(mekik::Config config) : patience_{static_cast<std::uint64_t>(config.i64("patience"))} {}

  std::uint32_t plan(const mekik_step_view& view, mekik::scheduling::Seqs seqs, mekik::Strided<mekik_choice> out) {
    const auto late = [&](const mekik_seq_view& s) { return view.now_ns > s.arrival_ns + patience_; };
    const auto before = [&](const mekik_seq_view& a, const mekik_seq_view& b) {
      if (a.priority != b.priority) return a.priority > b.priority;
      if (late(a) != late(b)) return late(a);
      const std::uint32_t x = mekik::scheduling::work(a), y = mekik::scheduling::work(b);
      return x != y && !late(a) ? x < y : mekik::scheduling::goes_before(a, b);
    };
    return mekik::scheduling::Step{view, seqs, out, mekik::scheduling::order_of(seqs, before)}.fill();
  }

 private:
  std::uint64_t patience_;
};

}  // namespace

MEKIK_PLUGIN("org.example.shortest", "1.0", mekik::scheduler<Shortest>());
