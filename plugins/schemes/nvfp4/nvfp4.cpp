// NVFP4 of GGUF: 64 values in 36 bytes: four scales (E4M3 without sign) for groups of 16, then 4-bit codes, of each group eight bytes with
// value i in the low and i + 8 in the high half of byte i. w = (scale / 2) * table[code] over the table of doubled E2M1.
// In ggml 0x7f, NaN in the standard, is zero; in the form the scales are therefore the F16 numbers that they stand for.
// Files made from checkpoints with a scale for each tensor keep it beside the blocks: X.scale, F32, one or one for each expert; a weight is
// its block's value times that.
#include <vector>

#include <mekik/block_scheme.hpp>
#include "../common/codebook.hpp"

namespace {

using namespace mekik_blocks;

// The top bit is not looked at, but 0xff is a number.
float half_scale(std::uint8_t bits) {
  if (bits == 0x7F) return 0;
  return bits == 0xFF ? 240.0f : 0.5f * mekik::from_ue4m3(bits);
}

struct NVFP4 {
  static constexpr const char *kName = "nvfp4", *kSummary = "GGUF NVFP4: 4-bit floats, an 8-bit float scale for 16.";
  static constexpr std::uint32_t kElems = 64, kBytes = 36, kGroups = 4, kGroup = 16;
  static void form(mekik_form& form) { codebook_form(form, kFp4, kGroup, MEKIK_F16); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    for (std::size_t g = 0; g < kGroups; ++g) store_f16(out.scale + 2 * g, half_scale(block[g]));
    unpack_codes(block + kGroups, out.codes);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t codes[kElems];
    unpack_codes(block + kGroups, codes);
    for (std::size_t g = 0; g < kGroups; ++g) decode_codebook(half_scale(block[g]), kFp4, codes + g * kGroup, kGroup, out + g * kGroup);
  }
  // The largest value of a group meets 6, as in ggml.
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    for (std::size_t g = 0; g < kGroups; ++g) {
      const float* from = x + g * kGroup;
      std::uint8_t codes[kGroup];
      block[g] = encode_scaled(
          from, importance != nullptr ? importance + g * kGroup : nullptr, kGroup, to_e4m3(largest_magnitude(from, kGroup) / 6.0f), 2, 0x7E,
          [](int code) { return half_scale(static_cast<std::uint8_t>(code)); }, codes);
      for (std::size_t i = 0; i < 8; ++i) block[kGroups + g * 8 + i] = static_cast<std::uint8_t>(codes[i] | (codes[i + 8] << 4));
    }
  }

 private:
  static void unpack_codes(const std::uint8_t* packed, std::uint8_t* codes) {
    for (std::size_t g = 0; g < kGroups; ++g)
      for (std::size_t i = 0; i < 8; ++i) {
        codes[g * kGroup + i] = packed[g * 8 + i] & 15u;
        codes[g * kGroup + i + 8] = packed[g * 8 + i] >> 4;
      }
  }
  // As ggml rounds: halves go up, and whatever reaches 256 becomes 448.
  static int to_e4m3(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const int exponent = static_cast<int>(bits >> 23) - 127 + 7;
    if (exponent <= 0) return std::min(static_cast<int>(x * 512.0f + 0.5f), 7);
    const int code = (exponent << 3) + static_cast<int>((bits >> 20) & 7u) + static_cast<int>((bits >> 19) & 1u);
    return exponent >= 15 || code >= 0x78 ? 0x7E : code;
  }
};

struct Scaled {
  using Blocks = mekik::blocks::BlockScheme<NVFP4>;

  static mekik_parts blocks_of(const mekik_parts& parts) {
    mekik_parts one = parts;
    one.n_parts = 1;
    return one;
  }
  static const mekik_part* scale_of(const mekik_parts& parts) {
    if (parts.n_parts < 2) return nullptr;
    const auto* part = reinterpret_cast<const mekik_part*>(reinterpret_cast<const char*>(parts.parts) + parts.part_size);
    return part->name != nullptr ? part : nullptr;
  }
  // One number, or one for each expert. Only where there is a scale.
  static std::vector<float> read_scales(const mekik_parts& parts) {
    const mekik_part& part = *scale_of(parts);
    const std::uint64_t count = part.bytes / sizeof(float), rows = parts.experts * parts.n;
    if (part.scheme != nullptr || part.num != MEKIK_F32 || count == 0 || part.bytes % sizeof(float) != 0 || rows % count != 0)
      throw mekik::Error{MEKIK_E_INVALID, mekik::blocks::label(part) + ": is not one F32 number, or one for each expert"};
    std::vector<float> scales(count);
    if (const mekik_status status = parts.read(parts.self, 1, 0, scales.data(), part.bytes); status != MEKIK_OK)
      throw mekik::HostFailed{status};
    return scales;
  }

  static int claims(const mekik_parts* parts) {
    const mekik_parts one = blocks_of(*parts);
    return Blocks::claims(&one);
  }
  static mekik_status describe(const mekik_parts* parts, mekik_form* out) {
    const mekik_parts one = blocks_of(*parts);
    if (const mekik_status status = Blocks::describe(&one, out); status != MEKIK_OK || scale_of(*parts) == nullptr) return status;
    return mekik::guard([&] {
      const std::vector<float> scales = read_scales(*parts);
      if (scales.size() != 1 && scales.size() != parts->experts)
        throw mekik::Error{MEKIK_E_UNSUPPORTED, "its " + std::to_string(scales.size()) + " scales are of matrices that are taken as one"};
      auto kept = std::make_unique<float[]>(parts->experts);
      for (std::uint64_t e = 0; e < parts->experts; ++e) kept[e] = scales[scales.size() == 1 ? 0 : e];
      out->tensor_scale = kept.get();
      out->owner = kept.release();
    });
  }
  static void release(mekik_form* form) { delete[] static_cast<float*>(form->owner); }
  static mekik_status rows(const mekik_parts* parts, const mekik_form* form, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1,
                           const mekik_form_rows* out) {
    const mekik_parts one = blocks_of(*parts);
    return Blocks::rows(&one, form, expert, n0, n1, out);
  }
  static mekik_status decode(const mekik_parts* parts, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, float* out) {
    const mekik_parts one = blocks_of(*parts);
    if (const mekik_status status = Blocks::decode(&one, expert, n0, n1, out); status != MEKIK_OK || scale_of(*parts) == nullptr)
      return status;
    return mekik::guard([&] {
      const std::vector<float> scales = read_scales(*parts);
      const std::uint64_t each = parts->experts * parts->n / scales.size();  // rows under one scale
      for (std::uint64_t row = expert * parts->n + n0; row < expert * parts->n + n1; ++row)
        for (std::uint64_t k = 0; k < parts->k; ++k, ++out) *out *= scales[row / each];
    });
  }
  static mekik_status shape(const mekik_parts* parts, std::int64_t* shape, std::uint32_t* rank) {
    const mekik_part& blocks = parts->parts[0];
    *rank = blocks.rank;
    std::copy(blocks.shape, blocks.shape + blocks.rank, shape);
    return MEKIK_OK;
  }

  static constexpr mekik_scheme table{
      sizeof(mekik_scheme), NVFP4::kElems, NVFP4::kBytes, 0, "weight scale? input_scale!", claims, describe, release, rows, decode,
      Blocks::table.encode, shape,         nullptr};
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.nvfp4", "1.0",
             mekik::component(MEKIK_KIND_SCHEME, NVFP4::kName, "1.0", NVFP4::kSummary, Scaled::Blocks::options, &Scaled::table));
