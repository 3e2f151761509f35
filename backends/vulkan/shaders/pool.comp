#version 450
// A column of a sequence an invocation. i0: 0 mean, 1 first, 2 last, 3 max, 4 mean weighted by 1, 2, 3.., 5 sum over the root of the count.
// rows: sequences; i1: in the batch, where sequences start.
layout(local_size_x = 64) in;
#include "common.glsl"

void main() {
  uint index = lane_index();
  if (index >= p.rows * p.n) return;
  uint seq = index / p.n, j = index - seq * p.n, begin = uint(bt[uint(p.i1) + seq]), end = uint(bt[uint(p.i1) + seq + 1u]);
  uint only = p.i0 == 1 ? begin : end - 1u;
  float r = a[p.a + only * p.as_ + j];
  if (p.i0 != 1 && p.i0 != 2) {
    float most = a[p.a + begin * p.as_ + j], sum = 0.0, count = float(end - begin);
    for (uint t = begin; t < end; ++t) {
      float v = a[p.a + t * p.as_ + j];
      most = v > most ? v : most;
      sum += p.i0 == 4 ? float(t - begin + 1u) * v : v;
    }
    r = p.i0 == 3 ? most : sum / (p.i0 == 4 ? count * (count + 1.0) / 2.0 : p.i0 == 5 ? sqrt(count) : count);
  }
  y[p.o + seq * p.os + j] = r;
}
