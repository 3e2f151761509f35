// Weights: from forms (mekik_form) to stripes (Matrix), and to plain vectors of floats.
#pragma once
#include <mekik/numbers.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "isa/kernels.hpp"

namespace mekik::cpu {

// A form that this backend cannot hold: the reason, or empty.
std::string why_not_packed(const mekik_form& form);

// Where everything lies in a stripe and which kernels may run it; data is set later. The form must have passed why_not_packed().
struct Layout {
  Matrix matrix;
  std::vector<std::uint32_t> kept;    // columns (of codes) that are floats
  std::vector<std::uint32_t> inputs;  // column j meets input inputs[j]; empty: as they come
  std::uint64_t bytes() const { return matrix.stripe_bytes * matrix.stripes; }
};
Layout make_layout(const mekik_form& form);

// Rows asked at once while packing, and the bytes of staging they need.
std::uint64_t panel_rows(const mekik_form& form);
std::uint64_t staging_bytes(const mekik_form& form);

// Buffers for the rows of one panel.
class Staging {
 public:
  Staging(const mekik_form& form, std::uint64_t rows);
  mekik_form_rows* get() { return &rows_; }

 private:
  std::vector<std::uint8_t> bytes_;
  mekik_form_rows rows_{};
};

// Writes rows n0 .. n1 (n0 a multiple of 16) into the stripes at `data`.
void pack_rows(const mekik_form& form, const Layout& layout, const mekik_form_rows& rows, std::uint64_t n0, std::uint64_t n1,
               std::uint8_t* data);
// Rows n0 .. n1 as floats, as the form says, to the bit: out [n1 - n0][k] in the order of inputs.
void decode_rows(const mekik_form& form, const mekik_form_rows& rows, std::uint64_t n0, std::uint64_t n1, float* out);

}  // namespace mekik::cpu
