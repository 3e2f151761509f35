// The random stream of an answer: a function of (seed, index of the answer, position), so that nothing else can change it.
#pragma once
#include <array>
#include <cstdint>

namespace mekik::sample {

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// A double in [0, 1) with 53 random bits: key = seed, counter = (position, answer). `position` is the place of the token to be drawn
// in its sequence, the prompt included. [any thread]
double uniform(std::uint64_t seed, std::uint32_t answer, std::uint64_t position);

}  // namespace mekik::sample
