// A program made ready for a device: what is dispatched in which order, and where everything lies. Pure: touches no weights, no device.
#pragma once
#include <mekik/program.hpp>

#include <array>
#include <map>
#include <optional>

#include "device.hpp"
#include "forms.hpp"
#include "ops/checks.hpp"

namespace mekik::vulkan {

inline constexpr std::uint64_t kUses = MEKIK_USE_EMBEDS | MEKIK_USE_AXES | MEKIK_USE_HIDDEN | MEKIK_USE_STATE_OUT | MEKIK_USE_TYPES;
inline constexpr std::uint32_t kNone = MEKIK_NONE;
inline constexpr std::uint64_t kStagingBytes = std::uint64_t{16} << 20;

// A multiplication that would not fit is an Error, as is anything above 2^62.
std::uint64_t times(std::uint64_t a, std::uint64_t b);
constexpr std::uint64_t round_up(std::uint64_t x, std::uint64_t to) { return (x + to - 1) / to * to; }

// What of the device decides where things go.
struct DeviceLimits {
  std::uint64_t storage_bytes, texels;  // of one binding
  std::string identity;                 // device and driver: other bits
};

// MapOp: what shaders/map.comp computes, by its number.
enum class MapOp : std::uint32_t {
  act,
  scale,
  cast,
  clamp,
  softcap,
  glu,
  add,
  mul,
  add_vector,
  mul_vector,
  copy,
  moe_scale,
  spread,
  factor,
  concat,
  permute,
  take,
  combine,
  pad
};
enum class NormMode : std::uint32_t { rms, layer, l2, mean, softmax };

// A member of Push by its place in words.
enum Word : std::uint32_t {
  kRows,
  kO,
  kOs,
  kAt,
  kAs,
  kBt,
  kBs,
  kCt,
  kCs,
  kW0,
  kW1,
  kW2,
  kW3,
  kN,
  kK,
  kM,
  kH,
  kI0,
  kI1,
  kI2,
  kI3,
  kI4,
  kI5,
  kI6,
  kI7,
  kF0,
  kF1
};

// Rows of a buffer, from a column on.
struct Ref {
  std::uint32_t buffer = kNone;
  std::uint64_t column = 0;
};

// What of a word is known only once everything has its place.
struct Patch {
  enum class Kind : std::uint8_t { offset, stride, texel, vector } kind;  // of `ref`; of the vector of tensor ref.buffer
  std::uint32_t word;
  Ref ref;
};

struct Dispatch {
  // How many groups run. lanes: an invocation for each of `each` pieces of a row; groups: a group for each; columns: an invocation for each
  // of `each`, whatever the rows; linear: tiles by rows; experts: tiles by (row, choice).
  enum class Grid : std::uint8_t { lanes, groups, columns, linear, experts } grid = Grid::lanes;
  std::string shader;  // linear: without the number of rows at a time
  std::vector<std::uint32_t> constants;
  std::int64_t domain = MEKIK_DIM_TOKENS;
  std::uint64_t each = 1;
  std::uint32_t local = 64;
  std::array<std::uint32_t, 4> operand{kNone, kNone, kNone, kNone};  // buffers bound as out, a, b, c
  std::uint32_t weight = kNone, state = kNone, pool = kNone;         // tensors; pool: a buffer in place of a state
  std::vector<Patch> patches;
  Push push;
  bool joins = false;  // runs beside the one before
  void set(std::uint32_t word, std::uint32_t value) { reinterpret_cast<std::uint32_t*>(&push)[word] = value; }
  void set_float(std::uint32_t word, double value);
};

// Memory of the step, from the dispatch that writes it to the last that reads it.
struct StepBuffer {
  std::uint64_t bytes = 0, stride = 0;  // stride: numbers from a row to the next
  std::uint32_t first = 0, last = 0;    // moments: dispatches that run side by side have one
  bool output = false;                  // a page of its own
  std::uint32_t page = 0;
  std::uint64_t offset = 0;  // bytes in the page
};

struct WeightPlan {
  bool matrix = false, vector = false;
  WeightLayout layout;
  std::uint32_t block = 0;
  std::uint64_t offset = 0;                          // of the matrix in its block, bytes
  std::uint64_t vector_offset = 0, permutation = 0;  // numbers in the block of vectors; of the order of inputs
  std::uint64_t scale_offset = 0;                    // of tensor_scale, likewise
  mekik_form form{};                                 // numbers only, to compare with what weight() brings; pointers are not kept
};

struct StatePlan {
  KvForm form = KvForm::f16;
  std::uint32_t heads = 1, first = 0, second = 0;  // numbers of the two parts of a head
  std::uint32_t row_texels = 0, head_texels = 0, first_texels = 0, group = 0;
  std::uint32_t page = 0;
  std::uint64_t offset = 0, bytes = 0, block_bytes = 0;  // of the page; of all blocks, of one
};
struct SlotPlan {
  std::uint32_t page = 0;
  std::uint64_t offset = 0, numbers = 0;
};

// Cosines and sines of every token: of a rotary table and a magnitude. A factor of every token: of position_scale.
struct TurnPlan {
  std::uint32_t weight;
  double magnitude;
  std::uint32_t half;
  std::uint64_t at;
};
struct FactorPlan {
  std::int64_t shift;
  double every, factor;
  std::uint64_t at;
};

// Where what a batch brings lies, in words.
struct BatchPlan {
  std::uint64_t tokens = 0, positions = 0, rows = 0, segments = 0, token_types = 0, starts = 0, contexts = 0, state_in = 0, state_out = 0,
                embed_rows = 0, embeds = 0, words = 0;
  std::array<std::uint64_t, MEKIK_MAX_GROUPS> blocks{};
  std::uint32_t embed_width = 0;  // 0: no embeddings can come
  bool embeds_fit = true;         // not: tokens are looked up in tables of several widths
};

struct Plan {
  Plan(const mekik_program& program, const mekik_limits& limits, const DeviceLimits& device);  // throws mekik::Error

  std::vector<Dispatch> dispatches;
  std::vector<StepBuffer> buffers;
  std::vector<std::uint32_t> buffer_of;  // by tensor (roots)
  std::vector<WeightPlan> weights;       // by tensor
  std::vector<StatePlan> states;
  std::vector<SlotPlan> slots;
  std::vector<TurnPlan> turns;
  std::vector<FactorPlan> factors;
  BatchPlan batch;
  std::vector<std::uint64_t> page_bytes, weight_block_bytes, pool_bytes;  // of pages of the step; page 0: temporaries
  std::uint64_t vector_bytes = 0, readback_bytes = 0, slot_bytes = 0;
  std::array<std::uint64_t, MEKIK_MAX_GROUPS> block_bytes{}, look_back{};  // look_back: rows before a token's own that it reads
  std::uint64_t uses() const { return batch.embed_width != 0 && batch.embeds_fit ? kUses : kUses & ~std::uint64_t{MEKIK_USE_EMBEDS}; }
  std::uint64_t weight_bytes() const;
  std::uint64_t work_bytes() const;
  std::uint64_t max_rows(std::int64_t domain) const {
    return domain == MEKIK_DIM_TOKENS ? limits.max_tokens : domain == MEKIK_DIM_SEQS ? limits.max_seqs : limits.max_rows;
  }
  mekik_limits limits;
  std::uint8_t layout_id[32], numeric_id[32];
};

}  // namespace mekik::vulkan
