// What this backend runs: the operands, attributes and shapes of one operation.
#pragma once
#include <mekik/program.hpp>

#include <string>

namespace mekik::vulkan {

// Why operation `i` cannot run here; empty: it can. The tensors must have passed mekik::check_tensors. Thread: any.
std::string why_not(const ProgramReader& program, std::uint32_t i);
// How a state of that scheme is stored: numbers, or codes by head.
enum class KvForm : std::uint32_t { f32, f16, bf16, codes8, codes4, none };  // but for the last as in shaders/state.glsl
KvForm kv_form(const char* scheme);
inline constexpr std::uint32_t kMostHeadNumbers = 1024;  // of a key in codes, which is turned in a group's shared memory
inline constexpr std::uint32_t kMostKeyNumbers = 2048;   // of a key, which attention holds in registers

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

}  // namespace mekik::vulkan
