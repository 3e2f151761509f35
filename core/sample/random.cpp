#include "sample/random.hpp"

namespace mekik::sample {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

double uniform(std::uint64_t seed, std::uint32_t answer, std::uint64_t position) {
  const auto out = philox({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32), answer, 0},
                          {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const std::uint64_t bits = (std::uint64_t{out[1]} << 32 | out[0]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace mekik::sample
