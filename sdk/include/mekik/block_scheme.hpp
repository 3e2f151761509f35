// mekik/block_scheme.hpp - the scheme table of a block format: rows are blocks of a fixed number of values, one after the other.
//
// B says what one block is:
//   kName, kElems, kBytes, kSummary
//   form(mekik_form&)                         kind, bits, groups, numbers, zero
//   kGroups, kSupers                          scales and supers a block
//   unpack(block, Fields)                     codes, and the members that form() names, of one block
//   decode(block, float*)                     kElems values, as the format's own tool computes them
//   encode(const float*, const float*, block) kElems values; importance of each, or nullptr. Optional.
#pragma once
#include <mekik/plugin.hpp>

#include <array>
#include <cmath>
#include <cstddef>

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {
#endif
namespace blocks {

// Where the parts of one block go. Numbers wider than a byte are little-endian and may be unaligned.
struct Fields {
  std::uint8_t *codes, *scale, *super, *min, *super_min;
};

template <class B>
struct BlockScheme {
  static std::uint64_t row_bytes(const mekik_parts& parts) {
    if (parts.k % B::kElems != 0)
      throw Error{MEKIK_E_INVALID, label(only_part(parts)) + ": rows of " + std::to_string(parts.k) + " values are not a multiple of " +
                                       std::to_string(B::kElems) + ", the block of " + B::kName};
    return parts.k / B::kElems * B::kBytes;
  }

  static int claims(const mekik_parts* parts) {
    if (parts->n_parts != 1 || parts->parts[0].scheme == nullptr) return 0;
    return std::string_view{parts->parts[0].scheme} == B::kName ? 100 : 0;
  }

  static mekik_status describe(const mekik_parts* parts, mekik_form* out) {
    return guard([&] {
      check_size(*parts, row_bytes(*parts));
      *out = empty_form(*parts);
      B::form(*out);
    });
  }

  static void release(mekik_form*) {}

  static mekik_status rows(const mekik_parts* parts, const mekik_form* form, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1,
                           const mekik_form_rows* out) {
    return guard([&] {
      const std::uint64_t n_blocks = parts->k / B::kElems;
      const std::size_t scale = num_size(form->scale_num), super = num_size(form->super_num), min = num_size(form->min_num),
                        super_min = num_size(form->super_min_num);
      each_row(*parts, row_bytes(*parts), expert, n0, n1, [&](std::uint64_t row, const std::uint8_t* block) {
        std::uint64_t at = row * n_blocks;
        for (std::uint64_t b = 0; b < n_blocks; ++b, ++at, block += B::kBytes)
          B::unpack(block, {out->codes + at * B::kElems, member(out->scale, at * B::kGroups * scale), member(out->super, at * super),
                            member(out->min, at * B::kGroups * min), member(out->super_min, at * super_min)});
      });
    });
  }

  static mekik_status decode(const mekik_parts* parts, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, float* out) {
    return guard([&] {
      each_row(*parts, row_bytes(*parts), expert, n0, n1, [&](std::uint64_t row, const std::uint8_t* block) {
        float* to = out + row * parts->k;
        for (std::uint64_t k = 0; k < parts->k; k += B::kElems, block += B::kBytes) B::decode(block, to + k);
      });
    });
  }

  static mekik_status encode(const float* x, const float* importance, std::uint64_t n, std::uint64_t k, void* blocks, std::uint64_t bytes) {
    return guard([&] {
      std::uint64_t count = 0, need = 0;
      if (k % B::kElems != 0)
        throw Error{MEKIK_E_INVALID, "rows of " + std::to_string(k) + " values cannot be stored as " + B::kName + "; its blocks have " +
                                         std::to_string(B::kElems)};
      if (__builtin_mul_overflow(n, k / B::kElems, &count) || __builtin_mul_overflow(count, std::uint64_t{B::kBytes}, &need) ||
          need != bytes)
        throw Error{MEKIK_E_INVALID, std::to_string(bytes) + " bytes were given for " + std::to_string(n) + " rows of " +
                                         std::to_string(k) + " values as " + B::kName};
      auto* to = static_cast<std::uint8_t*>(blocks);
      for (std::uint64_t row = 0; row < n; ++row, x += k)
        for (std::uint64_t at = 0; at < k; at += B::kElems, to += B::kBytes) {
          check_finite(x + at, row, at, "is not a finite number");
          B::encode(x + at, importance != nullptr ? importance + at : nullptr, to);
          float back[B::kElems];
          B::decode(to, back);
          check_finite(back, row, at, "is too large: its scale cannot be stored");
        }
    });
  }

  static constexpr auto encoder() {
    if constexpr (requires(const float* x, std::uint8_t* block) { B::encode(x, x, block); }) return &encode;
    else return nullptr;
  }
  static constexpr mekik_scheme table{
      sizeof(mekik_scheme), B::kElems, B::kBytes, 0, nullptr, claims, describe, release, rows, decode, encoder(), nullptr, nullptr};
  static constexpr std::array<mekik_option, 0> options{};

 private:
  static void check_finite(const float* x, std::uint64_t row, std::uint64_t column, const char* why) {
    for (std::size_t i = 0; i < B::kElems; ++i)
      if (!std::isfinite(x[i]))
        throw Error{MEKIK_E_INVALID, "row " + std::to_string(row) + ", column " + std::to_string(column + i) + " cannot be stored as " +
                                         B::kName + ": it " + why};
  }
  static std::uint8_t* member(void* base, std::uint64_t offset) {
    return base != nullptr ? static_cast<std::uint8_t*>(base) + offset : nullptr;
  }
};

template <class B>
constexpr mekik_component block_scheme() {
  return component(MEKIK_KIND_SCHEME, B::kName, "1.0", B::kSummary, BlockScheme<B>::options, &BlockScheme<B>::table);
}

}  // namespace blocks
#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
