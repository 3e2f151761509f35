// Internal: what the checks of single operations are written with. A failed need() throws Bad, caught in check_op.
#pragma once
#include <mekik/program.hpp>

#include <string>

#include "reference/form.hpp"

namespace mekik::reference {

struct Bad {
  std::string why;
};

// A row operand as its shape: [rows][outer][last].
struct RowShape {
  std::int64_t rows;
  std::uint64_t outer, last;
  std::uint64_t size() const { return outer * last; }
  bool same(const RowShape& o) const { return rows == o.rows && outer == o.outer && last == o.last; }
};
struct WeightShape {
  std::uint64_t experts, n, k;
  std::uint64_t size() const { return experts * n * k; }
  std::uint64_t rows() const { return experts * n; }
};

inline RowShape row_shape(const mekik_tensor& t) { return {t.shape[0], row_size(t) / last_size(t), last_size(t)}; }
inline WeightShape weight_shape(const mekik_tensor& t) {
  if (t.form != nullptr) return {t.form->experts, t.form->n, t.form->k};
  const auto k = static_cast<std::uint64_t>(t.shape[t.rank - 1]);
  return {1, whole_size(t) / k, k};
}

class Checker {
 public:
  Checker(const ProgramReader& p, std::uint32_t index) : program{p}, op{p.op(index)}, index_{index} {}
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
  RowShape rows(std::uint32_t i) const {
    const mekik_tensor& t = in(i);
    need(t.role == MEKIK_ROLE_TEMP || t.role == MEKIK_ROLE_INPUT || t.role == MEKIK_ROLE_OUTPUT, named(i) + " must be rows");
    return row_shape(t);
  }
  WeightShape weight(std::uint32_t i) const {
    const mekik_tensor& t = in(i);
    need(t.role == MEKIK_ROLE_WEIGHT, named(i) + " must be a weight");
    const WeightShape w = weight_shape(t);
    if (t.form != nullptr) {
      const std::string why = check_form(*t.form);
      need(why.empty(), named(i) + ": " + why);
      need(w.size() == whole_size(t), named(i) + " does not have the size of its form");
    }
    return w;
  }
  // An optional vector of `size` or `other` numbers.
  void vector(std::uint32_t i, std::uint64_t size, std::uint64_t other = 0) const {
    if (!has(i)) return;
    const std::uint64_t got = weight(i).size();
    need(got == size || (other != 0 && got == other),
         named(i) + " has " + std::to_string(got) + " numbers where " + std::to_string(size) + " are needed");
  }
  RowShape out(std::uint32_t i) const {
    need(op.out[i] < program.n_tensors(), "result " + std::to_string(i) + " is missing");
    const mekik_tensor& t = program.tensor(op.out[i]);
    need((t.role == MEKIK_ROLE_TEMP || t.role == MEKIK_ROLE_OUTPUT) && t.view_of == 0, "a result must be a buffer of its own");
    return row_shape(t);
  }
  // A state of rows with `size` numbers; gives its heads.
  std::uint64_t state(std::uint32_t i, std::uint64_t size) const;
  void slot(std::uint32_t i, std::uint64_t size) const {
    need(in(i).role == MEKIK_ROLE_SLOT && in(i).shape[0] > 0 && whole_size(in(i)) == size,
         named(i) + " must be a slot of " + std::to_string(size) + " numbers");
  }
  // Numbers below `bound`: an input, whose values are checked per batch, or what a route or an argmax made.
  void ids(std::uint32_t i, std::uint64_t bound) const;
  std::string named(std::uint32_t i) const { return "operand " + std::to_string(i) + " (" + std::string{program.name(op.in[i])} + ")"; }

 private:
  std::uint32_t index_;
};

void check_family(const Checker& c);     // codes from 64 on
void check_state_ops(const Checker& c);  // kv_append, attention and attention_chunk

}  // namespace mekik::reference
