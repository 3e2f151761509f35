#include "program/recipe_rows.hpp"

#include <algorithm>
#include <optional>

namespace mekik::program {

namespace {

std::uint64_t product(const std::vector<std::int64_t>& sizes, std::size_t from, std::size_t to) {
  std::uint64_t out = 1;
  for (std::size_t i = from; i < to; ++i) out *= static_cast<std::uint64_t>(sizes[i]);
  return out;
}

std::string scheme_of(const TensorInfo& info) {
  if (!info.scheme.empty()) return info.scheme;
  return info.num == MEKIK_F16 ? "f16" : info.num == MEKIK_BF16 ? "bf16" : "f32";
}

void push_run(std::vector<RowRun>& rows, RowRun run) {
  if (!rows.empty()) {
    RowRun& last = rows.back();
    const auto next = static_cast<std::int64_t>(last.first) + static_cast<std::int64_t>(last.count) * last.step;
    if (last.source == run.source && last.step == run.step && next == static_cast<std::int64_t>(run.first)) {
      last.count += run.count;
      return;
    }
  }
  rows.push_back(run);
}

// The axes of a piece with neighbours joined where one runs on into the next, then cut so that the last of them is a row of k.
struct Axes {
  std::vector<std::uint64_t> sizes, strides;  // outer axes
  bool fits = false;
};

Axes outer_axes(const Piece& piece, std::uint64_t k) {
  Axes out;
  std::vector<std::uint64_t> sizes, strides;
  for (std::size_t i = 0; i < piece.sizes.size(); ++i) {
    const auto size = static_cast<std::uint64_t>(piece.sizes[i]), stride = static_cast<std::uint64_t>(piece.strides[i]);
    if (size == 1) continue;
    if (!sizes.empty() && strides.back() == stride * size) {
      sizes.back() *= size;
      strides.back() = stride;
    } else {
      sizes.push_back(size);
      strides.push_back(stride);
    }
  }
  if (k > 1) {
    if (sizes.empty() || strides.back() != 1 || sizes.back() % k != 0) return out;
    sizes.back() /= k;
    strides.back() = k;
    if (sizes.back() == 1) {
      sizes.pop_back();
      strides.pop_back();
    }
  }
  out.sizes = std::move(sizes);
  out.strides = std::move(strides);
  out.fits = true;
  return out;
}

class Rows {
 public:
  Rows(const WeightValue& weight, const ModelMeta& meta, std::uint64_t k) : weight_{weight}, meta_{meta}, k_{k} {}

  // All rows of the weight as runs, or nothing.
  bool make(WeightRecipe& out) {
    if (weight_.join_axis && (*weight_.join_axis != 0 || weight_.pieces.size() > 1)) return false;
    for (const Piece& piece : weight_.pieces)
      if (!add(piece)) return false;
    const std::string scheme = scheme_of(meta_.tensors[rows_[0].source]);
    for (const RowRun& run : rows_)
      if (scheme_of(meta_.tensors[run.source]) != scheme) return false;
    out.rows = std::move(rows_);
    out.column0 = *column_;
    return true;
  }

 private:
  bool add(const Piece& piece) {
    const std::vector<std::int64_t>& stored = meta_.tensors[piece.sources[0]].shape;
    columns_ = stored.empty() ? 1 : static_cast<std::uint64_t>(stored.back());
    rows_each_ = stored.empty() ? 1 : product(stored, 0, stored.size() - 1);
    const Axes axes = outer_axes(piece, k_);
    if (!axes.fits) return false;
    std::vector<std::uint64_t> at(axes.sizes.size(), 0);
    const std::size_t inner = axes.sizes.size();
    const std::uint64_t count = inner == 0 ? 1 : axes.sizes.back(), stride = inner == 0 ? columns_ : axes.strides.back();
    if (count > 1 && stride % columns_ != 0) return false;
    for (;;) {
      std::uint64_t offset = piece.offset;
      for (std::size_t i = 0; i + 1 < inner; ++i) offset += at[i] * axes.strides[i];
      if (!run(piece, offset, count, stride / columns_)) return false;
      std::size_t axis = inner;
      while (axis > 1 && ++at[axis - 2] == axes.sizes[axis - 2]) at[--axis - 1] = 0;
      if (axis <= 1) return true;
    }
  }
  // Rows are counted over all tensors of a stack, so a run may cross from one to the next.
  bool run(const Piece& piece, std::uint64_t offset, std::uint64_t count, std::uint64_t step) {
    const std::uint64_t column = offset % columns_;
    if (column + k_ > columns_ || (column_ && *column_ != column)) return false;
    column_ = column;
    std::uint64_t row = offset / columns_;
    if (count == 1 || step == 0) step = 1;
    while (count > 0) {
      const std::uint64_t source = row / rows_each_, first = row % rows_each_;
      if (source >= piece.sources.size()) return false;
      const std::uint64_t here = std::min(count, (rows_each_ - first + step - 1) / step);
      push_run(rows_, {piece.sources[source], first, here, static_cast<std::int64_t>(step)});
      count -= here;
      row += here * step;
    }
    return true;
  }

  const WeightValue& weight_;
  const ModelMeta& meta_;
  std::uint64_t k_, columns_ = 1, rows_each_ = 1;
  std::optional<std::uint64_t> column_;
  std::vector<RowRun> rows_;
};

void make_parts(const WeightValue& weight, WeightRecipe& out) {
  out.join_axis = weight.join_axis.value_or(0);
  for (const Piece& piece : weight.pieces) {
    if (piece.sources.size() > 1 && !piece.steps.empty())
      throw Mistake{weight.origin,
                    "weight \"" + weight.symbol + "\": steps that move columns of a stack are not supported; the file must hold one tensor",
                    {}};
    for (const std::uint32_t source : piece.sources) {
      WeightRecipe::Part part{source, piece.steps};
      if (piece.sources.size() > 1) {
        std::vector<std::int64_t> one(piece.sizes.begin(), piece.sizes.end());
        one[0] = 1;
        part.steps.push_back({AxisStep::What::view, std::move(one)});
      } else if (weight.pieces.size() > 1 && !weight.join_axis && piece.sizes.size() > 1) {
        const auto rows = static_cast<std::int64_t>(product(piece.sizes, 0, piece.sizes.size() - 1));
        part.steps.push_back({AxisStep::What::view, {rows, piece.sizes.back()}});
      }
      out.parts.push_back(std::move(part));
    }
  }
}

}  // namespace

WeightRecipe make_recipe(const WeightValue& weight, WeightUse use, const ModelMeta& meta, std::string& scheme, std::string& note) {
  WeightRecipe out;
  out.symbol = weight.symbol;
  out.layer = weight.layer;
  const std::size_t rank = weight.shape.size();
  out.k = use == WeightUse::vector ? product(weight.shape, 0, rank) : static_cast<std::uint64_t>(weight.shape.back());
  if (use == WeightUse::experts) out.experts = static_cast<std::uint64_t>(weight.shape[0]);
  if (use != WeightUse::vector) out.n = product(weight.shape, use == WeightUse::experts ? 1 : 0, rank - 1);
  if (!weight.numbers.empty()) {
    out.host = weight.numbers;
    scheme = "f32";
    return out;
  }
  out.value = weight.value;
  const TensorInfo& first = meta.tensors[weight.pieces[0].sources[0]];
  scheme = scheme_of(first);
  if (!Rows{weight, meta, out.k}.make(out)) {
    make_parts(weight, out);
    if (!first.scheme.empty())
      note = "weight " + weight.symbol + (weight.layer >= 0 ? ", layer " + std::to_string(weight.layer) : std::string{}) +
             ": its columns move, so " + first.scheme + " is decoded to f32 at load";
    scheme = "f32";
  }
  if (!out.value.empty()) scheme = "f32";
  return out;
}

}  // namespace mekik::program
