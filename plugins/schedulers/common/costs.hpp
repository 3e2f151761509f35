// What steps cost, learned from those that were run.
#pragma once
#include <algorithm>
#include <cstdint>

#include <mekik/scheduling.hpp>

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {
#endif
namespace scheduling {

// A step takes the time of its decoding sequences and that of its prompt tokens. Both are followed as they change: with contexts that grow,
// and with what else the machine does.
class Costs {
 public:
  // After fill(): what of the plan will run.
  void planned(Seqs seqs, Strided<mekik_choice> plan, std::uint32_t n) {
    decoding_ = prompts_ = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (plan[i].action != MEKIK_RUN) continue;
      if (seqs[plan[i].seq].prompt_left == 0) ++decoding_;
      else prompts_ += plan[i].tokens;
    }
  }
  void observed(std::uint64_t step_ns) {
    const auto ns = static_cast<double>(step_ns);
    if (prompts_ == 0 && decoding_ > 0) follow(decode_ns_, ns);
    if (prompts_ == 0) return;
    // A part of the step that is too small to be told from noise says nothing of a token.
    const double rest = decoding_ > 0 ? ns - decode_ns_ : ns;
    if (rest > 0 && (decoding_ == 0 || rest > 0.1 * decode_ns_)) follow(token_ns_, rest / prompts_);
  }
  double decode_ns() const { return decode_ns_; }  // of a step that only decodes; 0: not known yet
  double token_ns() const { return token_ns_; }    // of a prompt's token; 0: not known yet
  // The part of a step's time that a sequence had, in nanoseconds.
  double share(const mekik_seq_view& s, std::uint32_t tokens, std::uint64_t step_ns) const {
    const double prompts = std::min(token_ns_ * prompts_, static_cast<double>(step_ns) * (decoding_ > 0 ? 0.9 : 1.0));
    if (s.prompt_left > 0) return prompts_ == 0 ? 0 : prompts * tokens / prompts_;
    return decoding_ == 0 ? 0 : (static_cast<double>(step_ns) - prompts) / decoding_;
  }
  // So many prompt tokens may be in a step beside sequences that decode, so that it takes no longer than `most_ns`, or, with 0, twice as
  // long as without. Some always may: prompts get on, whatever the bound.
  std::uint32_t prompt_tokens(double most_ns) const {
    if (decode_ns_ == 0 || token_ns_ == 0) return kFirst;
    const double most = kMargin * (most_ns > 0 ? most_ns : 2 * decode_ns_);
    return static_cast<std::uint32_t>(std::clamp((most - decode_ns_) / token_ns_, double{kLeast}, 1e6));
  }

 private:
  static constexpr double kMargin = 0.9, kNew = 0.2;
  static constexpr std::uint32_t kLeast = 8, kFirst = 64;
  static void follow(double& value, double seen) { value = value == 0 ? seen : value + kNew * (seen - value); }
  std::uint32_t decoding_ = 0, prompts_ = 0;
  double decode_ns_ = 0, token_ns_ = 0;
};

}  // namespace scheduling
#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
