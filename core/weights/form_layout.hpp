// Where the members of a form's rows lie, and plain work on them: sizes, offsets, copies, comparison.
#pragma once
#include <mekik/plugin.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mekik::weights {

// One member of mekik_form_rows: bytes for each row of codes, or for each row of groups.
struct Member {
  std::size_t row_bytes = 0;  // 0: absent
  bool grouped = false;       // a row for each group_n rows
};

// The layout of a form over `k` columns, in the order codes, scale, super, min, super_min, zero, kept.
struct FormLayout {
  explicit FormLayout(const mekik_form& form);
  static constexpr std::size_t kMembers = 7;
  Member members[kMembers];
  std::uint64_t group_n;
  std::size_t bytes(std::uint64_t rows) const;  // of all members for so many rows
};

// The members of rows as an array in the order of FormLayout, and back.
struct MemberPointers {
  std::uint8_t* at[FormLayout::kMembers];
  explicit MemberPointers(const mekik_form_rows& rows);
  mekik_form_rows rows() const;
};

// Memory for some rows of a form.
class FormBuffer {
 public:
  FormBuffer(const FormLayout& layout, std::uint64_t rows);
  const mekik_form_rows& rows() const { return rows_; }
  mekik_form_rows& rows() { return rows_; }

 private:
  std::vector<std::uint8_t> memory_;
  mekik_form_rows rows_{};
};

// Whether rows of two forms can stand in one tensor: everything equal but experts, n and the scales of whole tensors.
bool same_form(const mekik_form& a, const mekik_form& b);
// Whether columns from .. to can be cut out of a form without touching a value: they fall on the edges of groups and supers.
bool can_cut(const mekik_form& form, std::uint64_t from, std::uint64_t to);

void convert_floats(const float* from, std::size_t count, std::uint32_t num, void* to);  // to F32, F16 or BF16, to nearest even

}  // namespace mekik::weights
