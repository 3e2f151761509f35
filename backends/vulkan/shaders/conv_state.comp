#version 450
// A channel of a sequence an invocation. c: the states [sequence][n channels][h inputs], oldest first, as the step found them; taps at w2,
// bias at w3. A tap meets an input of this step or one of those.
layout(local_size_x = 64) in;
#include "common.glsl"
#include "math.glsl"
layout(constant_id = 0) const uint kKind = 0;
#include "slot.glsl"

void main() {
  uint index = lane_index();
  if (index >= p.rows * p.n) return;
  uint seq = index / p.n, channel = index - seq * p.n, begin = start_of(seq), end = start_of(seq + 1u);
  uint past = p.c + seq * p.cs + channel * p.h;
  for (uint t = begin; t < end; ++t) {
    float sum = 0.0;
    for (uint i = 0u; i <= p.h; ++i) {
      uint at = t - begin + i;  // of past inputs and then those of the step
      float x = at < p.h ? c[past + at] : a[p.a + (begin + at - p.h) * p.as_ + channel];
      sum = fma(x, vector(p.w2 + channel * (p.h + 1u) + i), sum);
    }
    if (p.w3 != kNone) sum = sum + vector(p.w3 + channel);
    y[p.o + t * p.os + channel] = activate(kKind, sum);
    int slot = saved_at(t);
    if (slot < 0) continue;
    for (uint i = 0u; i < p.h; ++i) {
      uint at = t - begin + 1u + i;
      float x = at < p.h ? c[past + at] : a[p.a + (begin + at - p.h) * p.as_ + channel];
      pool_f[p.w0 + uint(slot) * p.k + channel * p.h + i] = x;
    }
  }
}
