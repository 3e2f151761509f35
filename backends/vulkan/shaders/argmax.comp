#version 450
// A group of 32 for each list of n numbers: the place of the largest, of equal ones the first. A NaN is never larger.
layout(local_size_x = 32) in;
#include "common.glsl"
shared float best_value[32];
shared uint best_place[32];

void main() {
  uint g = group_index();
  if (g >= p.rows * p.m) return;
  uint row = g / p.m, part = g - row * p.m, lane = gl_LocalInvocationID.x;
  uint from = p.a + row * p.as_ + part * p.n;
  float value = uintBitsToFloat(0xFF800000u);
  uint place = lane < p.n ? lane : 0u;
  for (uint j = lane; j < p.n; j += 32u)
    if (a[from + j] > value) value = a[from + j], place = j;
  best_value[lane] = value;
  best_place[lane] = place;
  barrier();
  for (uint step = 16u; step > 0u; step >>= 1) {
    if (lane < step) {
      float v = best_value[lane + step];
      uint at = best_place[lane + step];
      if (v > best_value[lane] || (v == best_value[lane] && at < best_place[lane])) best_value[lane] = v, best_place[lane] = at;
    }
    barrier();
  }
  if (lane == 0u) yi[p.o + row * p.os + part] = is_nan(a[from]) ? 0 : int(best_place[0]);
}
