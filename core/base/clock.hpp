// One monotonic clock, replaceable in tests.
#pragma once
#include <cstdint>

namespace mekik {

// Nanoseconds since an arbitrary point. [any thread]
std::uint64_t now_ns();

// An interface because tests of the engine run on a clock of their own.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::uint64_t now_ns() const = 0;
};

const Clock& steady_clock();

}  // namespace mekik
