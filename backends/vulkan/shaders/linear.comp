#version 450
// y[t][n] = sum over k of x[t][k] w[n][k], then + bias, then + residual. Compiled once for each kind of weight (KIND, of WeightKind) and
// for TOKENS rows of x at a time. An invocation has the same row of TILES tiles of weights, 32 rows each, and TOKENS rows of x in
// registers; each result is one chain of fused multiply-adds in ascending k, however many rows there are. With EXPERTS a row of the
// result is one (row of x, choice): its matrix is named by ids, or by the choice itself.
layout(local_size_x = 32) in;
#include "common.glsl"
#include "numbers.glsl"
#include "weight.glsl"
layout(constant_id = 7) const uint kTail = 0;      // columns of the last four, where k is no multiple of four
layout(constant_id = 8) const uint kBias = 0;      // at p.w3
layout(constant_id = 9) const uint kResidual = 0;  // rows of c
layout(constant_id = 10) const uint kIds = 0;      // EXPERTS: matrices are named by b

#if KIND == 0
const uint kChunk = 4u;
#elif KIND == 1 || KIND == 2
const uint kChunk = 8u;
#elif KIND == 3
const uint kChunk = 64u;
#elif KIND == 4
const uint kChunk = 32u;
#else
const uint kChunk = 16u;
#endif
const bool kCoded = KIND >= 3;

// Columns 4 u .. 4 u + 3 of a chunk, before scales.
vec4 four(uvec4 q, uint u) {
#if KIND == 0
  return uintBitsToFloat(q);
#elif KIND == 1
  return vec4(unpackHalf2x16(q[2u * u]), unpackHalf2x16(q[2u * u + 1u]));
#elif KIND == 2
  uvec2 d = uvec2(q[2u * u], q[2u * u + 1u]);
  return uintBitsToFloat(uvec4(d.x << 16, d.x & 0xFFFF0000u, d.y << 16, d.y & 0xFFFF0000u));
#else
#if KIND == 3
  ivec4 code = ivec4(uvec4(q[u / 4u]) >> (8u * (u % 4u) + uvec4(0u, 2u, 4u, 6u))) & 3;
#elif KIND == 4
  ivec4 code = ivec4(uvec4(q[u / 2u]) >> (16u * (u % 2u) + uvec4(0u, 4u, 8u, 12u))) & 15;
#else
  ivec4 code = ivec4(uvec4(q[u]) >> uvec4(0u, 8u, 16u, 24u)) & 255;
#endif
  if (kLookup != 0u) return vec4(word(p.w2 + uint(code.x)), word(p.w2 + uint(code.y)), word(p.w2 + uint(code.z)), word(p.w2 + uint(code.w)));
  return vec4(code);
#endif
}

void main() {
  uint lane = gl_LocalInvocationID.x, tiles = (p.n + 31u) / 32u, chunks = (p.k + kChunk - 1u) / kChunk;
  uint groups = kCoded ? (p.k + kGroup - 1u) / kGroup : 0u;
  uint w0 = p.w0, w1 = p.w1, expert = 0u;
  uint x_at[TOKENS];  // texels
#ifdef EXPERTS
  uint entry = gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y;
  if (entry >= p.rows * p.m) return;
  uint row = entry / p.m, choice = entry - row * p.m;
  expert = kIds != 0u ? uint(bi[p.b + row * p.bs + choice]) : choice;
  w0 += expert * tiles * chunks * 32u;
  w1 += expert * tiles * groups * kPlanes * 32u;
  x_at[0] = (p.a + row * p.as_ + (p.i0 != 0 ? choice * uint(p.i0) : 0u)) / 4u;
#else
  uint first = gl_WorkGroupID.y * TOKENS;
  [[unroll]] for (uint t = 0u; t < TOKENS; ++t) x_at[t] = (p.a + min(first + t, p.rows - 1u) * p.as_) / 4u;
#endif
  uint code_at[TILES], number_at[TILES];
  [[unroll]] for (uint j = 0u; j < TILES; ++j) {
    uint tile = min(gl_WorkGroupID.x * TILES + j, tiles - 1u);
    code_at[j] = w0 + tile * chunks * 32u + lane;
    number_at[j] = w1 + tile * groups * kPlanes * 32u + lane;
  }
  float factor = kTensorScale != 0u ? vector(uint(p.i5) + expert) : 1.0;
  float sums[TOKENS * TILES];
  [[unroll]] for (uint i = 0u; i < TOKENS * TILES; ++i) sums[i] = 0.0;

  for (uint chunk = 0u; chunk < chunks; ++chunk) {
    uvec4 q[TILES];
    [[unroll]] for (uint j = 0u; j < TILES; ++j) q[j] = imageLoad(W4, int(code_at[j] + chunk * 32u));
    float scale[TILES], least[TILES], zero[TILES];
    [[unroll]] for (uint u = 0u; u < kChunk / 4u; ++u) {
      uint k = chunk * kChunk + 4u * u;
      if (kChunk > 4u && k >= p.k) break;
      if (kCoded && (kGroup >= kChunk ? u == 0u : (4u * u) % kGroup == 0u)) {
        uint at = (kGroup >= kChunk ? k / kGroup : chunk * (kChunk / min(kGroup, kChunk)) + (4u * u) / kGroup) * kPlanes * 32u;
        [[unroll]] for (uint j = 0u; j < TILES; ++j) {
          scale[j] = word(number_at[j] + at);
          if (kMin != 0u) least[j] = word(number_at[j] + at + 32u);
          if (kZero == 2u) zero[j] = word(number_at[j] + at + (1u + kMin) * 32u);
        }
      }
      bvec4 inside = lessThan(uvec4(k, k + 1u, k + 2u, k + 3u), uvec4(p.k));
      precise vec4 w[TILES];
      [[unroll]] for (uint j = 0u; j < TILES; ++j) {
        w[j] = four(q[j], u);
        if (kCoded) {
          if (kZero == 1u) w[j] = w[j] - p.f0;
          if (kZero == 2u) w[j] = w[j] - zero[j];
          w[j] = w[j] * scale[j];
          if (kMin != 0u) w[j] = w[j] - least[j];
          if (kTensorScale != 0u) w[j] = w[j] * factor;
          if (kRound != 0u) w[j] = vec4(round_num(kRound, w[j].x), round_num(kRound, w[j].y), round_num(kRound, w[j].z), round_num(kRound, w[j].w));
        }
        if (kTail != 0u) w[j] = mix(vec4(0.0), w[j], inside);
      }
      [[unroll]] for (uint t = 0u; t < TOKENS; ++t) {
        vec4 x = imageLoad(A4, int(x_at[t] + k / 4u));
        if (kTail != 0u) x = mix(vec4(0.0), x, inside);
        [[unroll]] for (uint j = 0u; j < TILES; ++j) {
          uint i = t * TILES + j;
          sums[i] = fma(x.x, w[j].x, sums[i]);
          sums[i] = fma(x.y, w[j].y, sums[i]);
          sums[i] = fma(x.z, w[j].z, sums[i]);
          sums[i] = fma(x.w, w[j].w, sums[i]);
        }
      }
    }
  }
  [[unroll]] for (uint j = 0u; j < TILES; ++j) {
    uint n = (gl_WorkGroupID.x * TILES + j) * 32u + lane;
    if (n >= p.n) continue;
#ifdef EXPERTS
    float v = sums[j];
    if (kBias != 0u) v = v + vector(p.w3 + expert * p.n + n);
    y[p.o + row * p.os + choice * p.n + n] = v;
#else
    float bias = kBias != 0u ? vector(p.w3 + n) : 0.0;
    [[unroll]] for (uint t = 0u; t < TOKENS; ++t) {
      if (first + t >= p.rows) continue;
      float v = sums[t * TILES + j];
      if (kBias != 0u) v = v + bias;
      if (kResidual != 0u) v = v + c[p.c + (first + t) * p.cs + n];
      y[p.o + (first + t) * p.os + n] = v;
    }
#endif
  }
}
