// Forms (mekik_form): how stored weights become numbers. The decoder that every backend and scheme is tested against.
#pragma once
#include <mekik/plugin.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mekik::reference {

// What is wrong with a form; empty: nothing. Checks every count and number that decode_rows relies on. Thread: any.
std::string check_form(const mekik_form& form);

// Bytes of the arrays that hold `n_rows` rows (a whole number of group_n, or to the end) of one expert.
struct FormBytes {
  std::size_t codes, scale, super, min, super_min, zero, kept;
  std::size_t total() const;  // each array begins at a multiple of 8
};
FormBytes form_bytes(const mekik_form& form, std::uint64_t n_rows);
// Places the arrays one after another in `memory` of form_bytes(form, n_rows).total(); absent ones are NULL.
mekik_form_rows place_rows(const mekik_form& form, std::uint64_t n_rows, void* memory);

// Rows n0 .. n1 of an expert as F32, out [n1 - n0][k], inputs in their own order (k_perm undone, kept columns in place).
// `rows` holds the rows from `first` on, a multiple of group_n and not above n0. The form must have passed check_form and the
// codes check_codes. Arithmetic: mekik/plugin.h, each step rounded to F32. Thread: any.
void decode_rows(const mekik_form& form, const mekik_form_rows& rows, std::uint64_t expert, std::uint64_t first, std::uint64_t n0,
                 std::uint64_t n1, float* out);
// Codes above what the form's bits or table allow; empty: none.
std::string check_codes(const mekik_form& form, const mekik_form_rows& rows, std::uint64_t n_rows);

// A whole weight, as its rows() gave it. The form and its small arrays are copied, the rows are in memory of the caller.
class Weight {
 public:
  // form must have passed check_form; memory of bytes(form), aligned to 8.
  Weight(const mekik_form& form, void* memory);
  Weight(const Weight&) = delete;
  Weight& operator=(const Weight&) = delete;
  static std::size_t bytes(const mekik_form& form);
  const mekik_form& form() const { return form_; }
  mekik_form_rows expert(std::uint64_t e) const;                    // where its rows go, all n of them
  std::uint64_t n_rows() const { return form_.experts * form_.n; }  // of all experts, one after another
  std::uint64_t k() const { return form_.k; }
  void decode(std::uint64_t row0, std::uint64_t row1, float* out) const;  // rows of one expert or of several
  std::vector<float> decode_all() const;                                  // [experts][n][k]

 private:
  mekik_form form_;
  std::vector<float> table_, tensor_scale_;
  std::vector<std::uint32_t> k_perm_, kept_k_;
  std::byte* memory_;
  std::size_t expert_bytes_;
};

}  // namespace mekik::reference
