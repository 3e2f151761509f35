#version 450
// A row of a head of a sequence an invocation: its n numbers of state in c [sequence][m heads][h rows][n], changed in place. x: a; B, C
// and dt: in b, from b, i0 and i1 on, with strides bs, i7 and i2. A at w1, D at w2; i5: A by column; i6: heads of a group.
layout(local_size_x = 32) in;
#include "common.glsl"
#include "math.glsl"
#include "slot.glsl"

void main() {
  uint index = lane_index(), each = p.m * p.h;
  if (index >= p.rows * each) return;
  uint seq = index / each, i = index - seq * each, head = i / p.h, begin = start_of(seq), end = start_of(seq + 1u);
  uint group = head / uint(p.i6), state = p.c + seq * p.cs + i * p.n;
  for (uint t = begin; t < end; ++t) {
    float dt = b[uint(p.i1) + t * uint(p.i2) + head], x = a[p.a + t * p.as_ + i], sum = 0.0;
    float decay = p.i5 != 0 ? 0.0 : exp_of(dt * vector(p.w1 + head));
    uint of_b = p.b + t * p.bs + group * p.n, of_c = uint(p.i0) + t * uint(p.i7) + group * p.n;
    int slot = saved_at(t);
    for (uint j = 0u; j < p.n; ++j) {
      float by = p.i5 != 0 ? exp_of(dt * vector(p.w1 + head * p.n + j)) : decay;
      float s = fma(c[state + j], by, dt * b[of_b + j] * x);
      c[state + j] = s;
      sum = fma(s, b[of_c + j], sum);
      if (slot >= 0) pool_f[p.w0 + uint(slot) * p.k + i * p.n + j] = s;
    }
    y[p.o + t * p.os + i] = fma(x, vector(p.w2 + head), sum);
  }
}
