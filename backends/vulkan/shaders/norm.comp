#version 450
// A group of 32 for each list of n numbers (row, one of m). Sums: a chain for each invocation, then one tree.
layout(local_size_x = 32) in;
#include "common.glsl"
#include "reduce.glsl"
layout(constant_id = 0) const uint kMode = 0;  // 0 rms_norm, 1 layer_norm, 2 l2_norm, 3 mean, 4 softmax
#include "math.glsl"

void main() {
  uint g = group_index();
  if (g >= p.rows * p.m) return;
  uint row = g / p.m, part = g - row * p.m, lane = gl_LocalInvocationID.x;
  uint from = p.a + row * p.as_ + part * p.n, to = p.o + row * p.os + part * p.n, of_weight = p.i0 != 0 ? part * p.n : 0u;
  float mean = 0.0, sum = 0.0;
  if (kMode == 4u) {
    float most = uintBitsToFloat(0xFF800000u);
    for (uint j = lane; j < p.n; j += 32u) most = a[from + j] > most ? a[from + j] : most;
    mean = max_of_group(most);
    for (uint j = lane; j < p.n; j += 32u) sum += exp_of(a[from + j] - mean);
    sum = sum_of_group(sum);
    for (uint j = lane; j < p.n; j += 32u) y[to + j] = exp_of(a[from + j] - mean) / sum;
    return;
  }
  if (kMode == 1u || kMode == 3u) {
    for (uint j = lane; j < p.n; j += 32u) sum += a[from + j];
    mean = sum_of_group(sum) / float(p.n);
    sum = 0.0;
  }
  if (kMode == 3u) {
    if (lane == 0u) y[p.o + row * p.os + part] = mean;
    return;
  }
  for (uint j = lane; j < p.n; j += 32u) {
    float v = a[from + j] - mean;
    sum = fma(v, v, sum);
  }
  sum = sum_of_group(sum);
  float root = sqrt((kMode == 2u ? sum : sum / float(p.n)) + p.f0);
  for (uint j = lane; j < p.n; j += 32u) {
    precise float v = (a[from + j] - mean) / root;
    if (p.w3 != kNone) v = v * vector(p.w3 + of_weight + j);
    if (kMode == 1u && p.w2 != kNone) v = v + vector(p.w2 + (p.i1 != 0 ? part * p.n : 0u) + j);
    y[to + j] = v;
  }
}
