// Proposes what followed the last two tokens where they last occurred: for answers that quote their prompt.
#include <mekik/plugin.hpp>

struct Again {
  static constexpr const char *name = "again", *version = "1.0", *summary = "Proposes what followed the last two tokens before.";
  Again(mekik::Config, const mekik_vocab&) {}

  void propose(mekik::Strided<const mekik_draft_ask> asks, mekik::Strided<mekik_draft_out> outs) {
    for (std::size_t i = 0; i < asks.size(); ++i) {
      const std::span<const std::int32_t> tokens{asks[i].tokens, asks[i].n_tokens};
      for (std::size_t end = tokens.size(); end-- > 2;) {  // a run that ends before `end`
        if (tokens[end - 1] != tokens.back() || tokens[end - 2] != tokens[tokens.size() - 2]) continue;
        mekik_draft_out& out = outs[i];
        for (; out.n < asks[i].room && end + out.n < tokens.size(); ++out.n) {
          out.tokens[out.n] = tokens[end + out.n];
          out.probs[out.n] = 0.6f;  // the host learns how often these come true
        }
        break;
      }
    }
  }
};

MEKIK_PLUGIN("org.example.again", "1.0", mekik::drafter<Again>());
