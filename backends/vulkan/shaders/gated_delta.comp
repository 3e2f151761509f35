#version 450
// A column of a head of values of a sequence an invocation: n numbers of state in c [sequence][m heads][n][h columns], changed in place.
// q: a; k, v, decay and beta: in b, from b, i0, i1, i2 on. i5: key heads; i6: bit 0 spread, bit 1 decay for each of the n rows. All rows of
// those have strides in w1 (v), w2 (decay), w3 (beta).
layout(local_size_x = 32) in;
#include "common.glsl"
#include "math.glsl"
#include "slot.glsl"

void main() {
  uint index = lane_index(), each = p.m * p.h;
  if (index >= p.rows * each) return;
  uint seq = index / each, i = index - seq * each, head = i / p.h, column = i - head * p.h, begin = start_of(seq), end = start_of(seq + 1u);
  uint keys = uint(p.i5), of_key = ((p.i6 & 1) != 0 ? head % keys : head / (p.m / keys)) * p.n;
  bool by_row = (p.i6 & 2) != 0;
  uint state = p.c + seq * p.cs + head * p.n * p.h + column;
  for (uint t = begin; t < end; ++t) {
    uint q = p.a + t * p.as_ + of_key, k = p.b + t * p.bs + of_key, gates = uint(p.i1) + t * p.w2;
    float decay = by_row ? 0.0 : exp_of(b[gates + head]), seen = 0.0, sum = 0.0;
    for (uint j = 0u; j < p.n; ++j) {
      float by = by_row ? exp_of(b[gates + head * p.n + j]) : decay;
      seen = fma(c[state + j * p.h] * by, b[k + j], seen);
    }
    float delta = (b[uint(p.i0) + t * p.w1 + i] - seen) * b[uint(p.i2) + t * p.w3 + head];
    int slot = saved_at(t);
    for (uint j = 0u; j < p.n; ++j) {
      float by = by_row ? exp_of(b[gates + head * p.n + j]) : decay;
      float s = fma(c[state + j * p.h], by, b[k + j] * delta);
      c[state + j * p.h] = s;
      sum = fma(s, a[q + j], sum);
      if (slot >= 0) pool_f[p.w0 + uint(slot) * p.k + (head * p.n + j) * p.h + column] = s;
    }
    y[p.o + t * p.os + i] = sum * p.f0;
  }
}
