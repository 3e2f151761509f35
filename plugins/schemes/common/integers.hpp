// Zero points and orders of packed integers that GPTQ and its kin share.
#pragma once
#include "factored.hpp"

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {
#endif
namespace checkpoint {

// What a weight is rounded to when its scale is of `part`; fails for scales that are no floats.
inline std::uint32_t scale_num_of(const Part& part) {
  part.need_num({MEKIK_F16, MEKIK_BF16, MEKIK_F32}, "F16, BF16 or F32");
  return part.num();
}

// Columns under one scale: the configured size, or all.
inline std::uint64_t group_size(std::int64_t configured, std::uint64_t k) {
  if (configured < -1 || configured > 65536) wrong("quantization_config: group_size " + std::to_string(configured) + " cannot be");
  return configured <= 0 || static_cast<std::uint64_t>(configured) > k ? k : static_cast<std::uint64_t>(configured);
}

// One zero point for all rows and groups is a constant of the form.
inline void settle_zeros(Weight& w, const std::vector<std::int32_t>& zeros, bool may_be_constant) {
  w.zeros = true;
  const auto [low, high] = std::minmax_element(zeros.begin(), zeros.end());
  if (zeros.empty()) return;
  if (*low < 0 || *high > 255) w.no_form = "it has a zero point of " + std::to_string(*low < 0 ? *low : *high);
  if (!may_be_constant || *low != *high) return;
  w.zeros = false;
  w.zero = *low;
  w.no_form.clear();
}

// Numbers stored [groups][n], to [n1 - n0][groups].
inline void turn_scales(const Part& part, std::uint64_t groups, std::uint64_t n, std::uint64_t n0, std::uint64_t n1,
                        std::vector<std::uint8_t>& out) {
  const std::vector<std::uint8_t> box = part.box(n, 0, groups, n0, n1);
  const std::size_t each = part.number_bytes();
  for (std::uint64_t g = 0; g < groups; ++g)
    for (std::uint64_t row = 0; row < n1 - n0; ++row)
      std::memcpy(out.data() + (row * groups + g) * each, box.data() + (g * (n1 - n0) + row) * each, each);
}

}  // namespace checkpoint
#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
