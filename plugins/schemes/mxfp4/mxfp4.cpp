// MXFP4. Checkpoints of several tensors: X_blocks U8 [experts][n][k / 32][16], two codes a byte, the first in the low half, and X_scales U8
// [experts][n][k / 32], exponents. w = 2^(e - 127) * table[code], 255 is NaN, code 8 is minus zero.
// MXFP4 of GGUF: 32 values in 17 bytes: an exponent (E8M0), then 4-bit codes, value i in the low and i + 16 in the high half of byte i.
// w = 2^(e - 128) * table[code] over the table of doubled E2M1. 255, NaN in the standard, is 2^127 here, as in ggml.
#include <mekik/block_scheme.hpp>
#include "../common/codebook.hpp"
#include "../common/either.hpp"
#include "../common/floats.hpp"
#include "../common/legacy.hpp"

namespace {

using namespace mekik_blocks;
using mekik::checkpoint::codebook;
using mekik::checkpoint::fill_nibbles;
using mekik::checkpoint::Part;
using mekik::checkpoint::table_fp4;
using mekik::checkpoint::Weight;
using mekik::checkpoint::wrong;

struct MXFP4 {
  static constexpr const char *kName = "mxfp4", *kSummary = "MXFP4, of GGUF and of checkpoints: 4-bit floats, a power of two for 32.";
  static constexpr std::uint32_t kElems = 32, kBytes = 17, kGroups = 1;
  static void form(mekik_form& form) { codebook_form(form, kFp4, kElems, MEKIK_E8M0_HALF); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    out.scale[0] = block[0];
    unpack_nibbles(block + 1, out.codes);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t codes[kElems];
    unpack_nibbles(block + 1, codes);
    decode_codebook(mekik::from_e8m0_half(block[0]), kFp4, codes, kElems, out);
  }
  // The largest value lies between 4 and 8 of the undoubled table, as in ggml.
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    const float largest = largest_magnitude(x, kElems);
    const int exponent = largest > 0 ? std::clamp(std::ilogb(largest) - 2 + 127, 0, 254) : 0;
    std::uint8_t codes[kElems];
    block[0] = encode_scaled(
        x, importance, kElems, exponent, 1, 254, [](int code) { return mekik::from_e8m0_half(static_cast<std::uint8_t>(code)); }, codes);
    pack_nibbles(codes, block + 1);
  }
};

struct Stacked {
  static constexpr const char* kSuffixes = "_blocks _scales";
  static constexpr std::uint32_t kElems = 32;
  enum { kBlocks, kScales };

  static int claims(const mekik_parts& parts) { return Part{parts, kBlocks} ? 100 : 0; }
  static const char* left_out(const mekik_parts&) { return ""; }

  static Weight inspect(const mekik_parts& parts) {
    const Part packed{parts, kBlocks}, scales{parts, kScales};
    packed.need_num({MEKIK_U8}, "U8");
    scales.need_num({MEKIK_U8, MEKIK_E8M0}, "U8");
    if (packed.rank() < 3 || packed.elements() == 0 || packed.size(packed.rank() - 1) != kElems / 2)
      wrong(packed.name() + " has shape " + packed.shape() + ", not [experts, n, k / 32, 16]");
    Weight w;
    const std::uint32_t last = packed.rank() - 1;
    w.rank = last;
    w.experts = last == 3 ? packed.size(0) : 1;
    w.n = packed.size(last - 2);
    w.k = packed.size(last - 1) * kElems;
    w.group = kElems;
    scales.need_shape({w.experts, w.n, w.k / kElems});
    codebook(w, table_fp4(), 4, 0.5f);
    w.scale_num = MEKIK_E8M0;
    return w;
  }

  static void fill(const Weight& w, const mekik_parts& parts, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1,
                   mekik::checkpoint::Numbers& out) {
    const std::uint64_t first = expert * w.n + n0;
    fill_nibbles(Part{parts, kBlocks}, first * w.k, out.codes);
    out.scale = Part{parts, kScales}.raw(first * (w.k / kElems), (n1 - n0) * (w.k / kElems));
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.mxfp4", "1.0", mekik::checkpoint::either_scheme<MXFP4, Stacked>());
