#version 450
// Softmax of a row's scores over the stored rows that it sees, and the sum of their values. An invocation has one token and kShared heads
// that meet the same keys. Rows are visited in tiles of four, counted from position 0 of the sequence: what a row gives depends on no
// other row and on no cut of a prompt. a: queries [heads n][kFirst]; b: of latents, what meets the second part.
layout(local_size_x = 32) in;
#include "common.glsl"
#include "math.glsl"
#include "state.glsl"
layout(constant_id = 2) const uint kFirst = 64;   // numbers of the first part, the keys
layout(constant_id = 3) const uint kSecond = 64;  // of the second, the values
layout(constant_id = 4) const uint kLatent = 0;   // 1: both parts are key, and the first is value, too
layout(constant_id = 5) const uint kShared = 1;
layout(constant_id = 6) const uint kCap = 0;
layout(constant_id = 7) const uint kSinks = 0;    // at p.c
layout(constant_id = 8) const uint kSlopes = 0;   // at p.cs
layout(constant_id = 9) const uint kSight = 0;    // 0 causal, 1 all of the sequence, 2 causal within chunks of p.i5, 3 all of the chunk
layout(constant_id = 10) const uint kWindow = 0;  // p.i5 rows, to both sides where kSight is 1 and rows are those of this step

const uint kTexels1 = (kFirst + kNumbers - 1u) / kNumbers, kTexels2 = (kSecond + kNumbers - 1u) / kNumbers;
const uint kKeyTexels = kLatent != 0u ? kTexels1 + kTexels2 : kTexels1, kValueTexels = kLatent != 0u ? kTexels1 : kTexels2;
const uint kKey = kKeyTexels * kNumbers, kValue = kValueTexels * kNumbers, kWidth = kLatent != 0u ? kFirst : kSecond;
const float kLowest = -3.4e38;

// Four numbers of a texel, before the scale.
vec4 four(uvec4 q, uint u) {
  if (kForm == 0u) return uintBitsToFloat(q);
  if (kForm == 1u) return vec4(unpackHalf2x16(q[2u * u]), unpackHalf2x16(q[2u * u + 1u]));
  if (kForm == 2u) {
    uvec2 d = uvec2(q[2u * u], q[2u * u + 1u]);
    return uintBitsToFloat(uvec4(d.x << 16, d.x & 0xFFFF0000u, d.y << 16, d.y & 0xFFFF0000u));
  }
  if (kForm == 3u) return vec4(ivec4(uvec4(q[u]) << uvec4(24u, 16u, 8u, 0u)) >> 24);
  return vec4(ivec4(uvec4(q[u / 2u]) << (28u - (16u * (u % 2u) + uvec4(0u, 4u, 8u, 12u)))) >> 28);
}
float scale_at(uint last_word) { return kForm >= 3u ? uintBitsToFloat(pool[last_word]) : 1.0; }

void main() {
  uint groups = p.n / kShared, index = lane_index();
  if (index >= p.rows * groups) return;
  uint token = index / groups, head = (index - token * groups) * kShared, kv = head / (p.n / p.m);
  uint seq = sequence_of(token), place = context_of(seq) + token - start_of(seq);
  uint all = context_of(seq) + start_of(seq + 1u) - start_of(seq), begin = 0u, end = kSight == 1u ? all : place + 1u;
  if (kSight >= 2u) begin = place / uint(p.i5) * uint(p.i5);
  if (kSight == 3u) end = min(all, begin + uint(p.i5));
  if (kWindow != 0u) {
    begin = place + 1u > uint(p.i5) ? place + 1u - uint(p.i5) : 0u;
    if (kPlain != 0u) end = min(end, place + uint(p.i5));
  }
  vec4 query[kShared * kKey / 4u];
  [[unroll]] for (uint s = 0u; s < kShared; ++s)
    [[unroll]] for (uint j = 0u; j < kKey; ++j) {
      float v = 0.0;
      if (j < kFirst) v = a[p.a + token * p.as_ + (head + s) * kFirst + j];
      if (kLatent != 0u && j >= kTexels1 * kNumbers && j - kTexels1 * kNumbers < kSecond)
        v = b[p.b + token * p.bs + (head + s) * kSecond + j - kTexels1 * kNumbers];
      query[(s * kKey + j) / 4u][j % 4u] = v;
    }
  vec4 sums[kShared * kValue / 4u];
  [[unroll]] for (uint i = 0u; i < kShared * kValue / 4u; ++i) sums[i] = vec4(0.0);
  float most[kShared], weight[kShared];
  [[unroll]] for (uint s = 0u; s < kShared; ++s) {
    most[s] = kSinks != 0u ? vector(p.c + head + s) : kLowest;
    weight[s] = kSinks != 0u ? 1.0 : 0.0;
  }

  for (uint tile = begin & ~3u; tile < end; tile += 4u) {
    uint at[4];
    float score[4 * kShared];
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      uint row = clamp(tile + i, begin, end - 1u);  // rows that are not seen are not read either
      at[i] = row_texel(seq, row) + kv * p.w2;
      [[unroll]] for (uint s = 0u; s < kShared; ++s) score[i * kShared + s] = 0.0;
      float scale1 = scale_at((at[i] + p.w3) * 4u - 1u);
      [[unroll]] for (uint t = 0u; t < kKeyTexels; ++t) {
        uint from = kLatent != 0u && t >= kTexels1 ? p.w3 + t - kTexels1 : t;
        uvec4 q = imageLoad(P4, int(at[i] + from));
        float by = kLatent != 0u && t >= kTexels1 ? scale_at((at[i] + p.w2) * 4u - 1u) : scale1;
        [[unroll]] for (uint u = 0u; u < kNumbers / 4u; ++u) {
          vec4 key = four(q, u);
          if (kForm >= 3u) key *= by;
          [[unroll]] for (uint s = 0u; s < kShared; ++s) {
            vec4 x = query[(s * kKey + t * kNumbers) / 4u + u];
            float sum = score[i * kShared + s];
            sum = fma(x.x, key.x, sum);
            sum = fma(x.y, key.y, sum);
            sum = fma(x.z, key.z, sum);
            score[i * kShared + s] = fma(x.w, key.w, sum);
          }
        }
      }
      bool seen = tile + i >= begin && tile + i < end;
      [[unroll]] for (uint s = 0u; s < kShared; ++s) {
        float v = score[i * kShared + s] * p.f0;
        if (kCap != 0u) v = p.f1 * tanh_of(v / p.f1);
        if (kSlopes != 0u) {
          float apart = float(int(tile + i) - int(place));
          v = v + vector(p.cs + head + s) * (kSight == 1u && kPlain != 0u ? -abs(apart) : apart);
        }
        score[i * kShared + s] = seen ? v : kLowest;
      }
    }
    [[unroll]] for (uint s = 0u; s < kShared; ++s) {
      float larger = most[s];
      [[unroll]] for (uint i = 0u; i < 4u; ++i) larger = score[i * kShared + s] > larger ? score[i * kShared + s] : larger;
      float keep = exp_of(most[s] - larger);
      most[s] = larger;
      weight[s] = weight[s] * keep;
      [[unroll]] for (uint j = 0u; j < kValue / 4u; ++j) sums[s * kValue / 4u + j] *= keep;
      [[unroll]] for (uint i = 0u; i < 4u; ++i) {
        bool seen = tile + i >= begin && tile + i < end;
        float e = seen ? exp_of(score[i * kShared + s] - larger) : 0.0;
        score[i * kShared + s] = e;
        weight[s] += e;
      }
    }
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      float by = kLatent != 0u ? scale_at((at[i] + p.w3) * 4u - 1u) : scale_at((at[i] + p.w2) * 4u - 1u);
      bool seen = tile + i >= begin && tile + i < end;
      [[unroll]] for (uint t = 0u; t < kValueTexels; ++t) {
        uvec4 q = imageLoad(P4, int(at[i] + (kLatent != 0u ? t : p.w3 + t)));
        [[unroll]] for (uint u = 0u; u < kNumbers / 4u; ++u) {
          vec4 value = four(q, u);
          if (kForm >= 3u) value *= by;
          [[unroll]] for (uint s = 0u; s < kShared; ++s) {
            uint j = s * kValue / 4u + t * (kNumbers / 4u) + u;
            vec4 sum = fma(vec4(score[i * kShared + s]), value, sums[j]);
            sums[j] = seen ? sum : sums[j];
          }
        }
      }
    }
  }
  [[unroll]] for (uint s = 0u; s < kShared; ++s)
    [[unroll]] for (uint j = 0u; j < kWidth; ++j)
      y[p.o + token * p.os + (head + s) * kWidth + j] = sums[s * kValue / 4u + j / 4u][j % 4u] / weight[s];
}
