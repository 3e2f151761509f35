// Row kernels: norms, activations and other elementwise work on rows of floats. Sums run over 16 virtual lanes and a fixed tree.
#include "isa/rows.hpp"

#include "isa/float_gemm.hpp"
#include "isa/math.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

namespace {

// A block whose largest value is over this many times the root mean square of its row takes two digits. Nearly all of the error of one
// digit comes from such blocks, where an outlier makes the step of its neighbours coarse: at 5 they are an eighth of a Llama's blocks, and
// the error of the logits falls to a quarter.
constexpr float kSmooth = 5.0F;

// y[i] = f(x[i]) for whole vectors and the tail.
template <class Op>
MK_INLINE void map(const float* x, std::uint32_t n, float* y, Op f) {
  std::uint32_t i = 0;
  for (; i + 16 <= n; i += 16) V::store(y + i, f(V::load(x + i)));
  if (i < n) store_tail(y + i, n - i, f(load_tail(x + i, n - i, 0.0F)));
}
template <class Op>
MK_INLINE void map2(const float* a, const float* b, std::uint32_t n, float* y, Op f) {
  std::uint32_t i = 0;
  for (; i + 16 <= n; i += 16) V::store(y + i, f(V::load(a + i), V::load(b + i)));
  if (i < n) store_tail(y + i, n - i, f(load_tail(a + i, n - i, 0.0F), load_tail(b + i, n - i, 0.0F)));
}
MK_INLINE float sum_of_squares(const float* x, std::uint32_t n) {
  V::F s = V::zero();
  std::uint32_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const V::F v = V::load(x + i);
    s = V::fma(v, v, s);
  }
  if (i < n) {
    const V::F v = load_tail(x + i, n - i, 0.0F);
    s = V::fma(v, v, s);
  }
  return V::reduce_add(s);
}
MK_INLINE void scaled(const float* x, const float* w, float by, std::uint32_t n, float* y) {
  const V::F s = V::set1(by);
  if (w != nullptr) map2(x, w, n, y, [&](V::F a, V::F b) { return V::mul(V::mul(a, s), b); });
  else map(x, n, y, [&](V::F a) { return V::mul(a, s); });
}
template <int Kind>
void act_of(const float* x, std::uint32_t n, float* y) {
  map(x, n, y, [](V::F v) { return activate(Kind, v); });
}
template <int Kind>
void glu_of(const float* g, const float* u, std::uint32_t n, float* y) {
  map2(g, u, n, y, [](V::F a, V::F b) { return V::mul(activate(Kind, a), b); });
}

}  // namespace

void rms_norm(const float* x, const float* w, std::uint32_t n, float eps, float* y) {
  scaled(x, w, 1.0F / __builtin_sqrtf(sum_of_squares(x, n) / static_cast<float>(n) + eps), n, y);
}

void l2_norm(const float* x, std::uint32_t n, float eps, float* y) {
  scaled(x, nullptr, 1.0F / __builtin_sqrtf(sum_of_squares(x, n) + eps), n, y);
}

float mean(const float* x, std::uint32_t n) {
  V::F s = V::zero();
  std::uint32_t i = 0;
  for (; i + 16 <= n; i += 16) s = V::add(s, V::load(x + i));
  if (i < n) s = V::add(s, load_tail(x + i, n - i, 0.0F));
  return V::reduce_add(s) / static_cast<float>(n);
}

void layer_norm(const float* x, const float* w, const float* b, std::uint32_t n, float eps, float* y) {
  const float middle = mean(x, n);
  const V::F m = V::set1(middle);
  V::F q = V::zero();
  std::uint32_t i;
  for (i = 0; i + 16 <= n; i += 16) {
    const V::F v = V::sub(V::load(x + i), m);
    q = V::fma(v, v, q);
  }
  if (i < n) {
    const V::F v = V::sub(load_tail(x + i, n - i, middle), m);
    q = V::fma(v, v, q);
  }
  const V::F by = V::set1(1.0F / __builtin_sqrtf(V::reduce_add(q) / static_cast<float>(n) + eps));
  map(x, n, y, [&](V::F v) { return V::mul(V::sub(v, m), by); });
  if (w != nullptr) map2(y, w, n, y, [](V::F v, V::F a) { return V::mul(v, a); });
  if (b != nullptr) map2(y, b, n, y, [](V::F v, V::F a) { return V::add(v, a); });
}

void softmax(const float* x, std::uint32_t n, float* y) {
  const float lowest = -__builtin_inff();
  V::F top = V::set1(lowest);
  std::uint32_t i = 0;
  for (; i + 16 <= n; i += 16) top = V::max(top, V::load(x + i));
  if (i < n) top = V::max(top, load_tail(x + i, n - i, lowest));
  const V::F m = V::set1(V::reduce_max(top));
  V::F sum = V::zero();
  for (i = 0; i + 16 <= n; i += 16) {
    const V::F e = exp(V::sub(V::load(x + i), m));
    V::store(y + i, e);
    sum = V::add(sum, e);
  }
  if (i < n) {
    const V::F e = exp(V::sub(load_tail(x + i, n - i, lowest), m));
    store_tail(y + i, n - i, e);
    sum = V::add(sum, e);
  }
  const V::F by = V::set1(1.0F / V::reduce_add(sum));
  map(y, n, y, [&](V::F v) { return V::mul(v, by); });
}

void act(int kind, const float* x, std::uint32_t n, float* y) {
  switch (kind) {
    case 1:
      return act_of<1>(x, n, y);
    case 2:
      return act_of<2>(x, n, y);
    case 3:
      return act_of<3>(x, n, y);
    case 4:
      return act_of<4>(x, n, y);
    case 5:
      return act_of<5>(x, n, y);
    case 6:
      return act_of<6>(x, n, y);
    case 7:
      return act_of<7>(x, n, y);
    case 8:
      return act_of<8>(x, n, y);
    case 9:
      return act_of<9>(x, n, y);
    case 10:
      return act_of<10>(x, n, y);
    case 11:
      return act_of<11>(x, n, y);
    default:
      return act_of<0>(x, n, y);
  }
}

void glu(int kind, const float* g, const float* u, std::uint32_t n, float limit, float alpha, float* y) {
  switch (kind) {
    case 1:
      return glu_of<1>(g, u, n, y);
    case 2:
      return glu_of<2>(g, u, n, y);
    case 3:
      return glu_of<3>(g, u, n, y);
    case 4:
      return glu_of<4>(g, u, n, y);
    case 5:
      return glu_of<5>(g, u, n, y);
    case 6:
      return glu_of<6>(g, u, n, y);
    case 7:
      return glu_of<7>(g, u, n, y);
    case 8:
      return glu_of<8>(g, u, n, y);
    case 9:
      return glu_of<9>(g, u, n, y);
    case 16: {
      const V::F top = V::set1(limit), bottom = V::set1(-limit), a = V::set1(alpha), one = V::set1(1.0F);
      return map2(g, u, n, y, [&](V::F x, V::F z) {
        x = V::min(top, x);
        z = V::max(bottom, V::min(top, z));
        return V::mul(V::mul(x, sigmoid(V::mul(a, x))), V::add(z, one));
      });
    }
    default:
      return glu_of<0>(g, u, n, y);
  }
}

void softcap(const float* x, std::uint32_t n, float c, float* y) {
  const V::F v = V::set1(c);
  map(x, n, y, [&](V::F a) { return V::mul(v, tanh(V::div(a, v))); });
}

void add(const float* a, const float* b, bool scalar, std::uint32_t n, float* y) {
  const V::F s = V::set1(b[0]);
  if (scalar) return map(a, n, y, [&](V::F v) { return V::add(v, s); });
  map2(a, b, n, y, [](V::F v, V::F u) { return V::add(v, u); });
}

void mul(const float* a, const float* b, bool scalar, std::uint32_t n, float* y) {
  const V::F s = V::set1(b[0]);
  if (scalar) return map(a, n, y, [&](V::F v) { return V::mul(v, s); });
  map2(a, b, n, y, [](V::F v, V::F u) { return V::mul(v, u); });
}

void scale(const float* x, std::uint32_t n, float a, float b, float* y) {
  const V::F p = V::set1(a), q = V::set1(b);
  if (b == 0.0F) return map(x, n, y, [&](V::F v) { return V::mul(p, v); });
  map(x, n, y, [&](V::F v) { return V::add(V::mul(p, v), q); });
}

void clamp(const float* x, std::uint32_t n, float low, float high, float* y) {
  const V::F l = V::set1(low), h = V::set1(high);
  map(x, n, y, [&](V::F v) { return V::min(h, V::max(l, v)); });
}

void rope(const float* x, std::uint32_t d, const float* cos, const float* sin, std::uint32_t dim, int pairs, float* y) {
  const std::uint32_t half = dim / 2;
  if (pairs == 0) {
    std::uint32_t i = 0;
    for (; i + 16 <= half; i += 16) {
      const V::F a = V::load(x + i), b = V::load(x + half + i), c = V::load(cos + i), s = V::load(sin + i);
      V::store(y + i, V::sub(V::mul(a, c), V::mul(b, s)));
      V::store(y + half + i, V::add(V::mul(b, c), V::mul(a, s)));
    }
    for (; i < half; ++i) {
      const float a = x[i], b = x[half + i], ac = a * cos[i], bs = b * sin[i], bc = b * cos[i], as = a * sin[i];
      y[i] = ac - bs;
      y[half + i] = bc + as;
    }
  } else {
    for (std::uint32_t i = 0; i < half; ++i) {
      const float a = x[2 * i], b = x[2 * i + 1], ac = a * cos[i], bs = b * sin[i], bc = b * cos[i], as = a * sin[i];
      y[2 * i] = ac - bs;
      y[2 * i + 1] = bc + as;
    }
  }
  if (y != x)
    for (std::uint32_t i = dim; i < d; ++i) y[i] = x[i];
}

void cast(Num to, const float* x, std::uint32_t n, void* y) {
  for (std::uint32_t i = 0; i < n; i += 16) {
    const std::uint32_t count = n - i < 16 ? n - i : 16;
    const V::F v = count == 16 ? V::load(x + i) : load_tail(x + i, count, 0.0F);
    if (to == Num::f32) {
      store_tail(static_cast<float*>(y) + i, count, v);
      continue;
    }
    alignas(64) std::uint16_t h[16];
    if (to == Num::f16) V::store_f16(h, v);
    else store_bf16(h, v);
    std::memcpy(static_cast<std::uint16_t*>(y) + i, h, count * sizeof h[0]);
  }
}

// One digit: round(x * 127 / amax); two: round(x * 127 * 128 / amax), split. A block with an infinity or a NaN gets a NaN scale, so that it
// cannot pass for a number.
void quantise(const float* x, std::uint32_t k, const Acts& row) {
  const auto part = [&](std::uint32_t at) { return at + 16 <= k ? V::load(x + at) : load_tail(x + at, at < k ? k - at : 0, 0.0F); };
  const float smooth = kSmooth * __builtin_sqrtf(sum_of_squares(x, k) / static_cast<float>(k));
  for (std::uint32_t b = 0; b < row.nb; ++b) {
    const V::F v[2] = {part(b * kBlock), part(b * kBlock + 16)};
    const float amax = V::reduce_max(V::max(absolute(v[0]), absolute(v[1])));
    const V::F poison = V::fma(v[1], V::zero(), V::mul(v[0], V::zero()));
    const float d = amax / (127.0F * 128.0F) + V::reduce_add(poison);
    const bool two = !(amax <= smooth && amax < row.outlier);
    const float most = two ? 127.0F * 128.0F : 127.0F;
    const V::F by = V::set1(amax > 0.0F ? most / amax : 0.0F), high = V::set1(most), low = V::set1(-most);
    std::int8_t* const q = row.q + static_cast<std::size_t>(b) * 2 * kBlock;
    std::int32_t sums[2];  // of finite numbers: max() lets `low` stand for a NaN
    for (std::uint32_t h = 0; h < 2; ++h) {
      V::I all = V::round(V::min(V::max(V::mul(v[h], by), low), high)), digit = all;
      if (two) digit = V::sar<kDigit>(V::addi(all, V::set1i(1 << (kDigit - 1))));
      else all = V::shl<kDigit>(digit);
      V::store_i8(q + 16 * h, digit);
      V::store_i8(q + kBlock + 16 * h, V::subi(all, V::shl<kDigit>(digit)));
      sums[h] = V::reduce_addi(all);
      row.s16[2 * b + h] = sums[h];
      row.ds16[2 * b + h] = d * static_cast<float>(sums[h]);
    }
    row.two[static_cast<std::size_t>(b) * row.rows] = two;
    row.d[b] = d;
    row.s[b] = sums[0] + sums[1];
    row.ds[b] = d * static_cast<float>(sums[0] + sums[1]);
  }
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
