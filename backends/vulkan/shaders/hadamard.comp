#version 450
// A group of 32 for each list of n numbers (row, one of m): each part of h numbers, the largest power of two that divides n, times the
// Hadamard matrix of that size. i0: divided by the size.
layout(local_size_x = 32) in;
#include "common.glsl"
shared float s[1024];

void main() {
  uint g = group_index();
  if (g >= p.rows * p.m) return;
  uint row = g / p.m, part = g - row * p.m, lane = gl_LocalInvocationID.x;
  for (uint j = lane; j < p.n; j += 32u) s[j] = a[p.a + row * p.as_ + part * p.n + j];
  barrier();
  for (uint step = 1u; step < p.h; step *= 2u) {
    for (uint pair = lane; pair < p.n / 2u; pair += 32u) {
      uint first = pair / step * step * 2u + pair % step;
      float u = s[first], v = s[first + step];
      s[first] = u + v;
      s[first + step] = u - v;
    }
    barrier();
  }
  float by = p.i0 != 0 ? float(p.h) : 1.0;
  for (uint j = lane; j < p.n; j += 32u) y[p.o + row * p.os + part * p.n + j] = s[j] / by;
}
