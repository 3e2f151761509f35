// Numbers as they are stored, rounded to nearest even in integers: the same bits on every device.
uint to_f16(float value) {
  uint all = floatBitsToUint(value), sign = (all >> 16) & 0x8000u, x = all & 0x7FFFFFFFu;
  if (x > 0x7F800000u) return sign | 0x7E00u | ((x >> 13) & 0x3FFu);
  if (x >= 0x477FF000u) return sign | 0x7C00u;
  // Below 2^-14: adding 0.5, whose unit in the last place is 2^-24, rounds to the subnormal's unit.
  if (x < 0x38800000u) return sign | (floatBitsToUint(uintBitsToFloat(x) + 0.5) - 0x3F000000u);
  x += 0xFFFu + ((x >> 13) & 1u);
  return sign | ((x - 0x38000000u) >> 13);
}
float from_f16(uint h) { return unpackHalf2x16(h & 0xFFFFu).x; }
uint to_bf16(float value) {
  uint x = floatBitsToUint(value);
  if ((x & 0x7FFFFFFFu) > 0x7F800000u) return (x >> 16) | 0x40u;
  return (x + 0x7FFFu + ((x >> 16) & 1u)) >> 16;
}
float from_bf16(uint h) { return uintBitsToFloat(h << 16); }
// num: 1 F32, 2 F16, 3 BF16 (mekik_num)
float round_num(uint num, float x) {
  if (num == 2u) return from_f16(to_f16(x));
  if (num == 3u) return from_bf16(to_bf16(x));
  return x;
}
