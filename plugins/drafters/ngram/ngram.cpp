// Proposes what followed the last tokens where they occurred before, in the prompt and the answer so far.
#include <mekik/plugin.hpp>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

namespace {

using Tokens = std::span<const std::int32_t>;

// Where each run of `length` tokens last ended, of those that something follows.
class Ends {
 public:
  explicit Ends(std::uint32_t length) : length_{length} {}
  // Takes in what has come since the last call, but for the very end, which nothing follows yet.
  void grow(Tokens tokens) {
    if (2 * tokens.size() > places_.size()) {
      std::size_t n = 64;
      while (n < 4 * tokens.size()) n *= 2;
      places_.assign(n, 0);
      next_ = length_;
    }
    for (; next_ < tokens.size(); ++next_) places_[place(tokens, tokens.first(next_))] = static_cast<std::uint32_t>(next_);
  }
  // The end of an earlier run that equals the last tokens; 0: there is none.
  std::uint32_t find(Tokens tokens) const {
    if (tokens.size() <= length_) return 0;
    const std::uint32_t end = places_[place(tokens, tokens)];
    return end != 0 && same(tokens.last(length_), tokens, end) ? end : 0;
  }

 private:
  // Of the run at the end of `part`, which is a beginning of all tokens: its place, or the free one that it would get.
  std::size_t place(Tokens all, Tokens part) const {
    const Tokens run = part.last(length_);
    std::uint64_t h = 0;
    for (const std::int32_t t : run) h = (h ^ static_cast<std::uint32_t>(t)) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    for (std::size_t at = h, tries = 0;; ++at, ++tries) {
      at &= places_.size() - 1;
      const std::uint32_t end = places_[at];
      if (end == 0 || tries == kTries || same(run, all, end)) return at;
    }
  }
  bool same(Tokens run, Tokens all, std::uint32_t end) const { return std::equal(run.begin(), run.end(), all.begin() + end - length_); }

  static constexpr std::size_t kTries = 32;  // a text that was made for collisions must not take time: it loses places
  std::uint32_t length_;
  std::size_t next_ = 0;               // the end of the next run to take in
  std::vector<std::uint32_t> places_;  // open addressing; at most half of them are taken
};

class Ngram {
 public:
  static constexpr const char* name = "ngram";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Proposes what followed the last tokens where they occurred before, in the prompt and the answer.";
  static constexpr std::array options{
      mekik::opt::integer("min", "2", 1, 16, "Least tokens that must have occurred before."),
      mekik::opt::integer("max", "6", 1, 16,
                          "Most tokens that are looked up; the longest that occurred before decide, and their last place."),
  };
  Ngram(mekik::Config config, const mekik_vocab&)
      : min_{static_cast<std::uint32_t>(config.i64("min"))}, max_{static_cast<std::uint32_t>(config.i64("max"))} {
    if (max_ < min_) config.reject("max", "is less than min");
  }

  void propose(mekik::Strided<const mekik_draft_ask> asks, mekik::Strided<mekik_draft_out> outs) {
    for (std::size_t i = 0; i < asks.size(); ++i) {
      const mekik_draft_ask& ask = asks[i];
      const Tokens tokens{ask.tokens, ask.n_tokens};
      auto& ends = sequences_[ask.seq];
      if (ends.empty())
        for (std::uint32_t length = max_; length >= min_; --length) ends.emplace_back(length);
      std::uint32_t end = 0;
      for (Ends& of : ends) {
        of.grow(tokens);
        if (end == 0) end = of.find(tokens);
      }
      if (end != 0) copy(tokens, end, ask.room, outs[i]);
    }
  }
  void forget(std::uint64_t seq, std::uint64_t, Tokens, std::uint32_t) { sequences_.erase(seq); }

 private:
  static constexpr std::uint32_t kLongest = 64;  // tokens of agreement that are counted

  // What follows `end`; at the end of the text, what follows it there in turn. The longer the agreement, the likelier.
  static void copy(Tokens tokens, std::uint32_t end, std::uint32_t room, mekik_draft_out& out) {
    std::uint32_t same = 0;
    while (same < kLongest && same < end && tokens[end - 1 - same] == tokens[tokens.size() - 1 - same]) ++same;
    for (; out.n < room; ++out.n) {
      const std::size_t from = end + out.n;
      out.tokens[out.n] = from < tokens.size() ? tokens[from] : out.tokens[from - tokens.size()];
      const auto agreed = static_cast<float>(same + out.n);
      out.probs[out.n] = agreed / (agreed + 3);
    }
  }

  std::uint32_t min_, max_;
  std::unordered_map<std::uint64_t, std::vector<Ends>> sequences_;  // each with the longest runs first
};

}  // namespace

MEKIK_PLUGIN("mekik.drafter.ngram", "1.0", mekik::drafter<Ngram>());
