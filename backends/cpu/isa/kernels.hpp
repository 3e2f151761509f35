// The border between the backend and its kernels: plain structs, and one table of functions per instruction set. The kernel files are
// compiled once per level; everything here is level-free.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>

#include "isa/heads.hpp"

namespace mekik::cpu {

inline constexpr std::uint32_t kLanes = 16;  // output rows of a stripe
inline constexpr std::uint32_t kBlock = 32;  // k of one activation scale and of one block of codes
inline constexpr std::uint32_t kTile = 64;   // positions of one attention tile

// How the codes of a stripe block (16 rows x 32 k, as 8 vectors of 64 bytes: lane r, 4 consecutive k) are stored:
//   b4: 4 vectors, vector i = group 2i in the low nibbles, 2i + 1 in the high ones      256 bytes
//   b2: 2 vectors, vector i = groups 4i .. 4i + 3 from the low bits up                  128
//   b1: 1 vector, bit g = group g                                                        64
//   b3 = b2 then b1 (bit 2), b5 = b4 then b1 (bit 4), b6 = b4 then b2 (bits 4 and 5), b8: 8 vectors, code - 128 as signed bytes
//   t1u, t3u, t3s, t4u, t4s: as b1, b3, b4; the code indexes a table of integers: unsigned below 32 (table value - its least), or signed
enum class Codes : std::uint8_t { b1, b2, b3, b4, b5, b6, b8, t1u, t3u, t3s, t4u, t4s, kCount };
constexpr Codes stored_as(Codes c) {  // without the table
  return c == Codes::t1u ? Codes::b1 : c == Codes::t3u || c == Codes::t3s ? Codes::b3 : c == Codes::t4u || c == Codes::t4s ? Codes::b4 : c;
}
constexpr std::uint32_t block_bytes(Codes c) {
  constexpr std::uint32_t bytes[] = {64, 128, 192, 256, 320, 384, 512};
  return bytes[static_cast<unsigned>(stored_as(c))];
}

// How scales and floats are held. e8m0: 2^(x - 127), 255 is NaN; e8m0_half: 2^(x - 128).
enum class Num : std::uint8_t { none, f32, f16, bf16, i8, u8, e8m0, e8m0_half };
constexpr std::uint32_t num_bytes(Num n) {
  constexpr std::uint32_t bytes[] = {0, 4, 2, 2, 1, 1, 1, 1};
  return bytes[static_cast<unsigned>(n)];
}

// A matrix [n][k] in stripes of 16 rows, each stripe contiguous: codes of all blocks, then per group (of group_k columns) 16 scales,
// 16 mins, 16 zero points, per super-group 16 supers and super mins, then kept columns. Or floats: [k][16] of `number`.
struct Matrix {
  const std::uint8_t* data = nullptr;
  std::uint64_t stripe_bytes = 0;
  std::uint64_t off_scale = 0, off_min = 0, off_zero = 0, off_super = 0, off_super_min = 0, off_kept = 0;
  std::uint32_t n = 0, k = 0, stripes = 0, blocks = 0, groups = 0, supers = 0;
  std::uint32_t group_k = 0, groups_per_super = 0;                           // group_k: k rounded up to 32 when one group covers all
  bool floats = false, codebook = false, has_zero = false, integer = false;  // integer: the int8 kernels can run it
  Codes codes = Codes::b4;
  Num number = Num::none;  // of floats
  Num scale = Num::none, super = Num::none, min = Num::none, super_min = Num::none;
  Num round = Num::none;              // decode() rounds to it
  std::int32_t zero = 0;              // of the codes as stored: b8 counts from -128
  std::uint8_t table_codes[16] = {};  // t1u to t4s
  float table[256] = {};              // codebook values by code
  bool e4m3 = false;                  // the table is that of E4M3
  float tensor_scale = 1.0F;
  bool has_tensor_scale = false;
  float act_outlier = std::numeric_limits<float>::infinity();  // activations that large take two digits
  float post = 1.0F;                    // what the int8 kernels' result is multiplied by: table unit and tensor scale
  const std::uint32_t* kept = nullptr;  // [n_kept] columns (of codes) that are floats
  std::uint32_t n_kept = 0;
};

// Rows of activations as integers, 32 absolute k under one scale d = amax / (127 * 128). The integer is 128 * high + low, two digits of
// 8 bits;
// where a row is smooth, one digit is enough and the low ones are zero. Per row: q[nb][2][32] digits, high ones first, d[nb] scales, s[nb]
// sums of the integers, ds[nb] = d * s, s16[2 nb] and ds16[2 nb] the same of 16; and for all rows two[nb][rows], which blocks have two
// digits.
inline constexpr int kDigit = 7;
struct Acts {
  std::int8_t* q = nullptr;
  std::uint8_t* two = nullptr;
  float *d = nullptr, *ds = nullptr, *ds16 = nullptr;
  std::int32_t *s = nullptr, *s16 = nullptr;
  std::uint32_t nb = 0, rows = 0;
  float outlier = std::numeric_limits<float>::infinity();  // quantise(): blocks that reach it have two digits

  static constexpr std::uint64_t bytes(std::uint64_t nb, std::uint64_t rows) { return rows * nb * (2 * kBlock + 1 + 4 * 7); }
  // On `at`, aligned to 64 bytes.
  Acts(std::uint8_t* at, std::uint32_t blocks, std::uint32_t n_rows) : nb{blocks}, rows{n_rows} {
    const std::size_t n = static_cast<std::size_t>(nb) * rows;
    q = reinterpret_cast<std::int8_t*>(at);
    d = reinterpret_cast<float*>(q + n * 2 * kBlock);
    ds = d + n;
    ds16 = ds + n;
    s = reinterpret_cast<std::int32_t*>(ds16 + 2 * n);
    s16 = s + n;
    two = reinterpret_cast<std::uint8_t*>(s16 + 2 * n);
  }
  Acts row(std::size_t m) const {
    Acts a = *this;
    a.q += m * nb * 2 * kBlock;
    a.two += m;
    a.d += m * nb;
    a.ds += m * nb;
    a.ds16 += 2 * m * nb;
    a.s += m * nb;
    a.s16 += 2 * m * nb;
    return a;
  }
};

// Adds stripe x columns m0 .. m1 into acc [m - m0][16], blocks b0 .. b1; ascending k, one chain of fma per output.
using IntGemm = void (*)(const Matrix&, const std::uint8_t* stripe, const Acts&, std::uint32_t m0, std::uint32_t m1, std::uint32_t b0,
                         std::uint32_t b1, float* acc);

// The work of attention for rows row0 .. row1 of one sequence and one kv head.
struct Attention {
  const float* q = nullptr;  // row `row` (counted from the sequence's first), head h at q + row * q_stride + h * d
  float* out = nullptr;      // likewise with out_stride and dv
  std::size_t q_stride = 0, out_stride = 0;
  std::uint32_t row0 = 0, row1 = 0, context = 0, length = 0;   // row r is position context + r; length: stored positions after the step
  std::uint32_t head0 = 0, heads = 0, d = 0, dv = 0, dvp = 0;  // heads of this kv head; dvp: dv rounded up to 16
  bool causal = true, near = false;                            // near: windows and slopes count distances, to both sides
  std::uint64_t window = 0, chunk = 0;
  float scale = 1, softcap = 0;
  const float *sinks = nullptr, *slopes = nullptr;  // by head
  Num kv = Num::f16;
  // Where K and V of this layer and kv head lie: base + block * block_bytes + k_off (v_off), block ids in table[position / block_tokens].
  const std::uint8_t* base = nullptr;
  const std::int32_t* table = nullptr;
  std::uint64_t block_bytes = 0, k_off = 0, v_off = 0;
  std::uint32_t block_tokens = 0;
  bool lanes = true;     // K [tokens / 16][d][16], else [tokens][d]; V is [tokens][dvp]
  HeadLayout codes;      // K and V are integers instead
  LatentLayout latents;  // latents are
  bool exact = false;    // queries and weights stay floats beside them
  // Latents: a row [dvp] of V is dv numbers of the latent, then rot turned ones, then zeros, and all of it is the key. q has dv numbers.
  const float* q_rot = nullptr;  // the turned rest of a query, likewise with q_rot_stride and rot
  std::size_t q_rot_stride = 0;
  std::uint32_t rot = 0;
  float* scratch = nullptr;
};
inline constexpr std::uint32_t kAttentionVectors = 24;  // (row, head) pairs in one call
constexpr std::size_t attention_scratch_floats(std::uint32_t d, std::uint32_t dvp) {
  return static_cast<std::size_t>(kAttentionVectors) * (d + dvp + kTile) + static_cast<std::size_t>(kTile) * (d + dvp) + 64;
}
// Of integers: queries and weights as integers, too, and tiles that are gathered or decoded.
constexpr std::size_t head_attention_scratch_floats(std::uint32_t d, std::uint32_t dvp) {
  const std::uint32_t dp = HeadLayout::padded(d, 4), vp = HeadLayout::padded(dvp, 4);
  return attention_scratch_floats(dp, vp) + static_cast<std::size_t>(kAttentionVectors) * (dp + kTile) / 2 + 2 * (dp + vp) + 256;
}

// One block of a recurrent state, of at most 64 channels in lanes, over some tokens; token t's numbers lie t strides further. Each token's
// state is stored, so that where a step is cut changes nothing.
inline constexpr std::uint32_t kScanLanes = 64;

// Gated delta rule: state [dk][width], width a multiple of 16 from which `columns` are used.
//   s_i *= decay_i;  d = (v - sum_i s_i k_i) * beta;  s_i += k_i d;  y = scale * sum_i s_i q_i
struct Delta {
  float* state = nullptr;
  std::uint32_t dk = 0, width = 0, columns = 0, tokens = 0;
  const float *q = nullptr, *k = nullptr, *v = nullptr, *decay = nullptr, *beta = nullptr;  // of this head; decay is a logarithm
  std::size_t q_stride = 0, k_stride = 0, v_stride = 0, decay_stride = 0, beta_stride = 0, y_stride = 0;
  bool decay_by_row = false;  // decay [dk] instead of one number
  float scale = 1;
  float *y = nullptr, *scratch = nullptr;
};
constexpr std::size_t delta_scratch_floats(std::uint32_t dk) {  // a state, and the decays and keys of two tokens
  return static_cast<std::size_t>(dk) * kScanLanes + 4 * ((static_cast<std::size_t>(dk) + 15) / 16 * 16);
}

// Selective scan: state [n][width]. s_j = s_j * exp(dt A_j) + b_j (dt x);  y = sum_j s_j c_j + D x
struct Scan {
  float* state = nullptr;
  std::uint32_t n = 0, width = 0, columns = 0, tokens = 0;
  std::uint32_t head0 = 0, channel0 = 0, per_head = 1;  // lane l is channel (channel0 + l) of head head0 + (channel0 + l) / per_head
  const float *x = nullptr, *dt = nullptr, *b = nullptr, *c = nullptr;  // x of lane 0; dt of all heads; b and c of the lanes' group
  std::size_t x_stride = 0, dt_stride = 0, b_stride = 0, c_stride = 0, y_stride = 0;
  const float *a = nullptr, *d = nullptr;  // by head, or a [n][heads]
  std::uint32_t a_stride = 0;              // heads, where a has columns; else 0
  float *y = nullptr, *scratch = nullptr;
};
constexpr std::size_t scan_scratch_floats(std::uint32_t n) {  // a state, and A by lane
  return 2 * static_cast<std::size_t>(n + 1) * kScanLanes;
}

struct Kernels {
  const char* name;
  void (*quantise)(const float* x, std::uint32_t k, const Acts& row);  // one row, of Acts::row()
  IntGemm (*int_gemm)(const Matrix&);                                  // nullptr: the form has no integer kernel
  // Columns k0 .. k1 (k0 a multiple of 32) of a stripe as floats, exactly as the form decodes: out [k1 - k0][16].
  void (*decode)(const Matrix&, const std::uint8_t* stripe, std::uint32_t k0, std::uint32_t k1, float* out);
  // acc [m][lda] += x [m][ldx] times w [n][16 at stride ws elements of num]; ascending n, one chain per output.
  void (*mac)(Num, const void* w, std::size_t ws, std::uint32_t n, const float* x, std::size_t ldx, std::uint32_t m, float* acc,
              std::size_t lda);
  void (*attention)(const Attention&);
  void (*latent)(const Attention&);
  // Keys and values as integers (mekik/head_form.hpp): x [n] is turned in place; codes [n rounded up to 16], and their scale.
  void (*turn)(float* x, std::uint32_t n);
  std::uint16_t (*encode_head)(std::uint32_t bits, const float* x, std::uint32_t n, std::int8_t* codes);
  void (*delta)(const Delta&);
  void (*scan)(const Scan&);
  // y [n] = act(bias + sum over taps of x[i][n] * w[i][n]), rows of w at stride ws; ascending i. bias may be nullptr.
  void (*conv)(const float* const* x, const float* w, std::size_t ws, std::uint32_t taps, const float* bias, int kind, std::uint32_t n,
               float* y);
  // Rows; y may be x.
  void (*rms_norm)(const float* x, const float* w, std::uint32_t n, float eps, float* y);
  void (*layer_norm)(const float* x, const float* w, const float* b, std::uint32_t n, float eps, float* y);
  void (*l2_norm)(const float* x, std::uint32_t n, float eps, float* y);
  float (*mean)(const float* x, std::uint32_t n);
  void (*softmax)(const float* x, std::uint32_t n, float* y);
  void (*act)(int kind, const float* x, std::uint32_t n, float* y);
  void (*glu)(int kind, const float* g, const float* u, std::uint32_t n, float limit, float alpha, float* y);
  void (*softcap)(const float* x, std::uint32_t n, float c, float* y);
  void (*add)(const float* a, const float* b, bool scalar, std::uint32_t n, float* y);
  void (*mul)(const float* a, const float* b, bool scalar, std::uint32_t n, float* y);
  void (*scale)(const float* x, std::uint32_t n, float a, float b, float* y);  // b 0: no addition
  void (*clamp)(const float* x, std::uint32_t n, float low, float high, float* y);
  void (*rope)(const float* x, std::uint32_t d, const float* cos, const float* sin, std::uint32_t dim, int pairs, float* y);  // one head
  void (*cast)(Num, const float* x, std::uint32_t n, void* y);  // to f32, f16 or bf16, to nearest even
  // What a core can do at most: kProductsARound products of F32 a round, four times as many of 8-bit integers; and reading.
  void (*f32_products)(std::uint64_t rounds);
  void (*int8_products)(std::uint64_t rounds);
  void (*read)(const std::uint8_t* data, std::uint64_t bytes);  // a multiple of 256
};
inline constexpr std::uint32_t kProductsARound = 12 * 16;

const Kernels& portable_kernels();
#if defined(__x86_64__)
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
#endif

}  // namespace mekik::cpu
