// How weights lie on the device: what shaders/weight.glsl and linear.comp read. Tiles of 32 rows; in a tile, chunks of 16 bytes a row.
// Forms whose groups no chunk can hold, and such with columns apart, are decoded to F32. Thread: any.
#pragma once
#include <mekik/plugin.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace mekik::vulkan {

enum class WeightKind : std::uint32_t { f32, f16, bf16, codes2, codes4, codes8 };
inline constexpr std::uint32_t kTileRows = 32;

// What is wrong with a form, or beyond this backend; empty: nothing.
std::string check_form(const mekik_form& form);

// One matrix, or a stack of them: experts x n x k.
struct WeightLayout {
  WeightKind kind = WeightKind::f32;
  bool decoded = false;  // numbers as mekik_form says, not the form's codes
  std::uint64_t experts = 1;
  std::uint32_t n = 0, k = 0;
  std::uint32_t chunk = 4;  // columns in 16 bytes
  std::uint32_t group = 0;  // columns under one scale
  bool least = false, lookup = false, tensor_scale = false, permuted = false;
  std::uint32_t zero_mode = 0, round = 0, n_table = 0;
  float zero = 0;

  std::uint32_t tiles() const { return (n + kTileRows - 1) / kTileRows; }
  std::uint32_t chunks() const { return (k + chunk - 1) / chunk; }
  std::uint32_t groups() const { return group == 0 ? 0 : (k + group - 1) / group; }
  std::uint32_t planes() const { return 1u + (least ? 1 : 0) + (zero_mode == 2 ? 1 : 0); }
  std::uint64_t tile_code_bytes() const { return std::uint64_t{chunks()} * kTileRows * 16; }
  std::uint64_t tile_number_bytes() const { return std::uint64_t{groups()} * planes() * kTileRows * 4; }
  // In the weight's place: codes of all tiles, numbers of all tiles, the table. Multiples of 16.
  std::uint64_t numbers_offset() const { return experts * tiles() * tile_code_bytes(); }
  std::uint64_t table_offset() const { return numbers_offset() + experts * tiles() * tile_number_bytes(); }
  std::uint64_t bytes() const { return table_offset() + std::uint64_t{n_table} * 4; }
};
// `experts` matrices, the form's own or one after another in one of its matrices. plain: no inputs in another order, columns decoded.
WeightLayout lay_out(const mekik_form& form, std::uint64_t experts, bool plain);

// Rows of a form in the host's memory, as rows() fills them.
class Panel {
 public:
  explicit Panel(const mekik_form& form) : form_{form} {}
  // Rows n0 .. n1 of an expert; n0 a multiple of step(), n1 as well or the end. Throws Error, or gives the host's status.
  mekik_status pull(const mekik_weight& weight, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1);
  static std::uint64_t step(const mekik_form& form);
  // A row of the panel in F32, each step rounded, inputs in their order, columns apart in place.
  void decode(std::uint64_t row, float* out) const;
  // A row as `layout` has it, into its tile.
  void pack(std::uint64_t row, const WeightLayout& layout, std::uint32_t row_of_tile, std::byte* codes, std::byte* numbers) const;

 private:
  struct Group {
    float scale, least, zero;
  };
  Group group(std::uint64_t row, std::uint64_t g) const;
  const mekik_form& form_;
  std::uint64_t expert_ = 0, n0_ = 0;
  std::vector<std::uint8_t> codes_, scale_, super_, min_, super_min_, zero_, kept_;
};

}  // namespace mekik::vulkan
