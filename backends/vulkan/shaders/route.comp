#version 450
// A row an invocation. Of n experts' logits (a) the m best, in falling order, ties to the lower index: ids to y, weights to c. b: two lists
// of n numbers a row to work in. A list is never changed while it is searched: the next best is the best of what comes after the last.
layout(local_size_x = 32) in;
#include "common.glsl"
#include "math.glsl"
layout(constant_id = 0) const uint kScore = 0;  // 0 softmax, 1 sigmoid, 2 softmax of the chosen, 3 root of softplus; 9: mixer of width f0
#define kNever uintBitsToFloat(0xFF800000u)

uint scores, choice;
float key(uint at) { float v = b[at]; return is_nan(v) ? kNever : v; }
// Of the list at `from`: the first in the order (falling, then ascending index) after the one of value `last` at `place`.
uint next(uint from, uint count, bool any, float last, uint place) {
  float best = kNever;
  uint at = kNone;
  for (uint e = 0u; e < count; ++e) {
    float v = key(from + e);
    if (any && !(v < last || (v == last && e > place))) continue;
    if (at == kNone || v > best) best = v, at = e;
  }
  return at;
}

void mixer(uint row) {
  uint place = 0u;
  float last = 0.0;
  for (uint i = 0u; i < p.m; ++i) {
    uint chosen = next(scores, p.n, i > 0u, last, place);
    float most = b[scores + chosen], sum = 0.0;
    for (uint e = 0u; e < p.n; ++e) {
      float s = b[scores + e], v = key(scores + e);
      bool gone = i > 0u && !(v < last || (v == last && e > place));
      if (gone || s == kNever) continue;
      float size = abs(s) > most ? abs(s) : most;
      if (!((most - s) / size > p.f0)) sum += exp_of(s - most);
    }
    last = key(scores + chosen);
    place = chosen;
    yi[p.o + row * p.os + i] = int(chosen);
    c[p.c + row * p.cs + i] = 1.0 / sum;
  }
}

void softmax(uint from, uint count, bool of_c) {
  float most = kNever, sum = 0.0;
  for (uint e = 0u; e < count; ++e) { float v = of_c ? c[from + e] : b[from + e]; most = v > most ? v : most; }
  for (uint e = 0u; e < count; ++e) sum += exp_of((of_c ? c[from + e] : b[from + e]) - most);
  for (uint e = 0u; e < count; ++e) {
    float v = exp_of((of_c ? c[from + e] : b[from + e]) - most) / sum;
    if (of_c) c[from + e] = v;
    else b[from + e] = v;
  }
}

// Experts outside the best i1 of i0 groups can no longer be chosen: their numbers become -inf. A group counts as its best, or best two.
void keep_groups() {
  uint n_groups = uint(p.i0), each = p.n / n_groups;
  // A group's score goes to where its first score was copied to: behind the lists (the host reserves n_groups more).
  uint at = choice + p.n;
  for (uint g = 0u; g < n_groups; ++g) {
    uint first = next(choice + g * each, each, false, 0.0, 0u);
    float score = b[choice + g * each + first];
    if (p.i2 == 0 && each > 1u) score += b[choice + g * each + next(choice + g * each, each, true, key(choice + g * each + first), first)];
    b[at + g] = score;
  }
  float last = 0.0;
  uint place = 0u;
  for (uint i = 0u; i < uint(p.i1); ++i) {
    place = next(at, n_groups, i > 0u, last, place);
    last = key(at + place);
  }
  for (uint g = 0u; g < n_groups; ++g) {
    float v = key(at + g);
    if (v > last || (v == last && g <= place)) continue;
    for (uint e = 0u; e < each; ++e) b[choice + g * each + e] = kNever;
  }
}

void main() {
  uint row = lane_index();
  if (row >= p.rows) return;
  scores = p.b + row * p.bs;
  choice = scores + p.n;
  for (uint e = 0u; e < p.n; ++e) b[scores + e] = a[p.a + row * p.as_ + e];
  if (kScore == 9u) {
    mixer(row);
    return;
  }
  if (kScore == 0u) softmax(scores, p.n, false);
  for (uint e = 0u; e < p.n; ++e) {
    float v = b[scores + e];
    if (kScore == 1u) v = sigmoid_of(v);
    if (kScore == 3u) v = sqrt(softplus_of(v));
    b[scores + e] = v;
    b[choice + e] = p.w3 != kNone ? v + vector(p.w3 + e) : v;
  }
  if (p.i0 > 1) keep_groups();
  float last = 0.0, sum = 1e-20;
  uint place = 0u, to = p.c + row * p.cs;
  for (uint i = 0u; i < p.m; ++i) {
    place = next(choice, p.n, i > 0u, last, place);
    last = key(choice + place);
    yi[p.o + row * p.os + i] = int(place);
    c[to + i] = b[scores + place];
  }
  if (kScore == 2u) softmax(to, p.m, true);
  for (uint i = 0u; i < p.m; ++i) sum += c[to + i];
  for (uint i = 0u; i < p.m; ++i) {
    float v = c[to + i];
    if (p.i3 != 0) v = v / sum;
    c[to + i] = v * p.f0;
  }
}
