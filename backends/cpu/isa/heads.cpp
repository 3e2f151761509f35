// Keys and values as integers: mekik/head_form.hpp in vectors, to the bit. Data: rows of floats. Bound: a few operations a number, beside
// the matrix products that made it.
#include "isa/head_rows.hpp"
#include "isa/rows.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

namespace {

MK_INLINE bool is_finite(float x) { return __builtin_fabsf(x) <= __FLT_MAX__; }
// A positive number as BF16, upwards.
MK_INLINE std::uint16_t upwards(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return static_cast<std::uint16_t>((bits + 0xFFFFu) >> 16);
}

MK_INLINE float number(std::uint16_t half) { return from_bf16(reinterpret_cast<const std::uint8_t*>(&half)); }

}  // namespace

void turn(float* x, std::uint32_t n) { turn_row(x, n); }

std::uint16_t encode_head(std::uint32_t bits, const float* x, std::uint32_t n, std::int8_t* codes) {
  V::F most = V::set1(x[0]), least = most, poison = V::zero();
  for (std::uint32_t i = 0; i < n; i += 16) {
    const V::F v = i + 16 <= n ? V::load(x + i) : load_tail(x + i, n - i, x[0]);
    most = V::max(most, v);
    least = V::min(least, v);
    poison = V::fma(v, V::zero(), poison);
  }
  const float highest = V::reduce_max(most), lowest = V::reduce_max(negate(least));
  const bool fine = bits == 8, upper = highest >= lowest;
  const float range = upper ? highest : lowest, steps = fine ? 127.0F : 8.0F, wanted = range > 0.0F ? range / steps : 0.0F;
  std::uint16_t scale = upwards(wanted);
  if (!(V::reduce_add(poison) == 0.0F && is_finite(wanted) && is_finite(number(scale)))) {
    std::memset(codes, 0, (n + 15) / 16 * 16);
    return 0x7FC0;
  }
  if (!fine && upper && scale != 0) scale |= 0x8000u;
  const V::F by = V::set1(scale != 0 ? number(scale) : 1.0F), low = V::set1(-steps), high = V::set1(fine ? 127.0F : 7.0F);
  for (std::uint32_t i = 0; i < n; i += 16) {
    const V::F v = i + 16 <= n ? V::load(x + i) : load_tail(x + i, n - i, 0.0F);
    V::store_i8(codes + i, V::round(V::min(V::max(V::div(v, by), low), high)));
  }
  return scale;
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
