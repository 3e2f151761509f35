// The kernels of every level that this machine runs, portable first.
#pragma once
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "isa/kernels.hpp"

namespace mekik::test {

inline std::vector<const cpu::Kernels*> levels() {
  std::vector<const cpu::Kernels*> all{&cpu::portable_kernels()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
    all.push_back(&cpu::avx2_kernels());
  if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    all.push_back(&cpu::avx512_kernels());
#endif
  return all;
}

inline std::vector<float> random_floats(std::size_t n, std::uint32_t seed, float spread = 1) {
  std::mt19937 random{seed};
  std::normal_distribution<float> normal{0, spread};
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

// Equal to the bit, any NaN equal to any other.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], 4) != 0 && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  return true;
}

}  // namespace mekik::test
