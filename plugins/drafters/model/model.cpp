// Draws the next tokens from a smaller model, which the engine runs.
#include <mekik/plugin.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace {

constexpr mekik_option model_option() {
  mekik_option o =
      mekik::opt::with(mekik::opt::option(MEKIK_OPT_COMPONENT, "model", nullptr,
                                          "The draft model, a file or a folder, with the vocabulary of the model that answers."),
                       MEKIK_OPT_REQUIRED);
  o.choices = "model";
  return o;
}

class Model {
 public:
  static constexpr const char* name = "model";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Proposes what a smaller model with the same vocabulary says.";
  static constexpr std::uint32_t wants = MEKIK_WANT_MODEL;
  static constexpr std::array options{
      model_option(),
      mekik::opt::choice("draw", "same", "same|likeliest",
                         "same: each token is drawn by the random number that the answer's is, so that models that agree draw alike."),
      mekik::opt::real("least", "0.05", 0, 1, "Ends a proposal at a token that the draft model holds less likely."),
  };
  Model(mekik::Config config, const mekik_vocab&) : likeliest_{config.i64("draw") == 1}, least_{config.f64("least")} {}

  void propose(mekik::Strided<const mekik_draft_ask> asks, mekik::Strided<mekik_draft_out> outs) {
    for (std::size_t i = 0; i < asks.size(); ++i) {
      const mekik_draft_ask& ask = asks[i];
      if (ask.logits == nullptr || ask.room == 0) continue;
      const auto [token, probability] = draw({ask.logits, ask.vocab}, ask.uniform);
      if (probability < least_) continue;
      outs[i].tokens[0] = token;
      outs[i].probs[0] = static_cast<float>(probability);
      outs[i].n = 1;
    }
  }

 private:
  std::pair<std::int32_t, double> draw(std::span<const float> logits, double uniform) const {
    const auto top = std::max_element(logits.begin(), logits.end());
    double total = 0;
    for (const float l : logits)
      if (l > *top - 40) total += std::exp(static_cast<double>(l) - static_cast<double>(*top));
    auto chosen = top;
    if (!likeliest_) {
      double sum = 0;
      for (auto at = logits.begin(); at != logits.end() && sum <= uniform * total; ++at)
        if (*at > *top - 40) sum += std::exp(static_cast<double>(*at) - static_cast<double>(*top)), chosen = at;
    }
    return {static_cast<std::int32_t>(chosen - logits.begin()), std::exp(static_cast<double>(*chosen) - static_cast<double>(*top)) / total};
  }
  bool likeliest_;
  double least_;
};

}  // namespace

MEKIK_PLUGIN("mekik.drafter.model", "1.0", mekik::drafter<Model>());
