// Codes of four bits into a table of sixteen integers: what IQ4_NL, IQ4_XS, MXFP4 and NVFP4 share.
#pragma once
#include <mekik/plugin.h>

#include <cmath>

#include "numbers.hpp"
#include "search.hpp"

namespace mekik_blocks {

inline constexpr std::size_t kEntries = 16;
// E2M1 times two. Code 8 is minus zero in the standard, and plus zero in ggml.
inline constexpr float kFp4[kEntries] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
// ggml's non-linear four bits, denser around zero.
inline constexpr float kIq4[kEntries] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

inline void codebook_form(mekik_form& form, const float* table, std::uint32_t group, std::uint32_t scale_num) {
  form.kind = MEKIK_FORM_CODEBOOK;
  form.bits = 4;
  form.group_k = group;
  form.scale_num = scale_num;
  form.n_table = kEntries;
  form.table = table;
  form.table_unit = 1;
}

inline void decode_codebook(float d, const float* table, const std::uint8_t* codes, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = d * table[codes[i]];
}

// The entry whose value under d is nearest to x, the first of equals.
inline std::uint8_t nearest_entry(const float* table, float d, float x) {
  std::size_t best = 0;
  float least = std::fabs(table[0] * d - x);
  for (std::size_t i = 1; i < kEntries; ++i) {
    const float error = std::fabs(table[i] * d - x);
    if (!(error < least)) continue;
    least = error;
    best = i;
  }
  return static_cast<std::uint8_t>(best);
}

// Codes of n values under d; returns the squared error, weighted where there are weights.
inline double encode_entries(const float* table, float d, const float* x, const float* w, std::size_t n, std::uint8_t* codes) {
  double error = 0;
  for (std::size_t i = 0; i < n; ++i) {
    codes[i] = nearest_entry(table, d, x[i]);
    const double miss = static_cast<double>(d) * table[codes[i]] - x[i];
    error += (w != nullptr ? w[i] : 1.0f) * miss * miss;
  }
  return error;
}

inline float largest_magnitude(const float* x, std::size_t n) {
  float largest = 0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest;
}

// Scales that are themselves codes (E8M0, E4M3): `first` is where ggml starts, and ends; with importance its neighbours are tried, too.
// Returns the code whose value under scale(code) errs least; `codes` are those of the values under it.
template <class Scale>
std::uint8_t encode_scaled(const float* x, const float* importance, std::size_t n, int first, int reach, int last, Scale&& scale,
                           std::uint8_t* codes) {
  if (importance == nullptr) {
    encode_entries(kFp4, scale(first), x, nullptr, n, codes);
    return static_cast<std::uint8_t>(first);
  }
  int best = first;
  double least = INFINITY;
  for (int code = std::max(first - reach, 0); code <= std::min(first + reach, last); ++code) {
    const double error = encode_entries(kFp4, scale(code), x, importance, n, codes);
    if (!(error < least)) continue;
    least = error;
    best = code;
  }
  encode_entries(kFp4, scale(best), x, importance, n, codes);
  return static_cast<std::uint8_t>(best);
}

}  // namespace mekik_blocks
