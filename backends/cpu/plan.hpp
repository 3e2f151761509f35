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

inline constexpr std::uint64_t kUses = MEKIK_USE_EMBEDS | MEKIK_USE_AXES | MEKIK_USE_HIDDEN | MEKIK_USE_STATE_OUT | MEKIK_USE_TYPES;
inline constexpr std::uint32_t kColumnChunk = 64;    // columns of one pass over a stripe
inline constexpr std::uint32_t kPanelColumns = 256;  // k of a decoded panel
inline constexpr std::uint32_t kIntPass = 64;        // blocks of one pass, so that a stripe's codes stay in L1
inline constexpr std::uint32_t kNone = MEKIK_NONE;

// A multiplication that would not fit is an Error, as is anything above 2^62.
std::uint64_t times(std::uint64_t a, std::uint64_t b);
constexpr std::uint64_t round_up(std::uint64_t x, std::uint64_t to) { return (x + to - 1) / to * to; }

struct Settings {
  const Kernels* kernels;
  bool exact;  // activations stay F32
  std::uint32_t threads;
};

// One weight tensor: as one matrix or a stack of them (linear, embed, experts), as a vector of floats (all else), as a vector of its
// transpose [k][n] (what recurrences read with channels in lanes), or several of these.
struct WeightPlan {
  bool matrix = false, vector = false, columns = false;
  Layout layout;              // of one matrix of the stack
  std::uint32_t experts = 1;  // matrices in the stack
  // Where its packed bytes lie among those of all weights, how many they are, and where in them its parts begin.
  std::uint64_t offset = 0, bytes = 0, matrix_offset = 0, vector_offset = 0, columns_offset = 0, vector_size = 0;
  mekik_form form{};  // numbers only, to compare with what weight() brings; pointers are not kept
};

// Memory that lives from the phase that writes it to the last that reads it.
struct Buffer {
  std::uint64_t bytes, offset;
  std::uint32_t first, last;
};

// Work on one row. `op` of the program, or one of these.
enum class RowKind : std::uint8_t { op, quantise, gather, rope_table, copy_out, pack_kv };
struct RowOp {
  RowKind kind;
  std::uint32_t op = kNone;        // of the program
  std::uint32_t x = kNone;         // tensor
  std::uint32_t buffer = kNone;    // written: acts, gathered floats, rope table, keys and values; read by rope and norm_rope
  std::uint32_t gathered = kNone;  // quantise: reads this buffer in place of x
  std::uint32_t weight = kNone;    // gather: whose order of inputs; rope_table: the table
  float magnitude = 1;
};

struct Product {  // one matrix of a linear operation
  std::uint32_t weight, bias, out;
  std::uint32_t acts = kNone, gathered = kNone;  // buffers; the operand itself otherwise
};

// Which rows meet which matrix of a stack, sorted by matrix. A phase `group` finds it out from the ids of a moe_route; without ids, every
// row meets every matrix (the heads of latent attention). Entry t * top + i is row t's i-th.
struct Grouping {
  std::uint32_t ids = kNone, buffer = kNone;  // the tensor, and where it lies sorted (Groups)
  std::uint32_t top = 1, experts = 1;
};

struct PhasePlan {
  // rows: a list of RowOp. linear: matrix products. attention: over blocks; full: over rows of this step; latent: over blocks of
  // latents. scan: a recurrence. group: sorts rows by expert; spread: brings their activations into that order; experts: products.
  enum class Kind { rows, linear, attention, full, latent, scan, group, spread, experts } kind;
  std::int64_t domain = 0;  // MEKIK_DIM_*
  std::vector<RowOp> rows;
  std::uint64_t row_cost = 0;  // numbers touched per row
  std::uint32_t op = kNone;
  std::vector<Product> products;   // linear; linear_glu: gate, then up; experts, spread: for whom it prepares
  std::uint32_t grouping = kNone;  // group, spread, experts: index into Plan::groupings
  std::uint32_t x = kNone;         // spread: the tensor that is read, or `buffer` is
  std::uint32_t buffer = kNone;    // full: keys and values; latent: latents of the queries, then of the results; experts: where a
                                   // product without `out` goes
};

struct StatePlan {
  bool latent = false;       // rows of d numbers, padded to dvp, that are key and (the first dv) value
  std::uint64_t offset = 0;  // in a block
  std::uint32_t heads = 0, d = 0, dv = 0, dvp = 0;
  Num num = Num::f16;                                  // of floats
  HeadLayout codes;                                    // integers instead, in each head
  LatentLayout latents;                                // integers of latents
  std::uint64_t k_head = 0, v_head = 0, v_offset = 0;  // bytes of K (V) of one head of a block; V from the state's offset on
};

// A recurrent state within a slot.
struct SlotPlan {
  std::uint32_t code = 0;                // of the operation that it belongs to
  std::uint64_t offset = 0, floats = 0;  // bytes; numbers, padding included
};

// A grouping in memory: how many experts have rows and which, where the rows of each begin, and the entries sorted by expert: a row, and
// which of its choices the expert is.
struct Groups {
  std::uint32_t *active, *expert, *first, *row, *slot;
  Groups(std::uint8_t* at, std::uint32_t experts, std::uint64_t entries)
      : active{reinterpret_cast<std::uint32_t*>(at)},
        expert{active + 1},
        first{expert + experts},
        row{first + experts + 1},
        slot{row + entries} {}
  static std::uint64_t bytes(std::uint64_t experts, std::uint64_t entries) {
    return (2 * experts + 2 + 2 * entries) * sizeof(std::uint32_t);
  }
};

struct Plan {
  Plan(const mekik_program& program, const mekik_limits& limits, const Settings& settings);  // throws mekik::Error

  std::vector<WeightPlan> weights;       // by tensor
  std::vector<std::uint32_t> buffer_of;  // by tensor (roots): its buffer, or kNone
  std::vector<Buffer> buffers;
  std::vector<StatePlan> states;  // by tensor
  std::vector<SlotPlan> slots;    // by tensor
  std::vector<PhasePlan> phases;
  std::vector<Grouping> groupings;
  std::vector<std::uint32_t> copied_out;  // outputs that something reads: they have a buffer and are copied
  std::array<std::uint64_t, MEKIK_MAX_GROUPS> block_bytes{}, look_back{};  // look_back: rows before a token's own that it reads
  std::uint64_t weight_bytes = 0, load_bytes = 0, buffer_bytes = 0, scratch_bytes = 0, batch_bytes = 0, kv_bytes = 0;
  std::uint64_t slot_bytes = 0, staged_floats = 0;  // staged: of the largest state of a slot, for each sequence
  std::uint64_t work_bytes() const { return buffer_bytes + scratch_bytes + batch_bytes; }
  bool lanes = false;  // block_tokens is a multiple of 16: K lies in lanes
  std::uint64_t max_rows(std::int64_t domain) const;
  // Rows of a step with every sequence padded to 16.
  std::uint64_t full_rows() const { return round_up(limits_.max_tokens, 16) + std::uint64_t{16} * limits_.max_seqs; }
  std::uint8_t layout_id[32], numeric_id[32], packed_id[32];  // packed_id: of how weights lie

 private:
  friend class Planner;
  mekik_limits limits_;
};

// Where recurrences keep their state, and how much of it (ops/recurrent.cpp).
std::uint64_t scan_floats(const ProgramReader& program, const mekik_op& op);
bool a_by_column(const ProgramReader& program, const mekik_op& op);  // of ssm_scan: A is [h][n], not [h]

}  // namespace mekik::cpu
