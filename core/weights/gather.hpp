// A weight made of whole rows of tensors: runs of rows, in order, moved as they are stored or decoded.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "program/program.hpp"
#include "weights/source.hpp"

namespace mekik::weights {

// Thread: any; immutable.
class Gather {
 public:
  struct Run {
    const Source* source;
    std::uint64_t first, count;
    std::int64_t step;
    std::uint64_t at;  // the run's first row in the weight
  };
  // Fails when a run leaves its tensor, or the columns column0 .. column0 + k are not there.
  static Result<Gather> make(const program::WeightRecipe& recipe, const std::function<const Source*(std::uint32_t)>& source);

  const std::vector<Run>& runs() const { return runs_; }
  std::uint64_t k() const { return k_; }
  // The form that all rows share, for a weight of experts x n rows; nullptr: there is none, and `why` says why.
  const mekik_form* common_form(std::uint64_t experts, std::uint64_t n, std::string& why) const;
  // With a form: the scale of the whole tensor for each expert of the weight; empty: the form has none.
  std::vector<float> tensor_scales(std::uint64_t experts, std::uint64_t n) const;

  // Rows a .. b of the weight, counted flat over experts. out [b - a][k].
  Status decode(std::uint64_t a, std::uint64_t b, float* out) const;
  // As common_form() says; only where there is one.
  Status rows(std::uint64_t a, std::uint64_t b, const mekik_form_rows& out) const;

 private:
  // Rows of one tensor that one read serves: source rows low .. high, and which of them are wanted, in order.
  struct Piece {
    const Source* source;
    std::uint64_t low, high;
    std::vector<std::uint64_t> wanted;  // empty: all, in order
    std::uint64_t count() const { return wanted.empty() ? high - low : wanted.size(); }
  };
  std::vector<Piece> pieces(std::uint64_t a, std::uint64_t b, std::size_t row_bytes) const;
  bool in_whole_groups(std::uint64_t n) const;
  bool one_scale_each(std::uint64_t n, std::vector<float>& scales) const;
  Status copy_piece(const Piece& piece, const FormLayout& stored, const FormLayout& cut, const mekik_form_rows& out) const;

  std::vector<Run> runs_;
  std::uint64_t column0_ = 0, k_ = 0;
};

}  // namespace mekik::weights
