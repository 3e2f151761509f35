// The scheme table of a format of several tensors, from what the format says of one weight.
//
// S says:
//   kName, kSummary, kSuffixes
//   claims(const mekik_parts&)                 0 no ... 100 certain
//   inspect(const mekik_parts&)                a Weight: everything but the numbers
//   fill(const Weight&, const mekik_parts&, expert, n0, n1, Numbers&)   rows of it, columns as they are stored
//   left_out(const mekik_parts&)               what of the checkpoint is not used; ""
#pragma once
#include "checkpoint.hpp"

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {
#endif
namespace checkpoint {

struct Weight {
  std::uint64_t experts = 1, n = 0, k = 0;
  std::uint32_t rank = 2;  // 3: [experts][n][k], even of one expert
  std::uint32_t kind = MEKIK_FORM_AFFINE, bits = 4;
  std::uint64_t group = 0;      // columns under one scale
  std::uint32_t scale_num = 0;  // of Numbers::scale
  bool zeros = false;           // Numbers::zero is filled; else `zero` counts
  std::int32_t zero = 0;
  std::uint32_t round = 0;          // what a weight is rounded to
  std::vector<float> table;         // of a codebook
  float table_unit = 0;             // its entries are this times whole numbers
  std::vector<float> tensor_scale;  // by expert
  float act_outlier = 0;
  std::uint32_t align = 1, row_step = 1;  // rows that fill() may begin at; those that it is best asked for together
  std::vector<std::uint32_t> group_of;    // [k] the group of each column where that is not column / group
  std::uint64_t flat = 0;                 // groups of so many values over the flattened tensor, crossing rows
  std::string no_form;                    // why there is only decode
  std::shared_ptr<const void> more;       // of S

  std::uint64_t groups() const { return (k + group - 1) / group; }
  // How many scales a panel of rows has.
  std::uint64_t scales(std::uint64_t n0, std::uint64_t n1) const {
    return flat == 0 ? (n1 - n0) * groups() : n1 > n0 ? (n1 * k + flat - 1) / flat - n0 * k / flat : 0;
  }
};

// Rows of a weight. scale and zero: [rows][groups], or the flat groups that the rows touch.
struct Numbers {
  std::vector<std::uint8_t> codes;  // [rows][k]
  std::vector<std::uint8_t> scale;  // of Weight::scale_num
  std::vector<std::int32_t> zero;
};

// Gives the group of each column, and says why there is no form where groups are not `group` columns each.
inline void set_groups(Weight& w, const std::vector<std::int64_t>& index, const std::string& name) {
  const std::uint64_t groups = w.groups();
  std::vector<std::uint64_t> members(groups, 0);
  bool in_order = true;
  for (std::size_t j = 0; j < index.size(); ++j) {
    if (index[j] < 0 || static_cast<std::uint64_t>(index[j]) >= groups)
      wrong(name + " puts column " + std::to_string(j) + " into group " + std::to_string(index[j]) + " of " + std::to_string(groups));
    ++members[static_cast<std::size_t>(index[j])];
    in_order = in_order && static_cast<std::uint64_t>(index[j]) == j / w.group;
  }
  if (in_order) return;
  w.group_of.assign(index.begin(), index.end());
  for (std::uint64_t g = 0; g + 1 < groups; ++g)
    if (members[g] != w.group && w.no_form.empty())
      w.no_form = "its groups have not " + std::to_string(w.group) + " columns each: group " + std::to_string(g) + " has " +
                  std::to_string(members[g]);
}

// The columns sorted by group: what stands at place j of the form.
inline std::vector<std::uint32_t> sorted_columns(const Weight& w) {
  if (w.group_of.empty()) return {};
  std::vector<std::uint32_t> order(w.k);
  for (std::size_t j = 0; j < order.size(); ++j) order[j] = static_cast<std::uint32_t>(j);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return w.group_of[a] < w.group_of[b]; });
  return order;
}

template <class S>
struct FactoredScheme {
  struct Owner {
    Weight weight;
    std::vector<std::uint32_t> order;
  };
  static constexpr std::uint64_t kPanelValues = std::uint64_t{1} << 20;

  static int claims(const mekik_parts* parts) {
    int sure = 0;
    return guard([&] { sure = S::claims(*parts); }) == MEKIK_OK ? sure : 0;
  }

  static mekik_status shape(const mekik_parts* parts, std::int64_t* sizes, std::uint32_t* rank) {
    return guard([&] {
      const Weight w = S::inspect(*parts);
      *rank = w.rank;
      if (w.rank == 3) *sizes++ = static_cast<std::int64_t>(w.experts);
      sizes[0] = static_cast<std::int64_t>(w.n);
      sizes[1] = static_cast<std::int64_t>(w.k);
    });
  }

  static mekik_str left_out(const mekik_parts* parts) {
    const char* text = "";
    return guard([&] { text = S::left_out(*parts); }) == MEKIK_OK ? mekik_str{text, std::strlen(text)} : mekik_str{"", 0};
  }

  static mekik_status describe(const mekik_parts* parts, mekik_form* out) {
    return guard([&] {
      auto owner = std::make_unique<Owner>();
      owner->weight = S::inspect(*parts);
      const Weight& w = owner->weight;
      check_shape(*parts, w);
      if (!w.no_form.empty()) unsupported(w.no_form);
      if (w.scale_num == MEKIK_E4M3 || w.scale_num == MEKIK_E5M2)
        unsupported("its scales are 8-bit floats with a sign, which forms do not have");
      owner->order = sorted_columns(w);
      mekik_form form = blocks::empty_form(*parts);
      form.kind = w.kind;
      form.bits = w.bits;
      form.group_k = static_cast<std::uint32_t>(w.group);
      form.scale_num = w.scale_num;
      form.zero_num = w.zeros ? MEKIK_U8 : 0;
      form.zero = w.zeros ? 0 : w.zero;
      form.round_num = w.round == MEKIK_F32 ? 0 : w.round;
      form.n_table = static_cast<std::uint32_t>(w.table.size());
      form.table = w.table.empty() ? nullptr : w.table.data();
      form.table_unit = w.table_unit;
      form.tensor_scale = w.tensor_scale.empty() ? nullptr : w.tensor_scale.data();
      form.act_outlier = w.act_outlier;
      form.k_perm = owner->order.empty() ? nullptr : owner->order.data();
      form.row_step = w.row_step;
      form.owner = owner.release();
      *out = form;
    });
  }

  static void release(mekik_form* form) {
    delete static_cast<Owner*>(form->owner);
    form->owner = nullptr;
  }

  static mekik_status rows(const mekik_parts* parts, const mekik_form* form, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1,
                           const mekik_form_rows* out) {
    return guard([&] {
      const auto& [w, order] = *static_cast<const Owner*>(form->owner);
      check_rows(w, expert, n0, n1);
      if (n0 == n1) return;
      Numbers numbers = make(w, n0, n1);
      S::fill(w, *parts, expert, n0, n1, numbers);
      std::memcpy(out->scale, numbers.scale.data(), numbers.scale.size());
      if (w.zeros) std::copy(numbers.zero.begin(), numbers.zero.end(), static_cast<std::uint8_t*>(out->zero));
      if (order.empty()) {
        std::memcpy(out->codes, numbers.codes.data(), numbers.codes.size());
        return;
      }
      for (std::uint64_t row = 0; row < n1 - n0; ++row)
        for (std::uint64_t j = 0; j < w.k; ++j) out->codes[row * w.k + j] = numbers.codes[row * w.k + order[j]];
    });
  }

  static mekik_status decode(const mekik_parts* parts, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, float* out) {
    return guard([&] {
      const Weight w = S::inspect(*parts);
      check_shape(*parts, w);
      check_rows(w, expert, n0, n1);
      const std::uint64_t panel = std::max<std::uint64_t>(1, kPanelValues / w.k / w.row_step) * w.row_step;
      for (std::uint64_t a = n0, b; a < n1; a = b) {
        const std::uint64_t first = a / w.align * w.align;
        b = std::min(n1, first + panel);
        const std::uint64_t last = std::min(w.n, (b + w.align - 1) / w.align * w.align);
        Numbers numbers = make(w, first, last);
        S::fill(w, *parts, expert, first, last, numbers);
        decode_panel(w, numbers, expert, first, a, b, out + (a - n0) * w.k);
      }
    });
  }

  static constexpr mekik_scheme table{
      sizeof(mekik_scheme), 0, 0, 0, S::kSuffixes, claims, describe, release, rows, decode, nullptr, shape, left_out};
  static constexpr std::array<mekik_option, 0> options{};

 private:
  static Numbers make(const Weight& w, std::uint64_t n0, std::uint64_t n1) {
    Numbers out;
    out.codes.resize((n1 - n0) * w.k);
    out.scale.resize(w.scales(n0, n1) * num_size(w.scale_num));
    if (w.zeros) out.zero.resize(w.scales(n0, n1));
    return out;
  }
  static void check_shape(const mekik_parts& parts, const Weight& w) {
    if (parts.experts != w.experts || parts.n != w.n || parts.k != w.k) wrong("the parts have another shape than the weight");
  }
  static void check_rows(const Weight& w, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1) {
    if (expert >= w.experts || n0 > n1 || n1 > w.n) wrong("rows were asked for that the weight does not have");
  }
  // Rows n0 .. n1, of numbers that begin at row `first`.
  static void decode_panel(const Weight& w, const Numbers& numbers, std::uint64_t expert, std::uint64_t first, std::uint64_t n0,
                           std::uint64_t n1, float* out) {
    const std::uint64_t groups = w.groups(), first_flat = w.flat != 0 ? first * w.k / w.flat : 0;
    for (std::uint64_t n = n0; n < n1; ++n)
      for (std::uint64_t j = 0; j < w.k; ++j, ++out) {
        const std::uint64_t g =
            w.flat != 0 ? (n * w.k + j) / w.flat - first_flat : (n - first) * groups + (w.group_of.empty() ? j / w.group : w.group_of[j]);
        const std::uint8_t code = numbers.codes[(n - first) * w.k + j];
        const std::int32_t zero = w.zeros ? numbers.zero[g] : w.zero;
        const float c = w.kind == MEKIK_FORM_AFFINE ? static_cast<float>(code - zero) : w.table[code];
        float value = load_num(w.scale_num, numbers.scale.data(), g) * c;
        if (!w.tensor_scale.empty()) value *= w.tensor_scale[expert];
        *out = round_num(w.round, value);
      }
  }
};

template <class S>
constexpr mekik_component factored_scheme() {
  return component(MEKIK_KIND_SCHEME, S::kName, "1.0", S::kSummary, FactoredScheme<S>::options, &FactoredScheme<S>::table);
}

}  // namespace checkpoint
#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
