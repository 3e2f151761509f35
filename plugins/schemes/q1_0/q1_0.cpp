// Q1_0: 128 values in 18 bytes: d (F16), then a bit a value in their order, the lowest first. w = d or -d.
#include <mekik/block_scheme.hpp>
#include "../common/codebook.hpp"

namespace {

using namespace mekik_blocks;

constexpr float kSigns[2] = {-1, 1};

struct Q1_0 {
  static constexpr const char *kName = "q1_0", *kSummary = "GGUF Q1_0: one bit a value, an F16 scale for 128.";
  static constexpr std::uint32_t kElems = 128, kBytes = 18, kGroups = 1;
  static void form(mekik_form& form) {
    codebook_form(form, kSigns, kElems, MEKIK_F16);
    form.bits = 1;
    form.n_table = 2;
  }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    std::memcpy(out.scale, block, 2);
    unpack_bits(block + 2, out.codes);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t codes[kElems];
    unpack_bits(block + 2, codes);
    decode_codebook(load_f16(block), kSigns, codes, kElems, out);
  }
  // The mean magnitude, which errs least; with importance the weighted one.
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    float sum = 0, weights = importance != nullptr ? 0 : static_cast<float>(kElems);
    for (std::size_t i = 0; i < kElems; ++i) {
      sum += importance != nullptr ? importance[i] * std::fabs(x[i]) : std::fabs(x[i]);
      if (importance != nullptr) weights += importance[i];
    }
    store_f16(block, weights > 0 ? sum / weights : 0.0f);
    std::memset(block + 2, 0, kElems / 8);
    for (std::size_t i = 0; i < kElems; ++i) block[2 + i / 8] |= static_cast<std::uint8_t>((x[i] >= 0 ? 1u : 0u) << (i % 8));
  }

 private:
  static void unpack_bits(const std::uint8_t* packed, std::uint8_t* codes) {
    for (std::size_t i = 0; i < kElems; ++i) codes[i] = (packed[i / 8] >> (i % 8)) & 1u;
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.q1_0", "1.0", mekik::blocks::block_scheme<Q1_0>());
