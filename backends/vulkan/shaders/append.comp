#version 450
// Stores a token's keys (a) and values (b), m heads of n and h numbers. Floats: a texel an invocation. Codes: a part an invocation; their
// numbers come multiplied by a Hadamard matrix (mekik/head_form.hpp has the plain definition).
layout(local_size_x = 32) in;
#include "common.glsl"
#include "numbers.glsl"
#include "state.glsl"

float number(uint token, uint head, bool value, uint j) {
  if (value) return j < p.h ? b[p.b + token * p.bs + head * p.h + j] : 0.0;
  return j < p.n ? a[p.a + token * p.as_ + head * p.n + j] : 0.0;
}

void store_floats(uint token, uint head, uint texel, uint to) {
  bool value = texel >= p.w3;
  uint j = (value ? texel - p.w3 : texel) * kNumbers;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    uint bits;
    if (kForm == 0u) bits = floatBitsToUint(number(token, head, value, j + i));
    else if (kForm == 1u) bits = to_f16(number(token, head, value, j + 2u * i)) | (to_f16(number(token, head, value, j + 2u * i + 1u)) << 16);
    else bits = to_bf16(number(token, head, value, j + 2u * i)) | (to_bf16(number(token, head, value, j + 2u * i + 1u)) << 16);
    pool[(to + texel) * 4u + i] = bits;
  }
}

void store_codes(uint token, uint head, bool value, uint to) {
  uint count = value ? p.h : p.n, texels = value ? p.w2 - p.w3 : p.w3;
  float least = number(token, head, value, 0u), most = least;
  bool poison = false;
  for (uint j = 0u; j < count; ++j) {
    float x = number(token, head, value, j);
    least = x < least ? x : least;
    most = x > most ? x : most;
    poison = poison || (floatBitsToUint(x) & 0x7F800000u) == 0x7F800000u;
  }
  bool fine = kForm == 3u, upper = most >= -least;
  float range = upper ? most : -least, top = fine ? 127.0 : 7.0, bottom = fine ? -127.0 : -8.0;
  // As BF16, upwards: no number is over the range of its codes.
  float scale = range > 0.0 ? uintBitsToFloat((floatBitsToUint(range / -bottom) + 0xFFFFu) & 0xFFFF0000u) : 0.0;
  poison = poison || (floatBitsToUint(scale) & 0x7F800000u) == 0x7F800000u;
  if (!fine && upper && scale != 0.0) scale = -scale;
  float by = scale != 0.0 ? scale : 1.0;
  uint each = fine ? 4u : 8u;
  for (uint w = 0u; w + 1u < texels * 4u; ++w) {
    uint bits = 0u;
    for (uint i = 0u; i < each; ++i) {
      uint j = w * each + i;
      float v = j < count && !poison ? number(token, head, value, j) / by : 0.0;
      v = v < bottom ? bottom : v > top ? top : v;
      bits |= (uint(int(roundEven(v))) & (fine ? 255u : 15u)) << (i * (fine ? 8u : 4u));
    }
    pool[to * 4u + w] = bits;
  }
  pool[to * 4u + texels * 4u - 1u] = poison ? 0x7FC00000u : floatBitsToUint(scale);
}

void main() {
  bool codes = kForm >= 3u;
  uint index = lane_index(), each = codes ? 2u : p.w2;
  if (index >= p.rows * p.m * each) return;
  uint list = index / each, i = index - list * each, token = list / p.m, head = list - token * p.m;
  uint seq = sequence_of(token), to = row_texel(seq, context_of(seq) + token - start_of(seq)) + head * p.w2;
  if (!codes) store_floats(token, head, i, to);
  else if (i == 0u || p.h != 0u) store_codes(token, head, i == 1u, to + (i == 1u ? p.w3 : 0u));
}
