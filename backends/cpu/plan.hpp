// A program made ready to run: what is computed in which phase, and where everything lies. Pure: touches no weights.
#pragma once
#include <mekik/plugin.hpp>
#include <mekik/program.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "isa/kernels.hpp"
#include "ops/checks.hpp"
#include "pack/pack.hpp"

namespace mekik::cpu {

inline constexpr std::uint64_t kUses = MEKIK_USE_EMBEDS | MEKIK_USE_AXES | MEKIK_USE_HIDDEN;
inline constexpr std::uint32_t kColumnChunk = 64;    // columns of one pass over a stripe
inline constexpr std::uint32_t kPanelColumns = 256;  // k of a decoded panel
inline constexpr std::uint32_t kIntPass = 64;        // blocks of one pass, so that a stripe's codes stay in L1
inline constexpr std::uint32_t kNone = MEKIK_NONE;

struct Settings {
  const Kernels* kernels;
  bool exact;  // activations stay F32
  std::uint32_t threads;
};

// One weight tensor: as a matrix (linear, embed), as a vector of floats (all else), or both.
struct WeightPlan {
  bool matrix = false, vector = false;
  Layout layout;
  std::uint64_t matrix_offset = 0, vector_offset = 0, vector_size = 0;
  mekik_form form{};  // numbers only, to compare with what weight() brings; pointers are not kept
};

// Memory that lives from the phase that writes it to the last that reads it.
struct Buffer {
  std::uint64_t bytes, offset;
  std::uint32_t first, last;
};

// Work on one row. `op` of the program, or one of these.
enum class RowKind : std::uint8_t { op, quantise, gather, rope_table, copy_out };
struct RowOp {
  RowKind kind;
  std::uint32_t op = kNone;        // of the program
  std::uint32_t x = kNone;         // tensor
  std::uint32_t buffer = kNone;    // written: acts, gathered floats, rope table; read by rope and norm_rope
  std::uint32_t gathered = kNone;  // quantise: reads this buffer in place of x
  std::uint32_t weight = kNone;    // gather: whose order of inputs; rope_table: the table
  float magnitude = 1;
};

struct Product {  // one matrix of a linear operation
  std::uint32_t weight, bias, out;
  std::uint32_t acts = kNone, gathered = kNone;  // buffers; the operand itself otherwise
};

struct PhasePlan {
  enum class Kind { rows, linear, attention } kind;
  std::int64_t domain;  // MEKIK_DIM_*
  std::vector<RowOp> rows;
  std::uint64_t row_cost = 0;  // numbers touched per row
  std::uint32_t op = kNone;
  std::vector<Product> products;  // linear; linear_glu: gate, then up
};

struct StatePlan {
  std::uint64_t offset = 0;  // in a block
  std::uint32_t heads = 0, d = 0, dv = 0, dvp = 0;
  Num num = Num::f16;
  std::uint64_t k_head = 0, v_head = 0, v_offset = 0;  // bytes of K (V) of one head of a block; V from the state's offset on
};

struct Plan {
  Plan(const mekik_program& program, const mekik_limits& limits, const Settings& settings);  // throws mekik::Error

  std::vector<WeightPlan> weights;       // by tensor
  std::vector<std::uint32_t> buffer_of;  // by tensor (roots): its buffer, or kNone
  std::vector<Buffer> buffers;
  std::vector<StatePlan> states;  // by tensor
  std::vector<PhasePlan> phases;
  std::vector<std::uint32_t> copied_out;  // outputs that something reads: they have a buffer and are copied
  std::array<std::uint64_t, MEKIK_MAX_GROUPS> block_bytes{}, look_back{};  // look_back: rows before a token's own that it reads
  std::uint64_t weight_bytes = 0, load_bytes = 0, buffer_bytes = 0, scratch_bytes = 0, batch_bytes = 0, kv_bytes = 0;
  std::uint64_t work_bytes() const { return buffer_bytes + scratch_bytes + batch_bytes; }
  bool lanes = false;  // block_tokens is a multiple of 16: K lies in lanes
  std::uint64_t max_rows(std::int64_t domain) const;
  std::uint8_t layout_id[32], numeric_id[32];

 private:
  friend class Planner;
  mekik_limits limits_;
};

// A multiplication that would not fit is an Error, as is anything above 2^62.
std::uint64_t times(std::uint64_t a, std::uint64_t b);
constexpr std::uint64_t round_up(std::uint64_t x, std::uint64_t to) { return (x + to - 1) / to * to; }

}  // namespace mekik::cpu
