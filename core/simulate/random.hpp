// Numbers that depend on what they are for and on nothing else, so that no order of events changes them.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace mekik::simulate {

inline std::uint64_t mix(std::uint64_t x) {  // SplitMix64's finaliser
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

template <class... More>
std::uint64_t mix(std::uint64_t first, More... more) {
  return mix(mix(first) ^ mix(static_cast<std::uint64_t>(more)...));
}

inline double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }  // in [0, 1)
inline double exponential(std::uint64_t bits) { return -std::log1p(-unit(bits)); }            // of mean 1
inline double normal(std::uint64_t bits) {                                                    // Box and Muller
  return std::sqrt(2 * exponential(bits)) * std::cos(2 * std::numbers::pi * unit(mix(bits, 1)));
}

}  // namespace mekik::simulate
