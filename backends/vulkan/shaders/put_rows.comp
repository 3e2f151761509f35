#version 450
// y already holds x. One column an invocation: rows of b replace rows of y or are added, one after the other, as a row may come twice.
layout(local_size_x = 64) in;
#include "common.glsl"

void main() {
  uint j = lane_index();
  if (j >= p.n) return;
  for (uint r = 0u; r < p.rows; ++r) {
    uint to = p.o + uint(bt[uint(p.i0) + r]) * p.os + j;
    float v = b[p.b + r * p.bs + j];
    y[to] = p.i1 != 0 ? y[to] + v : v;
  }
}
