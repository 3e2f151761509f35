#include "convert/values.hpp"

#include <algorithm>
#include <cmath>

namespace mekik::convert {

namespace {

using program::Transcript;

std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return strides;
}

std::uint64_t product(const std::vector<std::int64_t>& sizes) {
  std::uint64_t out = 1;
  for (const std::int64_t size : sizes) out *= static_cast<std::uint64_t>(size);
  return out;
}

// The same order on both sides, from the first value of the tensor to its last.
bool in_one_piece(const Transcript::Tensor& tensor) {
  if (tensor.parts.size() != 1) return false;
  const Transcript::Part& part = tensor.parts[0];
  return part.to == 0 && part.from_strides == row_major(part.sizes) && part.to_strides == part.from_strides;
}

void undo(const std::vector<program::Undo>& steps, float* values, std::uint64_t count) {
  using What = program::Undo::What;
  for (const program::Undo& step : steps)
    for (std::uint64_t i = 0; i < count; ++i) {
      if (step.what == What::add) values[i] += static_cast<float>(step.constant);
      else if (step.what == What::multiply) values[i] *= static_cast<float>(step.constant);
      else if (step.what == What::logarithm) values[i] = static_cast<float>(std::log(static_cast<double>(values[i])));
      else values[i] = static_cast<float>(std::exp(static_cast<double>(values[i])));
    }
}

// A row of the weight: factors are one each. A vector has rows of one number.
std::int64_t columns_of(const mekik_form& form, const Transcript::Part& part) {
  const std::uint64_t rows = std::max<std::uint64_t>(part.factors.size(), 1);
  return static_cast<std::int64_t>(form.experts * form.n * form.k / rows);
}

// Line by line along the last axis of the part. `columns`: of the weight.
void copy_part(const Transcript::Part& part, std::int64_t columns, const float* source, float* target) {
  const std::size_t rank = part.sizes.size();
  const std::int64_t inner = part.sizes[rank - 1], from_step = part.from_strides[rank - 1], to_step = part.to_strides[rank - 1];
  std::vector<std::int64_t> at(rank, 0);
  std::vector<float> line(static_cast<std::size_t>(inner));
  for (std::uint64_t left = product(part.sizes) / static_cast<std::uint64_t>(inner); left > 0; --left) {
    std::int64_t from = part.from, to = part.to;
    for (std::size_t a = 0; a + 1 < rank; ++a) {
      from += at[a] * part.from_strides[a];
      to += at[a] * part.to_strides[a];
    }
    for (std::size_t j = 0; j < line.size(); ++j) {
      const std::int64_t place = from + static_cast<std::int64_t>(j) * from_step;
      line[j] = source[place];
      if (!part.factors.empty()) line[j] *= part.factors[static_cast<std::size_t>(place / columns)];
    }
    undo(part.undo, line.data(), line.size());
    for (std::size_t j = 0; j < line.size(); ++j) target[to + static_cast<std::int64_t>(j) * to_step] = line[j];
    for (std::size_t a = rank - 1; a-- > 0;) {
      if (++at[a] < part.sizes[a]) break;
      at[a] = 0;
    }
  }
}

}  // namespace

Status Values::read(std::uint32_t weight, std::uint64_t first, std::uint64_t count, float* out) const {
  const mekik_form& form = *store_.forms()[weight];
  if (first % form.k != 0 || count % form.k != 0) return internal_error("a weight is cut within its rows");
  std::uint64_t row = first / form.k, left = count / form.k;
  while (left > 0) {
    const std::uint64_t expert = row / form.n, n0 = row % form.n, n1 = std::min(form.n, n0 + left);
    MEKIK_CHECK_OK(store_.decode(weight, expert, n0, n1, out));
    out += (n1 - n0) * form.k;
    row += n1 - n0;
    left -= n1 - n0;
  }
  return {};
}

Status Values::assemble(const Transcript::Tensor& tensor) {
  whole_.assign(product(tensor.shape), 0.0f);
  for (const Transcript::Part& part : tensor.parts) {
    if (weight_ != static_cast<std::int64_t>(part.weight)) {
      const mekik_form& form = *store_.forms()[part.weight];
      source_.resize(form.experts * form.n * form.k);
      weight_ = -1;
      MEKIK_CHECK_OK(read(part.weight, 0, source_.size(), source_.data()));
      weight_ = part.weight;
    }
    copy_part(part, columns_of(*store_.forms()[part.weight], part), source_.data(), whole_.data());
  }
  assembled_ = &tensor;
  return {};
}

Status Values::rows(const Transcript::Tensor& tensor, std::uint64_t first, std::uint64_t count, float* out) {
  const std::uint64_t columns = static_cast<std::uint64_t>(tensor.shape.back());
  if (!tensor.host.empty()) {
    std::copy_n(tensor.host.data() + first * columns, count * columns, out);
    return {};
  }
  if (in_one_piece(tensor)) {
    const Transcript::Part& part = tensor.parts[0];
    const std::uint64_t from = static_cast<std::uint64_t>(part.from) + first * columns;
    const mekik_form& form = *store_.forms()[part.weight];
    if (from % form.k == 0 && count * columns % form.k == 0) {
      MEKIK_CHECK_OK(read(part.weight, from, count * columns, out));
      const auto k = static_cast<std::uint64_t>(columns_of(form, part));
      for (std::uint64_t i = 0; i < count * columns && !part.factors.empty(); ++i) out[i] *= part.factors[(from + i) / k];
      undo(part.undo, out, count * columns);
      return {};
    }
  }
  if (assembled_ != &tensor) MEKIK_CHECK_OK(assemble(tensor));
  std::copy_n(whole_.data() + first * columns, count * columns, out);
  return {};
}

}  // namespace mekik::convert
