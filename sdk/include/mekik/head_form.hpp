// mekik/head_form.hpp - keys and values of one token and head as integers: the KV forms q8_head and q4_head, in plain loops. What backends
// store is their own; which integers and scales it is follows from here (docs/forms.md). Thread: any.
#pragma once
#include <mekik/numbers.hpp>

#include <algorithm>
#include <string_view>

namespace mekik {

struct HeadForm {
  std::uint32_t bits;  // of a code
};
inline constexpr HeadForm kQ8Head{8}, kQ4Head{4};
inline constexpr const char* kKvFormNames = "f16, bf16, f32, q8_head and q4_head";  // with those of floats
// nullptr: no form of this kind.
inline const HeadForm* head_form(std::string_view name) { return name == "q8_head" ? &kQ8Head : name == "q4_head" ? &kQ4Head : nullptr; }

// What a key or a value is multiplied by before it is stored: the Hadamard matrix of the largest power of two that divides n, once for each
// such part. It is its own inverse but for that power, which it returns. Outliers of single columns spread over all of a part.
inline std::size_t hadamard(float* x, std::size_t n) {
  const std::size_t part = n & (~n + 1);
  for (std::size_t half = 1; half < part; half *= 2)
    for (std::size_t i = 0; i < n; ++i) {
      if ((i & half) != 0) continue;
      const float a = x[i], b = x[i + half];
      x[i] = a + b;
      x[i + half] = a - b;
    }
  return part;
}

// As BF16, upwards: no number is over the range of its codes.
inline std::uint16_t up_to_bf16(float scale) {
  const auto bits = std::bit_cast<std::uint32_t>(scale);
  return std::isfinite(scale) ? static_cast<std::uint16_t>((bits + 0xFFFFu) >> 16) : to_bf16(scale);
}

// x, a key or a value of n numbers after hadamard(), as codes: a number is code * scale. Codes are -127 to 127 in q8_head, where scale is
// the largest magnitude / 127, and -8 to 7 in q4_head, where the number of the largest magnitude is -8 times the scale. The scale is BF16.
// One number that is infinite or NaN makes all of them NaN.
inline std::uint16_t encode_head(const HeadForm& form, const float* x, std::size_t n, std::int8_t* codes) {
  float least = x[0], most = x[0], poison = 0;
  for (std::size_t i = 0; i < n; ++i) {
    least = std::min(least, x[i]);
    most = std::max(most, x[i]);
    poison += x[i] * 0;
  }
  const bool fine = form.bits == 8, upper = most >= -least;
  const float range = upper ? most : -least, top = fine ? 127.0F : 7.0F, bottom = fine ? -127.0F : -8.0F;
  std::uint16_t scale = range > 0 ? up_to_bf16(range / -bottom) : std::uint16_t{0};
  if (!std::isfinite(from_bf16(scale)) || poison != 0) {
    std::fill(codes, codes + n, std::int8_t{0});
    return to_bf16(numbers::kNaN);
  }
  if (!fine && upper && scale != 0) scale |= 0x8000u;
  const float by = scale != 0 ? from_bf16(scale) : 1;
  for (std::size_t i = 0; i < n; ++i) codes[i] = static_cast<std::int8_t>(std::nearbyint(std::min(std::max(x[i] / by, bottom), top)));
  return scale;
}

// The numbers again, turned back.
inline void decode_head(std::uint16_t scale, const std::int8_t* codes, std::size_t n, float* x) {
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(codes[i]) * from_bf16(scale);
  const auto part = static_cast<float>(hadamard(x, n));
  for (std::size_t i = 0; i < n; ++i) x[i] /= part;
}

}  // namespace mekik
