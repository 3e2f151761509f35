// Recurrences, token by token: the state of some channels goes through the registers once a token, with channels in lanes and one chain of
// fma per output. Data: Delta and Scan of kernels.hpp. Bound: a step of one token by the memory traffic of the state, a prompt by 4 (delta)
// or 3 (scan) operations a number of the state, which stays in the first level cache.
#include "isa/math.hpp"
#include "isa/rows.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

namespace {

constexpr int kVectors = V::kFloatColumns >= 12 ? 4 : V::kFloatColumns >= 6 ? 2 : 1;  // of channels, side by side in registers

MK_INLINE V::F load_some(const float* p, std::uint32_t n) { return n >= 16 ? V::load(p) : load_tail(p, n, 0.0F); }
MK_INLINE void store_some(float* p, std::uint32_t n, V::F x) {
  if (n >= 16) V::store(p, x);
  else store_tail(p, n, x);
}
MK_INLINE float exp_of(float x) {
  alignas(64) float t[16];
  V::store(t, exp(V::set1(x)));
  return t[0];
}

// What the rows of the state are multiplied by before a token, and its key in terms of the state before that.
struct Turn {
  float *decay, *key;
};
MK_INLINE void prepare(const Delta& a, std::uint32_t t, const Turn& turn) {
  const float* k = a.k + t * a.k_stride;
  const float* decay = a.decay + t * a.decay_stride;
  const V::F one = a.decay_by_row ? V::zero() : V::set1(exp_of(decay[0]));
  for (std::uint32_t i = 0; i < a.dk; i += 16) {
    const V::F d = a.decay_by_row ? exp(load_some(decay + i, a.dk - i)) : one;
    V::store(turn.decay + i, d);
    V::store(turn.key + i, V::mul(d, load_some(k + i, a.dk - i)));
  }
}

// seen = sum over i of s_i * key_i, over the state as it is stored.
template <int NV>
MK_INLINE void look(const Delta& a, const float* state, const float* key, V::F* seen) {
  for (int v = 0; v < NV; ++v) seen[v] = V::zero();
  for (std::uint32_t i = 0; i < a.dk; ++i, state += a.width) {
    const V::F k = V::set1(key[i]);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) seen[v] = V::fma(V::load(state + 16 * v), k, seen[v]);
  }
}

// The state moves on by one token; on the way what the next token will see is summed where there is one.
template <int NV, bool kNext>
MK_INLINE void advance(const Delta& a, float* state, const float* decay, const float* k, const float* q, const float* next_key,
                       const V::F* step, V::F* out, V::F* seen) {
  for (int v = 0; v < NV; ++v) out[v] = seen[v] = V::zero();
  for (std::uint32_t i = 0; i < a.dk; ++i, state += a.width) {
    const V::F di = V::set1(decay[i]), ki = V::set1(k[i]), qi = V::set1(q[i]);
    V::F s[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      s[v] = V::fma(ki, step[v], V::mul(V::load(state + 16 * v), di));
      V::store(state + 16 * v, s[v]);
      out[v] = V::fma(s[v], qi, out[v]);
    }
    if constexpr (kNext) {
      const V::F next = V::set1(next_key[i]);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) seen[v] = V::fma(s[v], next, seen[v]);
    }
  }
}

template <int NV>
void run_delta(const Delta& a, std::uint32_t c0) {
  const std::size_t padded = (static_cast<std::size_t>(a.dk) + 15) / 16 * 16;
  Turn now{a.scratch, a.scratch + padded}, next{now.key + padded, now.key + 2 * padded};
  float* state = a.state + c0;
  V::F seen[NV], out[NV], step[NV];
  prepare(a, 0, now);
  look<NV>(a, state, now.key, seen);
  for (std::uint32_t t = 0; t < a.tokens; ++t) {
    const float* value = a.v + t * a.v_stride + c0;
    const V::F beta = V::set1(a.beta[t * a.beta_stride]), scale = V::set1(a.scale);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      const std::uint32_t at = c0 + 16 * static_cast<std::uint32_t>(v);
      const V::F x = at < a.columns ? load_some(value + 16 * v, a.columns - at) : V::zero();
      step[v] = V::mul(V::sub(x, seen[v]), beta);
    }
    const float *k = a.k + t * a.k_stride, *q = a.q + t * a.q_stride;
    if (t + 1 < a.tokens) {
      prepare(a, t + 1, next);
      advance<NV, true>(a, state, now.decay, k, q, next.key, step, out, seen);
      const Turn old = now;
      now = next;
      next = old;
    } else {
      advance<NV, false>(a, state, now.decay, k, q, nullptr, step, out, seen);
    }
    for (int v = 0; v < NV; ++v) {
      const std::uint32_t at = c0 + 16 * static_cast<std::uint32_t>(v);
      if (at < a.columns) store_some(a.y + t * a.y_stride + at, a.columns - at, V::mul(out[v], scale));
    }
  }
}

// Numbers of heads, by lane.
MK_INLINE V::F of_heads(const Scan& a, const float* numbers, std::uint32_t lane) {
  const std::uint32_t channel = a.channel0 + lane;
  if (a.per_head % 16 == 0) return V::set1(numbers[a.head0 + channel / a.per_head]);
  const std::uint32_t n = lane < a.columns ? a.columns - lane : 0;
  if (a.per_head == 1) return load_some(numbers + a.head0 + channel, n);
  alignas(64) float t[16] = {};
  for (std::uint32_t i = 0; i < 16 && i < n; ++i) t[i] = numbers[a.head0 + (channel + i) / a.per_head];
  return V::load(t);
}

template <int NV, bool kColumns>
MK_INLINE void scan_token(const Scan& a, float* state, const float* by_lane, const float* b, const float* c, const V::F* dt, const V::F* x,
                          const V::F* once, V::F* y) {
  for (std::uint32_t j = 0; j < a.n; ++j, state += a.width, by_lane += kScanLanes) {
    const V::F bj = V::set1(b[j]), cj = V::set1(c[j]);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      const V::F decay = kColumns ? exp(V::mul(dt[v], V::load(by_lane + 16 * v))) : once[v];
      const V::F s = V::fma(bj, x[v], V::mul(V::load(state + 16 * v), decay));
      V::store(state + 16 * v, s);
      y[v] = V::fma(s, cj, y[v]);
    }
  }
}

template <int NV>
void run_scan(const Scan& a, const float* by_lane, std::uint32_t c0) {
  V::F rate[NV], skip[NV];
  for (int v = 0; v < NV; ++v) {
    const std::uint32_t lane = c0 + 16 * static_cast<std::uint32_t>(v);
    rate[v] = a.a_stride == 0 ? of_heads(a, a.a, lane) : V::zero();
    skip[v] = of_heads(a, a.d, lane);
  }
  for (std::uint32_t t = 0; t < a.tokens; ++t) {
    V::F dt[NV], x[NV], in[NV], once[NV], y[NV];
    for (int v = 0; v < NV; ++v) {
      const std::uint32_t lane = c0 + 16 * static_cast<std::uint32_t>(v), n = lane < a.columns ? a.columns - lane : 0;
      dt[v] = of_heads(a, a.dt + t * a.dt_stride, lane);
      x[v] = load_some(a.x + t * a.x_stride + lane, n);
      in[v] = V::mul(dt[v], x[v]);
      once[v] = a.a_stride == 0 ? exp(V::mul(dt[v], rate[v])) : V::zero();
      y[v] = V::zero();
    }
    const float *b = a.b + t * a.b_stride, *c = a.c + t * a.c_stride;
    if (a.a_stride == 0) scan_token<NV, false>(a, a.state + c0, by_lane, b, c, dt, in, once, y);
    else scan_token<NV, true>(a, a.state + c0, by_lane + c0, b, c, dt, in, once, y);
    for (int v = 0; v < NV; ++v) {
      const std::uint32_t lane = c0 + 16 * static_cast<std::uint32_t>(v);
      if (lane < a.columns) store_some(a.y + t * a.y_stride + lane, a.columns - lane, V::fma(x[v], skip[v], y[v]));
    }
  }
}

}  // namespace

void delta(const Delta& a) {
  if (a.tokens == 0) return;
  std::uint32_t c = 0;
  for (; c + 16 * kVectors <= a.width; c += 16 * kVectors) run_delta<kVectors>(a, c);
  for (; c < a.width; c += 16) run_delta<1>(a, c);
}

void scan(const Scan& a) {
  if (a.tokens == 0) return;
  for (std::uint32_t j = 0; j < a.n && a.a_stride != 0; ++j)
    for (std::uint32_t lane = 0; lane < a.width; lane += 16)
      V::store(a.scratch + static_cast<std::size_t>(j) * kScanLanes + lane,
               of_heads(a, a.a + static_cast<std::size_t>(j) * a.a_stride, lane));
  std::uint32_t c = 0;
  for (; c + 16 * kVectors <= a.width; c += 16 * kVectors) run_scan<kVectors>(a, a.scratch, c);
  for (; c < a.width; c += 16) run_scan<1>(a, a.scratch, c);
}

void conv(const float* const* x, const float* w, std::size_t ws, std::uint32_t taps, const float* bias, int kind, std::uint32_t n,
          float* y) {
  for (std::uint32_t c = 0; c < n; c += 16) {
    const std::uint32_t left = n - c;
    V::F sum = V::zero();
    for (std::uint32_t i = 0; i < taps; ++i) sum = V::fma(load_some(x[i] + c, left), load_some(w + i * ws + c, left), sum);
    if (bias != nullptr) sum = V::add(sum, load_some(bias + c, left));
    store_some(y + c, left, activate(kind, sum));
  }
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
