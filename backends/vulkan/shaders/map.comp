#version 450
// One number of the result an invocation: y[row][j] of a[row][j] and, by the operation, of a second operand or a vector.
layout(local_size_x = 64) in;
#include "common.glsl"
#include "numbers.glsl"
#include "math.glsl"
layout(constant_id = 0) const uint kOp = 0;    // the list of MapOp in kernels.hpp
layout(constant_id = 1) const uint kKind = 0;  // of an activation

float glu(float gate, float up) {
  if (kKind != 16u) return activate(kKind, gate) * up;
  gate = gate > p.f0 ? p.f0 : gate;
  up = up > p.f0 ? p.f0 : up < -p.f0 ? -p.f0 : up;
  return gate * sigmoid_of(p.f1 * gate) * (up + 1.0);
}

void main() {
  uint index = lane_index();
  if (index >= p.rows * p.n) return;
  uint row = index / p.n, j = index - row * p.n;
  uint to = p.o + row * p.os + j, from = p.a + row * p.as_ + j, other = p.b + row * p.bs;
  precise float r;
  switch (kOp) {
    case 0u: r = activate(kKind, a[from]); break;
    case 1u: r = p.f0 * a[from]; if (p.f1 != 0.0) r = r + p.f1; break;
    case 2u: r = round_num(kKind, a[from]); break;
    case 3u: { float v = a[from]; r = v < p.f0 ? p.f0 : v > p.f1 ? p.f1 : v; break; }
    case 4u: r = p.f0 * tanh_of(a[from] / p.f0); break;
    case 5u: r = glu(a[from], b[other + j]); break;
    case 6u: r = a[from] + b[other + j / p.m]; break;
    case 7u: r = a[from] * b[other + j / p.m]; break;
    case 8u: r = a[from] + vector(p.w3 + j / p.m); break;
    case 9u: r = a[from] * vector(p.w3 + j / p.m); break;
    case 10u: r = a[from]; break;
    case 11u: r = a[from] * vector(p.w3 + uint(bi[other + j])); break;                             // moe_scale
    case 12u: r = a[p.a + row * p.as_ + j % p.m] * b[other + j / p.m]; break;                      // moe_spread, m columns of x
    case 13u: r = a[from] * bt_f[uint(p.i0) + row]; break;                                         // a factor a token
    case 14u: {                                                                                    // concat of m and k columns
      uint part = j / (p.m + p.k), at = j - part * (p.m + p.k);
      r = at < p.m ? a[p.a + row * p.as_ + part * p.m + at] : b[other + part * p.k + at - p.m];
      break;
    }
    case 15u: r = a[p.a + row * p.as_ + imageLoad(V1, int(p.w3 + j)).x]; break;                    // columns in another order
    case 16u: r = a[p.a + uint(bt[uint(p.i0) + row]) * p.as_ + j]; break;                          // rows that are taken
    case 17u: {                                                                                    // moe_combine of m experts' rows
      float sum = 0.0;
      for (uint e = 0u; e < p.m; ++e) sum = fma(a[from + e * p.n], p.i0 != 0 ? b[other + e] : 1.0, sum);
      r = sum;
      break;
    }
    default: {                                                                                     // pad: m columns, then zeros up to k
      uint part = j / p.k, at = j - part * p.k;
      r = at < p.m ? a[p.a + row * p.as_ + part * p.m + at] : 0.0;
      break;
    }
  }
  y[to] = r;
}
