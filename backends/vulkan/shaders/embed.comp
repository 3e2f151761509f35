#version 450
// One number an invocation: a row of the weight, decoded, or the sum of m of them times a mix. Ids are the batch's (from i0) or of b.
layout(local_size_x = 64) in;
#include "common.glsl"
#include "numbers.glsl"
layout(constant_id = 0) const uint kKind = 0;  // of weight layouts, WeightKind in forms.hpp
#include "weight.glsl"
layout(constant_id = 7) const uint kIdsOfBatch = 1;
layout(constant_id = 8) const uint kEmbeds = 0;  // the batch may bring rows: which from i1, themselves from i2
layout(constant_id = 9) const uint kMixed = 0;

const uint kBits = kKind == 0u ? 32u : kKind == 1u || kKind == 2u ? 16u : kKind == 3u ? 2u : kKind == 4u ? 4u : 8u;
const uint kChunk = 128u / kBits;

float element(uint row, uint j) {
  uint tile = row / 32u, lane = row % 32u, chunks = (p.k + kChunk - 1u) / kChunk, chunk = j / kChunk, at = (j % kChunk) * kBits;
  uint bits = imageLoad(W1, int((p.w0 + (tile * chunks + chunk) * 32u + lane) * 4u + at / 32u)).x >> (at % 32u);
  if (kKind == 0u) return uintBitsToFloat(bits);
  if (kKind == 1u) return from_f16(bits);
  if (kKind == 2u) return from_bf16(bits & 0xFFFFu);
  uint code = bits & ((1u << kBits) - 1u), groups = (p.k + kGroup - 1u) / kGroup;
  uint numbers = p.w1 + (tile * groups + j / kGroup) * kPlanes * 32u + lane;
  float value = kLookup != 0u ? word(p.w2 + code) : float(int(code));
  if (kZero == 1u) value -= p.f0;
  if (kZero == 2u) value -= word(numbers + (1u + kMin) * 32u);
  precise float w = word(numbers) * value;
  if (kMin != 0u) w = w - word(numbers + 32u);
  if (kTensorScale != 0u) w = w * vector(uint(p.i5));
  if (kRound != 0u) w = round_num(kRound, w);
  return w;
}

void main() {
  uint index = lane_index();
  if (index >= p.rows * p.n) return;
  uint row = index / p.n, j = index - row * p.n;
  if (kEmbeds != 0u && bt[uint(p.i1) + row] >= 0) {
    y[p.o + row * p.os + j] = bt_f[uint(p.i2) + uint(bt[uint(p.i1) + row]) * p.n + j];
    return;
  }
  float sum = 0.0;
  for (uint i = 0u; i < p.m; ++i) {
    int id = kIdsOfBatch != 0u ? bt[uint(p.i0) + row] : bi[p.b + row * p.bs + i];
    float w = element(uint(id), j);
    sum = kMixed != 0u ? fma(c[p.c + row * p.cs + i], w, sum) : w;
  }
  y[p.o + row * p.os + j] = sum;
}
