// TQ1_0: 256 values in 54 bytes: 52 bytes of ternary digits, then d (F16). w = d * (q - 1).
// A byte is a fraction of 256 rounded up whose base-3 digits are the codes, the first the highest: 32 bytes of 5 digits (digit n of byte i
// is code 32 n + i), 16 bytes of 5 (160 + 16 n + i), 4 bytes of 4 (240 + 4 n + i).
#include <mekik/block_scheme.hpp>
#include "../common/ternary.hpp"

namespace {

using namespace mekik_blocks;

struct TQ1_0 {
  static constexpr const char *kName = "tq1_0", *kSummary = "GGUF TQ1_0: ternary values of 1.6 bits, an F16 scale for 256.";
  static constexpr std::uint32_t kElems = 256, kBytes = 54, kGroups = 1;
  static void form(mekik_form& form) { ternary_form(form, kElems); }
  static void unpack(const std::uint8_t* block, const mekik::blocks::Fields& out) {
    std::memcpy(out.scale, block + 52, 2);
    unpack_digits(block, out.codes);
  }
  static void decode(const std::uint8_t* block, float* out) {
    std::uint8_t codes[kElems];
    unpack_digits(block, codes);
    decode_ternary(load_f16(block + 52), codes, kElems, out);
  }
  static void encode(const float* x, const float* importance, std::uint8_t* block) {
    std::uint8_t codes[kElems];
    store_f16(block + 52, encode_ternary(x, importance, kElems, codes));
    std::size_t at = 0, first = 0;
    for (const Run& run : kRuns) {
      for (std::size_t i = 0; i < run.bytes; ++i) {
        unsigned value = 0;
        for (std::size_t n = 0; n < 5; ++n) value = 3 * value + (n < run.digits ? codes[first + run.bytes * n + i] : 0u);
        block[at + i] = static_cast<std::uint8_t>((value * 256 + 242) / 243);
      }
      at += run.bytes;
      first += run.bytes * run.digits;
    }
  }

 private:
  struct Run {
    std::size_t bytes, digits;
  };
  static constexpr Run kRuns[] = {{32, 5}, {16, 5}, {4, 4}};

  static void unpack_digits(const std::uint8_t* block, std::uint8_t* codes) {
    for (const Run& run : kRuns) {
      for (std::size_t i = 0; i < run.bytes; ++i) {
        std::uint8_t rest = block[i];
        for (std::size_t n = 0; n < run.digits; ++n, rest = static_cast<std::uint8_t>(rest * 3))
          codes[run.bytes * n + i] = static_cast<std::uint8_t>((rest * 3u) >> 8);
      }
      block += run.bytes;
      codes += run.bytes * run.digits;
    }
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.tq1_0", "1.0", mekik::blocks::block_scheme<TQ1_0>());
