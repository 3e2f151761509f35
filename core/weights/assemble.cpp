#include "weights/assemble.hpp"

#include <algorithm>
#include <limits>

namespace mekik::weights {

namespace {

std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return strides;
}

// The product of sizes, or -1 when one is not positive or it does not fit.
std::int64_t product(const std::vector<std::int64_t>& sizes) {
  std::int64_t all = 1;
  for (const std::int64_t size : sizes)
    if (size <= 0 || __builtin_mul_overflow(all, size, &all)) return -1;
  return all;
}

}  // namespace

std::int64_t Window::elements() const { return product(sizes); }

Status Window::apply(const program::AxisStep& step) {
  using What = program::AxisStep::What;
  const std::vector<std::int64_t>& numbers = step.numbers;
  if (step.what == What::view) {
    if (product(numbers) != elements()) return internal_error("a view changes the number of values");
    if (strides != row_major(sizes))
      return unsupported(
          "a view of values whose order was changed before is not possible: in a join, leave `order` out of its parts and take by `axis`");
    sizes = numbers;
    strides = row_major(sizes);
    return {};
  }
  if (step.what == What::take) {
    const bool fits = numbers.size() == 3 && numbers[0] >= 0 && numbers[0] < static_cast<std::int64_t>(sizes.size()) && numbers[1] >= 0 &&
                      numbers[2] > 0 && numbers[1] <= sizes[static_cast<std::size_t>(numbers[0])] - numbers[2];
    if (!fits) return internal_error("a take leaves its axis");
    const auto axis = static_cast<std::size_t>(numbers[0]);
    offset += numbers[1] * strides[axis];
    sizes[axis] = numbers[2];
    return {};
  }
  std::vector<std::int64_t> sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<std::int64_t>(i)) return internal_error("an order does not name each axis once");
  if (numbers.size() != sizes.size()) return internal_error("an order does not name each axis once");
  Window turned = *this;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    turned.sizes[i] = sizes[static_cast<std::size_t>(numbers[i])];
    turned.strides[i] = strides[static_cast<std::size_t>(numbers[i])];
  }
  *this = std::move(turned);
  return {};
}

Result<std::unique_ptr<Assemble>> Assemble::make(const program::WeightRecipe& recipe,
                                                 const std::function<Result<const Source*>(std::uint32_t)>& source) {
  std::unique_ptr<Assemble> made{new Assemble};
  const std::string where = "weight \"" + recipe.symbol + "\"";
  std::int64_t joined = 0;
  for (const program::WeightRecipe::Part& part : recipe.parts) {
    MEKIK_TRY(from, source(part.source));
    Window window;
    window.sizes = from->shape();
    window.strides = row_major(window.sizes);
    for (const program::AxisStep& step : part.steps) MEKIK_CHECK_OK(window.apply(step).in(where + ", tensor \"" + from->name() + "\""));
    if (recipe.join_axis < 0 || recipe.join_axis >= static_cast<std::int64_t>(window.sizes.size()))
      return internal_error(where + ": it is joined along an axis that it does not have");
    made->axis_ = static_cast<std::size_t>(recipe.join_axis);
    if (made->parts_.empty()) made->sizes_ = window.sizes;
    std::vector<std::int64_t> expected = made->sizes_;
    if (expected.size() == window.sizes.size()) expected[made->axis_] = window.sizes[made->axis_];
    if (expected != window.sizes) return internal_error(where + ": its parts have shapes that cannot be joined");
    made->parts_.push_back({from, window, joined});
    joined += window.sizes[made->axis_];
  }
  made->sizes_[made->axis_] = joined;
  made->k_ = recipe.k;
  made->rows_ = recipe.experts * recipe.n;
  made->slabs_.resize(made->parts_.size());
  if (product(made->sizes_) != static_cast<std::int64_t>(made->rows_ * made->k_))
    return internal_error(where + ": its parts have " + std::to_string(product(made->sizes_)) + " values, it has " +
                          std::to_string(made->rows_ * made->k_));
  return made;
}

Assemble::Line Assemble::line_at(std::uint64_t element) const {
  std::vector<std::int64_t> at(sizes_.size());
  auto rest = static_cast<std::int64_t>(element);
  for (std::size_t i = sizes_.size(); i-- > 0;) {
    at[i] = rest % sizes_[i];
    rest /= sizes_[i];
  }
  std::size_t part = parts_.size() - 1;
  while (parts_[part].from > at[axis_]) --part;
  at[axis_] -= parts_[part].from;
  const Window& window = parts_[part].window;
  std::int64_t start = window.offset;
  for (std::size_t i = 0; i < at.size(); ++i) start += at[i] * window.strides[i];
  return {part, start, window.strides.back(), static_cast<std::uint64_t>(window.sizes.back() - at.back())};
}

Result<std::shared_ptr<const Assemble::Slab>> Assemble::slab(std::size_t part, std::uint64_t low, std::uint64_t high) {
  {
    const std::lock_guard lock{mutex_};
    const std::shared_ptr<const Slab>& kept = slabs_[part];
    if (kept != nullptr && kept->low <= low && kept->high >= high) return kept;
    slabs_[part].reset();
  }
  auto fresh = std::make_shared<Slab>();
  fresh->low = low;
  fresh->high = high;
  const Source& source = *parts_[part].source;
  fresh->values.resize((high - low) * source.k());
  MEKIK_CHECK_OK(source.decode(low, high - low, fresh->values.data()));
  const std::lock_guard lock{mutex_};
  slabs_[part] = fresh;
  return std::shared_ptr<const Slab>{fresh};
}

Status Assemble::decode(std::uint64_t a, std::uint64_t b, float* out) {
  std::vector<Line> lines;
  std::vector<std::uint64_t> low(parts_.size(), std::numeric_limits<std::uint64_t>::max()), high(parts_.size(), 0);
  for (std::uint64_t element = a * k_; element < b * k_;) {
    Line line = line_at(element);
    line.count = std::min(line.count, b * k_ - element);
    const std::int64_t end = line.start + static_cast<std::int64_t>(line.count - 1) * line.stride;
    const std::uint64_t wide = parts_[line.part].source->k();
    low[line.part] = std::min(low[line.part], static_cast<std::uint64_t>(std::min(line.start, end)) / wide);
    high[line.part] = std::max(high[line.part], static_cast<std::uint64_t>(std::max(line.start, end)) / wide + 1);
    lines.push_back(line);
    element += line.count;
  }
  std::vector<std::shared_ptr<const Slab>> slabs(parts_.size());
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    if (high[part] == 0) continue;
    MEKIK_TRY(found, slab(part, low[part], high[part]));
    slabs[part] = found;
  }
  for (const Line& line : lines) {
    const Slab& from = *slabs[line.part];
    const float* values = from.values.data();
    std::int64_t at = line.start - static_cast<std::int64_t>(from.low * parts_[line.part].source->k());
    for (std::uint64_t i = 0; i < line.count; ++i, at += line.stride) *out++ = values[at];
  }
  const std::lock_guard lock{mutex_};
  served_ += b - a;
  if (served_ >= rows_) {
    served_ = 0;
    std::fill(slabs_.begin(), slabs_.end(), nullptr);
  }
  return {};
}

}  // namespace mekik::weights
