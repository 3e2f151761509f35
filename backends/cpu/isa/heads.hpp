// How keys and values of one kv head lie in a block when they are integers (q8_head, q4_head: mekik/head_form.hpp). Level-free.
//   keys: [tokens / 16][units][16 tokens][4 bytes], then scales [tokens] (BF16)
//   values: [tokens / 4][value bytes][4 tokens], then the same
// where blocks are not multiples of 16 tokens, codes are [tokens][units][4] and [tokens][value bytes]. A byte is a code of 8 bits. Codes
// of 4 bits are stored with 8 added: byte 4u + j of a key holds numbers 8u + j (low) and 8u + 4 + j, and byte 16p + j of a value numbers
// 32p + j (low) and 32p + 16 + j.
#pragma once
#include <cstddef>
#include <cstdint>

namespace mekik::cpu {

struct HeadLayout {
  std::uint32_t bits = 0;  // 8 or 4; 0: numbers are floats
  std::uint32_t d = 0, dvp = 0, tokens = 0;
  bool lanes = true;

  static constexpr std::uint32_t padded(std::uint32_t n, std::uint32_t bits) {  // numbers of a value
    const std::uint32_t to = bits == 4 ? 32 : 16;
    return (n + to - 1) / to * to;
  }
  std::uint32_t units() const { return (d * bits + 31) / 32; }
  std::uint32_t key_bytes() const { return 4 * units(); }            // codes of one token
  std::uint32_t key_numbers() const { return 32 / bits * units(); }  // with padding
  std::uint32_t value_bytes() const { return dvp * bits / 8; }
  std::uint64_t key_scales() const { return std::uint64_t{tokens} * key_bytes(); }  // where they begin
  std::uint64_t value_scales() const { return std::uint64_t{tokens} * value_bytes(); }
  std::uint64_t scale_bytes() const { return std::uint64_t{2} * tokens; }
  std::size_t key_at(std::uint32_t t, std::uint32_t i) const {
    return lanes ? (static_cast<std::size_t>(t / 16) * units() + i / 4) * 64 + t % 16 * 4 + i % 4
                 : static_cast<std::size_t>(t) * key_bytes() + i;
  }
  std::size_t value_at(std::uint32_t t, std::uint32_t i) const {
    return lanes ? (static_cast<std::size_t>(t / 4) * value_bytes() + i) * 4 + t % 4 : static_cast<std::size_t>(t) * value_bytes() + i;
  }
  static std::uint8_t nibbles(int low, int high) { return static_cast<std::uint8_t>((low + 8) | (high + 8) << 4); }
  // Byte i of a token's key (value) from its codes, padded with zeros.
  std::uint8_t pack_key(const std::int8_t* codes, std::uint32_t i) const {
    if (bits == 8) return static_cast<std::uint8_t>(codes[i]);
    const std::uint32_t at = i / 4 * 8 + i % 4;
    return nibbles(codes[at], codes[at + 4]);
  }
  static std::uint8_t pack_value(std::uint32_t bits, const std::int8_t* codes, std::uint32_t i) {
    if (bits == 8) return static_cast<std::uint8_t>(codes[i]);
    const std::uint32_t at = i / 16 * 32 + i % 16;
    return nibbles(codes[at], codes[at + 16]);
  }
};

// Of latents, which are keys and values at once: a row is the latent's codes and those of its turned rest, as values are packed, then the
// scale of each.
struct LatentLayout {
  std::uint32_t bits = 0, dv = 0, rot = 0;
  std::uint32_t part(std::uint32_t n) const { return HeadLayout::padded(n, bits) * bits / 8; }
  std::uint32_t scales() const { return part(dv) + part(rot); }  // where they begin
  std::uint32_t bytes() const { return scales() + 4; }
};

}  // namespace mekik::cpu
