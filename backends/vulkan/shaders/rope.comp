#version 450
// One pair, or one number that stays, an invocation. The cosines and sines of a token come with the batch, in turns, from i1 on.
layout(local_size_x = 64) in;
#include "common.glsl"

void main() {
  uint index = lane_index(), half_dim = p.h, each = p.n - half_dim;  // pairs and what stays, of n numbers
  if (index >= p.rows * p.m * each) return;
  uint list = index / each, i = index - list * each, row = list / p.m, part = list - row * p.m;
  uint from = p.a + row * p.as_ + part * p.n, to = p.o + row * p.os + part * p.n;
  if (i >= half_dim) {
    y[to + half_dim + i] = a[from + half_dim + i];
    return;
  }
  uint first = p.i0 == 0 ? i : 2u * i, second = p.i0 == 0 ? i + half_dim : 2u * i + 1u;
  uint at = uint(p.i1) + (row * half_dim + i) * 2u;
  float cosine = bt_f[at], sine = bt_f[at + 1u], u = a[from + first], v = a[from + second];
  precise float x0 = u * cosine - v * sine, x1 = v * cosine + u * sine;
  y[to + first] = x0;
  y[to + second] = x1;
}
