// What this backend runs: the operands, attributes and shapes of one operation.
#pragma once
#include <mekik/program.hpp>

#include <string>

#include "isa/kernels.hpp"

namespace mekik::cpu {

// Why operation `i` cannot run here; empty: it can. The tensors must have passed mekik::check_tensors. Thread: any.
std::string why_not(const ProgramReader& program, std::uint32_t i);
// How a state of that scheme is stored: numbers, or codes of so many bits; neither: not offered.
struct KvForm {
  Num num = Num::none;
  std::uint32_t bits = 0;
  bool offered() const { return num != Num::none || bits != 0; }
};
KvForm kv_form(const char* scheme);
inline constexpr std::uint32_t kMostHeadNumbers = 1024;  // of a key in codes: sums of products of 8 and 15 bits stay below 2^31

// A row operand as [rows][outer][last]; a weight as [experts][n][k].
struct RowShape {
  std::int64_t rows;
  std::uint64_t outer, last;
  std::uint64_t size() const { return outer * last; }
};
inline RowShape row_shape(const mekik_tensor& t) { return {t.shape[0], row_size(t) / last_size(t), last_size(t)}; }
struct WeightShape {
  std::uint64_t experts, n, k;
  std::uint64_t rows() const { return experts * n; }
  std::uint64_t size() const { return experts * n * k; }
};
WeightShape weight_shape(const mekik_tensor& t);

}  // namespace mekik::cpu
