#include "base/clock.hpp"

#include <chrono>

namespace mekik {

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

const Clock& steady_clock() {
  static const struct Steady final : Clock {
    std::uint64_t now_ns() const override { return mekik::now_ns(); }
  } clock;
  return clock;
}

}  // namespace mekik
