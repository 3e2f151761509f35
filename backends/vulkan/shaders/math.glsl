// Elementary functions of one's own, since a driver's have errors and bits of their own. Polynomials: exp and tanh from Cephes (Moshier),
// erf by N. Juffa; errors of a few units in the last place.

// Below -87.3 the result is 0, above 88.7 infinity; NaN stays NaN.
float exp_of(float x) {
  float v = x > 88.72283 ? 88.72283 : x < -87.33654 ? -87.33654 : x;
  float f = floor(fma(v, 1.44269504, 0.5));
  int n = int(f);
  float r = fma(f, -0.693359375, v);
  r = fma(f, 2.12194440e-4, r);
  float q = 1.9875691500e-4;
  q = fma(q, r, 1.3981999507e-3);
  q = fma(q, r, 8.3334519073e-3);
  q = fma(q, r, 4.1665795894e-2);
  q = fma(q, r, 1.6666665459e-1);
  q = fma(q, r, 5.0000001201e-1);
  q = fma(r * r, q, r) + 1.0;
  // 2^n in two steps: n reaches 128.
  int n0 = n >> 1;
  q = q * intBitsToFloat((n0 + 127) << 23) * intBitsToFloat((n - n0 + 127) << 23);
  q = x < -87.33654 ? 0.0 : x > 88.72283 ? uintBitsToFloat(0x7F800000u) : q;
  return is_nan(x) ? x : q;
}
float with_sign_of(float magnitude, float s) {
  return uintBitsToFloat((floatBitsToUint(magnitude) & 0x7FFFFFFFu) | (floatBitsToUint(s) & 0x80000000u));
}
float tanh_of(float x) {
  float t = abs(x);
  float large = 1.0 - 2.0 / (exp_of(t + t) + 1.0);
  float z = x * x;
  float q = -5.70498872745e-3;
  q = fma(q, z, 2.06390887954e-2);
  q = fma(q, z, -5.37397155531e-2);
  q = fma(q, z, 1.33314422036e-1);
  q = fma(q, z, -3.33332819422e-1);
  float small_one = fma(q * z, x, x);
  return t < 0.625 ? small_one : with_sign_of(large, x);
}
float sigmoid_of(float x) { return 1.0 / (1.0 + exp_of(-x)); }
float erf_of(float x) {
  float t = abs(x), s = x * x;
  float r = fma(-1.72853470e-5, t, 3.83197126e-4);
  float u = fma(-3.88396438e-3, t, 2.42546219e-2);
  r = fma(r, s, u);
  r = fma(r, t, -1.06777877e-1);
  r = fma(r, t, -6.34846687e-1);
  r = fma(r, t, -1.28717512e-1);
  r = fma(r, t, -t);
  float large = with_sign_of(1.0 - exp_of(r), x);
  float q = -5.96761703e-4;
  q = fma(q, s, 4.99119423e-3);
  q = fma(q, s, -2.67681349e-2);
  q = fma(q, s, 1.12819925e-1);
  q = fma(q, s, -3.76125336e-1);
  q = fma(q, s, 1.28379166e-1);
  return t > 0.927734375 ? large : fma(q, x, x);
}
// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)), the logarithm as 2 artanh(u / (2 + u)).
float softplus_of(float x) {
  float u = exp_of(-abs(x));
  float z = u / (2.0 + u), q = z * z;
  float r = 1.0 / 15.0;
  r = fma(r, q, 1.0 / 13.0);
  r = fma(r, q, 1.0 / 11.0);
  r = fma(r, q, 1.0 / 9.0);
  r = fma(r, q, 1.0 / 7.0);
  r = fma(r, q, 1.0 / 5.0);
  r = fma(r, q, 1.0 / 3.0);
  r = fma(r * q, z, z);
  return (x > 0.0 ? x : x < 0.0 ? 0.0 : x) + (r + r);
}
float activate(uint kind, float x) {
  switch (kind) {
    case 1u: return x / (1.0 + exp_of(-x));
    case 2u: return 0.5 * x * (1.0 + erf_of(x * 0.70710678));
    case 3u: return 0.5 * x * (1.0 + tanh_of(0.79788456 * fma(0.044715, x * x * x, x)));
    case 4u: return x / (1.0 + exp_of(-1.702 * x));
    case 5u: return x < 0.0 ? 0.0 : x;
    case 6u: return x < 0.0 ? 0.0 : x * x;
    case 7u: return sigmoid_of(x);
    case 8u: return tanh_of(x);
    case 9u: return softplus_of(x);
    case 10u: return sqrt(x);
    case 11u: return exp_of(x);
    default: return x;
  }
}
