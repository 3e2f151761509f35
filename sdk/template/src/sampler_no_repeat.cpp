// No run of `no_repeat_ngram_size` tokens comes twice, in the prompt and the answer together: as transformers' option of that name.
#include <mekik/plugin.hpp>
#include <mekik/request.hpp>

#include <algorithm>
#include <limits>
#include <vector>

class NoRepeat {
 public:
  static constexpr const char *name = "no_repeat", *version = "1.0", *summary = "Bans tokens that would repeat a run of tokens.";
  static constexpr std::array options{
      mekik::opt::integer("no_repeat_ngram_size", "0", 0, 64, "Runs of so many tokens come once; 0: any may be repeated."),
  };
  NoRepeat(mekik::Config config, const mekik_vocab&, std::string_view request)
      : size_{static_cast<std::size_t>(mekik::Request{config, request}.i64("no_repeat_ngram_size"))} {}

  void accept(std::span<const std::int32_t> tokens, bool) { tokens_.insert(tokens_.end(), tokens.begin(), tokens.end()); }
  void apply(std::span<float> logits, double) {
    if (size_ == 0 || tokens_.size() < size_) return;
    const auto last = tokens_.end() - static_cast<std::ptrdiff_t>(size_ - 1);  // the beginning of the run that the next token ends
    for (auto at = tokens_.begin(); at + static_cast<std::ptrdiff_t>(size_) <= tokens_.end(); ++at) {
      const auto next = static_cast<std::size_t>(at[static_cast<std::ptrdiff_t>(size_ - 1)]);
      if (next < logits.size() && std::equal(last, tokens_.end(), at)) logits[next] = -std::numeric_limits<float>::infinity();
    }
  }

 private:
  std::size_t size_;
  std::vector<std::int32_t> tokens_;
};

MEKIK_PLUGIN("org.example.no_repeat", "1.0", mekik::sampler<NoRepeat>());
