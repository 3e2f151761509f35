// One scheme of two layouts: blocks of one tensor, or several tensors.
#pragma once
#include <mekik/block_scheme.hpp>
#include "factored.hpp"

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {
#endif
namespace checkpoint {

template <class Block, class Several>
struct EitherScheme {
  static int claims(const mekik_parts* parts) { return of(parts).claims(parts); }
  static mekik_status describe(const mekik_parts* parts, mekik_form* out) { return of(parts).describe(parts, out); }
  static void release(mekik_form* form) {
    if (form->owner != nullptr) FactoredScheme<Several>::release(form);
  }
  static mekik_status rows(const mekik_parts* parts, const mekik_form* form, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1,
                           const mekik_form_rows* out) {
    return of(parts).rows(parts, form, expert, n0, n1, out);
  }
  static mekik_status decode(const mekik_parts* parts, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, float* out) {
    return of(parts).decode(parts, expert, n0, n1, out);
  }
  static constexpr mekik_scheme table{sizeof(mekik_scheme),
                                      Block::kElems,
                                      Block::kBytes,
                                      0,
                                      Several::kSuffixes,
                                      claims,
                                      describe,
                                      release,
                                      rows,
                                      decode,
                                      blocks::BlockScheme<Block>::table.encode,
                                      FactoredScheme<Several>::shape,
                                      FactoredScheme<Several>::left_out};

 private:
  static const mekik_scheme& of(const mekik_parts* parts) {
    return parts->n_parts == 1 ? blocks::BlockScheme<Block>::table : FactoredScheme<Several>::table;
  }
};

template <class Block, class Several>
constexpr mekik_component either_scheme() {
  return component(MEKIK_KIND_SCHEME, Block::kName, "1.0", Block::kSummary, blocks::BlockScheme<Block>::options,
                   &EitherScheme<Block, Several>::table);
}

}  // namespace checkpoint
#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
