// How often proposed tokens come true.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

namespace mekik::engine {

// Counts by the confidence that the drafter gave, so that only the order of its numbers matters. Old counts fade.
class Acceptance {
 public:
  explicit Acceptance(float keep) : keep_{keep} {}
  void seen(float confidence, bool came) {
    Count& c = counts_[bucket(confidence)];
    c.came = c.came * keep_ + (came ? 1 : 0);
    c.all = c.all * keep_ + 1;
  }
  // The probability that a token of this confidence comes true. `expected`: where nothing has been seen.
  double of(float confidence, double expected) const {
    const Count& c = counts_[bucket(confidence)];
    return std::clamp((static_cast<double>(c.came) + kPrior * expected) / (static_cast<double>(c.all) + kPrior), 0.001, 0.999);
  }
  double of(float confidence) const { return of(confidence, static_cast<double>(confidence)); }

 private:
  static constexpr double kPrior = 4;
  static constexpr std::size_t kBuckets = 16;
  // Finer where it matters: by how little is missing to certainty.
  static std::size_t bucket(float confidence) {
    const float missing = std::clamp(1 - confidence, 1e-6F, 1.0F);
    return std::min(kBuckets - 1, static_cast<std::size_t>(-2 * std::log2(missing)));
  }
  struct Count {
    float came = 0, all = 0;
  };
  std::array<Count, kBuckets> counts_{};
  float keep_;
};

// How much more or less a sequence comes true than all do: one number beside their counts, so that a few tokens tell a copy from prose.
class Leaning {
 public:
  // Nothing is said of a sequence before so many tokens; they are looked at without being run.
  bool known() const { return seen_ >= 3; }
  double of(double all) const { return 1 / (1 + std::exp(-(std::log(all / (1 - all)) + bias_))); }
  void seen(double all, bool came) {
    const double step = std::max(kLastStep, kFirstStep / (1 + seen_ / 3.0));
    bias_ = std::clamp(bias_ + step * ((came ? 1 : 0) - of(all)), -5.0, 3.0);
    seen_ = std::min(seen_ + 1, 1000u);
  }

 private:
  static constexpr double kFirstStep = 1.5, kLastStep = 0.4;
  double bias_ = -1;  // doubted at first
  std::uint32_t seen_ = 0;
};

// The same for all tokens alike.
class Share {
 public:
  explicit Share(float keep) : keep_{keep} {}
  void seen(bool came) {
    came_ = came_ * keep_ + (came ? 1 : 0);
    all_ = all_ * keep_ + 1;
  }
  double of(double expected) const { return (static_cast<double>(came_) + 4 * expected) / (static_cast<double>(all_) + 4); }

 private:
  float keep_, came_ = 0, all_ = 0;
};

// What speculation keeps of a sequence.
struct DraftState {
  Leaning leaning;
  Share share{0.95F};
  bool asked = false;  // the drafter knows the sequence
  std::uint32_t accepted = 0, rejected = 0;
  std::span<const std::int32_t> running;  // of the present step: those that are still to be met
  // A proposal that was not run is looked at all the same, which costs nothing: its first token, and where it would be.
  std::int32_t guess = -1;
  float guess_confidence = 0;
  std::size_t guess_at = 0;
  std::uint64_t last_step = 0;  // that gave the sequence a token

  void run(std::span<const std::int32_t> drafts) {
    running = drafts;
    rejected += static_cast<std::uint32_t>(drafts.size());
  }
  // The sequence's next token. False: no later row of the step holds.
  bool met(std::int32_t token) {
    const bool same = !running.empty() && running.front() == token;
    running = same ? running.subspan(1) : std::span<const std::int32_t>{};
    accepted += same ? 1 : 0;
    rejected -= same ? 1 : 0;
    return same;
  }
};

}  // namespace mekik::engine
