// A weight whose last axis moves: tensors are decoded, seen as N-dimensional, cut, turned, joined and reshaped. Its values are F32.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "program/program.hpp"
#include "weights/source.hpp"

namespace mekik::weights {

// A window on row-major values: element (i0, i1, ..) lies at offset + sum i_a * strides[a].
struct Window {
  std::vector<std::int64_t> sizes, strides;
  std::int64_t offset = 0;
  // The steps of a recipe. A `view` of values that already moved cannot be expressed and fails.
  Status apply(const program::AxisStep& step);
  std::int64_t elements() const;
};

// Thread: any. Keeps the decoded rows that the last call needed, since the next panel of a turned matrix needs the same ones, and lets
// them go when every row has been asked for as often as there are rows.
class Assemble {
 public:
  static Result<std::unique_ptr<Assemble>> make(const program::WeightRecipe& recipe,
                                                const std::function<Result<const Source*>(std::uint32_t)>& source);
  // Rows a .. b of [experts * n][k], counted flat. out [b - a][k].
  Status decode(std::uint64_t a, std::uint64_t b, float* out);
  // The scheme of the first tensor: for messages.
  const std::string& scheme() const { return parts_[0].source->scheme(); }

 private:
  struct Part {
    const Source* source;
    Window window;
    std::int64_t from;  // along the joined axis
  };
  struct Slab {
    std::uint64_t low = 0, high = 0;
    std::vector<float> values;
  };
  struct Line {  // consecutive results out of one part
    std::size_t part;
    std::int64_t start, stride;
    std::uint64_t count;
  };
  Assemble() = default;
  Line line_at(std::uint64_t element) const;
  Result<std::shared_ptr<const Slab>> slab(std::size_t part, std::uint64_t low, std::uint64_t high);

  std::vector<Part> parts_;
  std::vector<std::int64_t> sizes_;  // after joining
  std::size_t axis_ = 0;
  std::uint64_t k_ = 0, rows_ = 0, served_ = 0;
  std::mutex mutex_;                                // guards slabs_ and served_
  std::vector<std::shared_ptr<const Slab>> slabs_;  // one per part; shared with the calls that copy from it
};

}  // namespace mekik::weights
