// Internal: what the checks of single operations are written with. A failed need() throws Bad, caught in why_not().
#pragma once
#include <mekik/program.hpp>

#include <string>
#include <string_view>

#include "forms.hpp"
#include "ops/checks.hpp"

namespace mekik::vulkan {

struct Bad {
  std::string why;
};

inline constexpr std::uint64_t kMostColumns = 1u << 24;  // of a row: keeps every index of a kernel within 32 bits
inline constexpr std::uint64_t kMostExperts = 1u << 16;  // of one stack
inline constexpr std::uint64_t kMostTaps = 64;           // of a convolution

class Checker {
 public:
  Checker(const ProgramReader& p, std::uint32_t i) : program{p}, op{p.op(i)}, index_{i} {}
  const ProgramReader& program;
  const mekik_op& op;

  static void need(bool holds, const std::string& why) {
    if (!holds) throw Bad{why};
  }
  bool has(std::uint32_t i) const { return op.in[i] != MEKIK_NONE; }
  const mekik_tensor& in(std::uint32_t i) const {
    need(has(i) && op.in[i] < program.n_tensors(), "operand " + std::to_string(i) + " is missing");
    return program.tensor(op.in[i]);
  }
  std::string named(std::uint32_t i) const { return "operand " + std::to_string(i) + " (" + std::string{program.name(op.in[i])} + ")"; }
  RowShape rows(std::uint32_t i) const { return rows_of(in(i), named(i)); }
  RowShape out(std::uint32_t i) const {
    need(op.out[i] < program.n_tensors(), "result " + std::to_string(i) + " is missing");
    const mekik_tensor& t = program.tensor(op.out[i]);
    need(t.view_of == 0, "a result must be a buffer of its own");
    return rows_of(t, "result " + std::to_string(i));
  }
  WeightShape weight(std::uint32_t i) const;
  // An optional vector of `size` or `other` numbers.
  void vector(std::uint32_t i, std::uint64_t size, std::uint64_t other = 0) const;
  // A weight of one matrix.
  WeightShape matrix(std::uint32_t i) const {
    const WeightShape w = weight(i);
    need(w.experts == 1, named(i) + " is a stack of matrices where one is needed");
    return w;
  }
  // A weight of `groups` matrices of `rows` rows and k columns, in a stack or one below the other.
  void stack(std::uint32_t i, std::uint64_t groups, std::uint64_t rows, std::uint64_t k) const;
  void input(std::uint32_t i, std::string_view name) const {
    const mekik_tensor& t = in(i);
    need(t.role == MEKIK_ROLE_INPUT && program.name(op.in[i]) == name, named(i) + " must be the input \"" + std::string{name} + "\"");
  }
  // A state of rows of numbers; gives its heads.
  std::uint64_t state(std::uint32_t i) const;
  void slot(std::uint32_t i, std::uint64_t size) const {
    need(in(i).role == MEKIK_ROLE_SLOT && in(i).shape[0] > 0 && whole_size(in(i)) == size,
         named(i) + " must be a slot of " + std::to_string(size) + " numbers");
  }
  static void kind(std::int64_t k, bool gated) {
    need((k >= 0 && k <= 9) || (gated && k == 16), "unknown activation " + std::to_string(k));
  }
  // Numbers below `bound`: an input, whose values are checked per batch, or what an argmax or a route before it made.
  void ids(std::uint32_t i, std::uint64_t bound) const;

 private:
  RowShape rows_of(const mekik_tensor& t, const std::string& what) const;
  std::uint32_t index_;
};

// Whether this backend knows the code, and the checks of the operations of check_families.cpp.
bool is_family(std::uint32_t code);
void check_family(const Checker& c);

}  // namespace mekik::vulkan
