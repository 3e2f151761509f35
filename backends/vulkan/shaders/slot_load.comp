#version 450
// One number of a state an invocation: y[sequence][k] from the slot that the batch names from i0 on; -1: zeros.
layout(local_size_x = 64) in;
#include "common.glsl"

void main() {
  uint index = lane_index();
  if (index >= p.rows * p.k) return;
  uint seq = index / p.k, j = index - seq * p.k;
  int slot = bt[uint(p.i0) + seq];
  y[p.o + seq * p.os + j] = slot < 0 ? 0.0 : pool_f[p.w0 + uint(slot) * p.k + j];
}
