// How long a step of so many tokens takes, by what steps have taken.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace mekik::engine {

// Of steps in which every sequence only decodes, so that their tokens say most of what they cost. A time counts as known after three
// steps; what is old is forgotten, since contexts grow and machines get busy. [engine thread]
class StepCosts {
 public:
  static constexpr std::uint32_t kMost = 1024;  // tokens; longer steps are not kept apart
  void measured(std::uint32_t tokens, std::uint64_t ns);
  // Nanoseconds, at least 1: the median of the last times where it is known, else between its neighbours, or behind the last known one by
  // a slope that is assumed. Nothing: no step of so few tokens is known.
  std::optional<double> of(std::uint32_t tokens) const;
  std::uint64_t age(std::uint32_t tokens) const;  // steps measured since the last one of so many tokens

 private:
  static constexpr std::uint64_t kOld = 4096;
  static constexpr std::uint32_t kKnown = 3;
  struct Point {
    std::array<std::uint64_t, 5> last{};
    std::uint32_t n = 0;  // of `last`
    std::uint32_t next = 0;
    std::uint64_t at = 0;
    double median = 0;
  };
  bool fresh(std::uint32_t tokens, std::uint32_t times) const;
  std::vector<Point> points_;
  std::uint64_t steps_ = 0;
};

}  // namespace mekik::engine
