// How often proposed tokens come true.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

namespace mekik::engine {

// Counts by the confidence that the drafter gave, so that only the order of its numbers matters. Old counts fade. A sequence's own counts
// begin as the drafter's over all sequences, and those as the confidences themselves.
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
    return (static_cast<double>(c.came) + kPrior * expected) / (static_cast<double>(c.all) + kPrior);
  }

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
  Acceptance acceptance{0.95F};  // about the last twenty of each confidence
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
