// Elementary functions on 16 lanes: own polynomials with explicit fma, so that every level gives the same bits (libm's differ between
// versions). Polynomials: exp and tanh from Cephes (Moshier), erf by N. Juffa; errors below 2 units in the last place.
#pragma once
#include "isa/level.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

MK_INLINE V::F negate(V::F x) { return V::sub(V::zero(), x); }
MK_INLINE V::F bits(std::uint32_t b) { return V::as_float(V::set1i(static_cast<std::int32_t>(b))); }
MK_INLINE V::F absolute(V::F x) { return V::bit_and(x, bits(0x7FFFFFFFu)); }
MK_INLINE V::F with_sign_of(V::F magnitude, V::F sign) { return V::bit_or(absolute(magnitude), V::bit_and(sign, bits(0x80000000u))); }

// Below -87.3 the result is 0, above 88.7 infinity; NaN stays NaN.
MK_INLINE V::F exp(V::F x) {
  const V::F high = V::set1(88.72283F), low = V::set1(-87.33654F);
  const V::F y = V::max(low, V::min(high, x));
  const V::I n = V::round(V::mul(y, V::set1(1.44269504F)));
  const V::F f = V::to_float(n);
  V::F r = V::fnma(f, V::set1(0.693359375F), y);
  r = V::fnma(f, V::set1(-2.12194440e-4F), r);
  V::F p = V::set1(1.9875691500e-4F);
  p = V::fma(p, r, V::set1(1.3981999507e-3F));
  p = V::fma(p, r, V::set1(8.3334519073e-3F));
  p = V::fma(p, r, V::set1(4.1665795894e-2F));
  p = V::fma(p, r, V::set1(1.6666665459e-1F));
  p = V::fma(p, r, V::set1(5.0000001201e-1F));
  p = V::fma(V::mul(r, r), p, r);
  p = V::add(p, V::set1(1.0F));
  // 2^n in two steps: n reaches 128.
  const V::I n0 = V::sar<1>(n), n1 = V::subi(n, n0);
  p = V::mul(p, V::as_float(V::shl<23>(V::addi(n0, V::set1i(127)))));
  p = V::mul(p, V::as_float(V::shl<23>(V::addi(n1, V::set1i(127)))));
  p = V::select(V::less(x, low), V::zero(), p);
  return V::select(V::less(high, x), bits(0x7F800000u), p);
}

MK_INLINE V::F tanh(V::F x) {
  const V::F a = absolute(x);
  const V::F large = V::sub(V::set1(1.0F), V::div(V::set1(2.0F), V::add(exp(V::add(a, a)), V::set1(1.0F))));
  const V::F z = V::mul(x, x);
  V::F p = V::set1(-5.70498872745e-3F);
  p = V::fma(p, z, V::set1(2.06390887954e-2F));
  p = V::fma(p, z, V::set1(-5.37397155531e-2F));
  p = V::fma(p, z, V::set1(1.33314422036e-1F));
  p = V::fma(p, z, V::set1(-3.33332819422e-1F));
  const V::F small = V::fma(V::mul(p, z), x, x);
  return V::select(V::less(a, V::set1(0.625F)), small, with_sign_of(large, x));
}

MK_INLINE V::F sigmoid(V::F x) { return V::div(V::set1(1.0F), V::add(V::set1(1.0F), exp(negate(x)))); }
MK_INLINE V::F silu(V::F x) { return V::div(x, V::add(V::set1(1.0F), exp(negate(x)))); }

MK_INLINE V::F erf(V::F x) {
  const V::F t = absolute(x), s = V::mul(x, x);
  V::F r = V::fma(V::set1(-1.72853470e-5F), t, V::set1(3.83197126e-4F));
  const V::F u = V::fma(V::set1(-3.88396438e-3F), t, V::set1(2.42546219e-2F));
  r = V::fma(r, s, u);
  r = V::fma(r, t, V::set1(-1.06777877e-1F));
  r = V::fma(r, t, V::set1(-6.34846687e-1F));
  r = V::fma(r, t, V::set1(-1.28717512e-1F));
  r = V::fma(r, t, negate(t));
  const V::F large = with_sign_of(V::sub(V::set1(1.0F), exp(r)), x);
  V::F p = V::set1(-5.96761703e-4F);
  p = V::fma(p, s, V::set1(4.99119423e-3F));
  p = V::fma(p, s, V::set1(-2.67681349e-2F));
  p = V::fma(p, s, V::set1(1.12819925e-1F));
  p = V::fma(p, s, V::set1(-3.76125336e-1F));
  p = V::fma(p, s, V::set1(1.28379166e-1F));
  return V::select(V::less(V::set1(0.927734375F), t), large, V::fma(p, x, x));
}

// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)), the logarithm as 2 artanh(u / (2 + u)).
MK_INLINE V::F softplus(V::F x) {
  const V::F u = exp(negate(absolute(x)));
  const V::F z = V::div(u, V::add(V::set1(2.0F), u)), q = V::mul(z, z);
  V::F p = V::set1(1.0F / 15);
  p = V::fma(p, q, V::set1(1.0F / 13));
  p = V::fma(p, q, V::set1(1.0F / 11));
  p = V::fma(p, q, V::set1(1.0F / 9));
  p = V::fma(p, q, V::set1(1.0F / 7));
  p = V::fma(p, q, V::set1(1.0F / 5));
  p = V::fma(p, q, V::set1(1.0F / 3));
  p = V::fma(V::mul(p, q), z, z);
  return V::add(V::max(V::zero(), x), V::add(p, p));
}

MK_INLINE V::F activate(int kind, V::F x) {
  switch (kind) {
    case 1:
      return silu(x);
    case 2:
      return V::mul(V::mul(V::set1(0.5F), x), V::add(V::set1(1.0F), erf(V::mul(x, V::set1(0.70710678F)))));
    case 3: {
      const V::F cube = V::mul(V::mul(x, x), x);
      const V::F inner = V::mul(V::set1(0.79788456F), V::fma(V::set1(0.044715F), cube, x));
      return V::mul(V::mul(V::set1(0.5F), x), V::add(V::set1(1.0F), tanh(inner)));
    }
    case 4:
      return V::div(x, V::add(V::set1(1.0F), exp(V::mul(V::set1(-1.702F), x))));
    case 5:
      return V::max(V::zero(), x);
    case 6: {
      const V::F r = V::max(V::zero(), x);
      return V::mul(r, r);
    }
    case 7:
      return sigmoid(x);
    case 8:
      return tanh(x);
    case 9:
      return softplus(x);
    case 10:
      return V::sqrt(x);
    case 11:
      return exp(x);
    default:
      return x;
  }
}

// The last 1..15 values of a row, the rest `fill`.
MK_INLINE V::F load_tail(const float* p, std::uint32_t n, float fill) {
  alignas(64) float t[16];
  V::store(t, V::set1(fill));
  for (std::uint32_t i = 0; i < n; ++i) t[i] = p[i];
  return V::load(t);
}
MK_INLINE void store_tail(float* p, std::uint32_t n, V::F x) {
  alignas(64) float t[16];
  V::store(t, x);
  for (std::uint32_t i = 0; i < n; ++i) p[i] = t[i];
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
