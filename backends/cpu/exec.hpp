// A compiled program with its weights and states, and the device it belongs to.
#pragma once
#include <mekik/backend.hpp>
#include <mekik/program.hpp>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plan.hpp"
#include "team.hpp"

namespace mekik::cpu {

struct Device {
  explicit Device(const Config& config);
  Settings settings;
  Team team;

 private:
  Device(const Kernels& kernels, bool exact, std::uint32_t threads) : settings{&kernels, exact, threads}, team{threads} {}
};

// Host memory, in huge pages where it is large. Throws Error{MEKIK_E_NO_MEMORY}.
class Arena : public HostMemory {
 public:
  Arena() = default;
  Arena(std::uint64_t bytes, const char* tag);
  std::uint8_t* data() const { return reinterpret_cast<std::uint8_t*>(HostMemory::data()); }
};

// A tensor in memory: row r at data + r * stride numbers.
struct View {
  float* data = nullptr;
  std::size_t stride = 0;
  float* row(std::size_t r) const { return data + r * stride; }
};

// Rows row0 .. row1 of one sequence that one attention task takes, for every kv head.
struct AttentionItem {
  std::uint32_t seq, row0, row1;
};
struct AttentionItems {
  std::uint32_t rows_per_item;
  std::vector<AttentionItem> items;
};

// Query heads: `each` of one kv head, in `parts` of at most 24.
struct AttentionHeads {
  std::uint32_t kv, each, parts;
};

// What a product reads: integers, or floats.
struct Input {
  std::optional<Acts> acts;
  View floats;
};

// Calls follow mekik_backend; each throws Error and then has changed nothing.
class Exec {
 public:
  Exec(Device& device, const mekik_program& program, const mekik_limits& limits);
  mekik_status weight(const mekik_weight& weight);  // what rows() answered, where that failed
  // Packed weights out and in: see mekik_backend_prepared.
  void id(std::uint8_t* sha256) const;
  std::span<const std::uint8_t> packed(std::uint32_t tensor) const;
  void map(const mekik_weight& weight, const void* data, std::uint64_t bytes);
  std::uint64_t submit(const mekik_batch& batch);
  std::uint64_t move(Strided<const mekik_move> moves);
  std::uint64_t read(std::uint32_t what, std::uint32_t group, std::int32_t id, void* to, std::uint64_t bytes);
  std::uint64_t write(std::uint32_t what, std::uint32_t group, std::int32_t id, const void* from, std::uint64_t bytes);
  bool completed(std::uint64_t ticket) const { return ticket <= ticket_; }
  // measure.cpp
  void profile(bool on);
  std::span<const std::uint64_t> spent() const { return spent_; }

 private:
  void run_phases();
  // load.cpp
  const WeightPlan& check_weight(const mekik_weight& w) const;
  std::uint8_t* own(const WeightPlan& plan);
  mekik_status load_matrix(const mekik_weight& w, const WeightPlan& plan, std::uint8_t* to);
  mekik_status load_vector(const mekik_weight& w, const WeightPlan& plan, std::uint8_t* to) const;
  void place_weight(const mekik_weight& w, const std::uint8_t* data);
  // batch.cpp
  void check_batch(const mekik_batch& b) const;
  void check_ids(const mekik_batch& b) const;
  void check_blocks(const mekik_batch& b) const;
  void check_slots(const mekik_batch& b) const;
  // run.cpp
  void bind(const mekik_batch& b);
  void bind_inputs();
  void bind_items();
  void schedule();
  std::uint32_t tasks_of(const PhasePlan& p) const;
  std::uint32_t tasks_of_linear(const PhasePlan& p) const;
  static void run_task(void* self, std::uint32_t phase, std::uint32_t task, std::uint32_t thread);
  static void run_stage(void* self, std::uint32_t phase, std::uint32_t task, std::uint32_t thread);
  std::uint32_t rows_in(std::int64_t domain) const;
  // ops/rowwise.cpp, ops/cache.cpp
  void run_rows(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const;
  void run_row(const RowOp& r, std::uint32_t row, std::uint32_t thread) const;
  void run_op_row(const mekik_op& op, const RowOp& r, std::uint32_t row, std::uint32_t thread) const;
  void rope_table_row(const RowOp& r, std::uint32_t row) const;
  bool run_special_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const;
  std::uint32_t id_of(std::uint32_t ids, std::uint32_t row, std::uint32_t i) const;
  template <class F>
  void decode_row(std::uint32_t weight, std::uint32_t id, float* panel, F&& f) const;
  void embed_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const;
  void mix_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const;
  std::uint8_t* stored_row(std::uint32_t state, std::uint32_t row, std::uint32_t& within) const;
  void append_codes(const StatePlan& s, std::uint8_t* key, std::uint8_t* value, std::uint32_t t, const float* k, const float* v,
                    float* work) const;
  void append_latent_codes(const LatentLayout& l, std::uint8_t* to, const float* latent, const float* rest, float* work) const;
  void append_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const;
  void append_latent_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const;
  void position_scale_row(const mekik_op& op, std::uint32_t row) const;
  void pool_row(const mekik_op& op, std::uint32_t row) const;
  void put_row(const mekik_op& op, std::uint32_t row) const;
  // ops/route.cpp
  void route_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const;
  void mixer_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const;
  void scale_choice_row(const mekik_op& op, std::uint32_t row) const;
  void spread_row(const mekik_op& op, std::uint32_t row) const;
  void combine_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const;
  // ops/linear.cpp
  void run_linear(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const;
  void run_stripe(const PhasePlan& p, std::uint32_t product, std::uint32_t stripe, std::uint32_t thread) const;
  void multiply(const Matrix& w, const Input& x, std::uint32_t stripe, std::uint32_t m0, std::uint32_t m1, float* panel, float* acc) const;
  Input input(const Product& p, std::uint32_t x) const;
  std::uint32_t stripes_per_task(const PhasePlan& p) const;
  // ops/experts.cpp
  struct ExpertRows {
    std::uint32_t expert, begin, end;  // sorted entries
    std::uint32_t size() const { return end - begin; }
  };
  ExpertRows expert_rows(const PhasePlan& p, std::uint32_t i) const;
  Groups groups(const PhasePlan& p) const;
  std::uint32_t active_experts(const PhasePlan& p) const;
  void run_group(const PhasePlan& p) const;
  void run_spread(const PhasePlan& p, std::uint32_t task) const;
  Acts entry_acts(const PhasePlan& p, const Product& product) const;
  void run_experts(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const;
  void run_expert(const PhasePlan& p, const ExpertRows& rows, std::uint32_t from, std::uint32_t to, std::uint32_t thread) const;
  Matrix expert_matrix(std::uint32_t weight, std::uint32_t expert) const;
  void run_expert_stripe(const PhasePlan& p, const Product& product, const Matrix& w, const ExpertRows& rows, std::uint32_t stripe,
                         std::uint32_t thread) const;
  // ops/attend.cpp
  AttentionHeads heads_of(const PhasePlan& p) const;
  const AttentionItems& items_for(std::uint32_t heads) const;
  Attention attention_task(const AttentionHeads& h, std::uint32_t task, View q, View out, std::uint32_t thread, std::uint32_t& kv_head,
                           std::uint32_t& seq) const;
  void in_blocks(Attention& a, std::uint32_t state, std::uint32_t kv_head, std::uint32_t seq) const;
  void run_attention(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const;
  void run_latent(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const;
  void pack_row(const RowOp& r, std::uint32_t row) const;
  void run_full(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const;
  // ops/recurrent.cpp
  bool find_staged();
  void stage(const PhasePlan& p) const;
  std::uint32_t slot_of(const PhasePlan& p) const {
    const mekik_op& op = program_.op(p.op);
    return op.in[op.n_in - 1];
  }
  float* slot_at(const SlotPlan& slot, std::int32_t id) const;
  const float* state_before(const SlotPlan& slot, std::uint32_t seq) const;
  std::uint32_t scan_parts(const PhasePlan& p) const;
  void run_scan(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const;
  void run_ssm(const mekik_op& op, std::uint32_t group, std::uint32_t first, std::uint32_t width, std::uint32_t columns, std::uint32_t t0,
               std::uint32_t t1, float* state, float* rest) const;
  void run_delta(const mekik_op& op, std::uint32_t head, std::uint32_t first, std::uint32_t width, std::uint32_t columns, std::uint32_t t0,
                 std::uint32_t t1, float* state, float* rest) const;
  void run_conv(const mekik_op& op, const SlotPlan& slot, std::uint32_t seq, std::uint32_t first, std::uint32_t columns) const;

  View view(std::uint32_t tensor) const { return views_[tensor]; }
  const float* vector(std::uint32_t tensor) const {
    return tensor == kNone ? nullptr : reinterpret_cast<const float*>(packed_[tensor] + plan_.weights[tensor].vector_offset);
  }
  const float* by_columns(std::uint32_t tensor) const {
    return reinterpret_cast<const float*>(packed_[tensor] + plan_.weights[tensor].columns_offset);
  }
  std::uint8_t* buffer(std::uint32_t b) const { return work_.data() + plan_.buffers[b].offset; }
  float* scratch(std::uint32_t thread) const {
    return reinterpret_cast<float*>(work_.data() + plan_.buffer_bytes + plan_.scratch_bytes / settings_.threads * thread);
  }
  Acts acts(std::uint32_t b, std::uint32_t nb, std::uint32_t x) const {  // of tensor x
    return {buffer(b), nb, static_cast<std::uint32_t>(plan_.max_rows(program_.tensor(x).shape[0]))};
  }
  std::uint8_t* place(std::uint32_t what, std::uint32_t group, std::int32_t id, std::uint64_t bytes) const;
  void check_move(const mekik_move& m) const;
  void copy(const mekik_move& m);
  template <class F>
  void copy_rows(const mekik_move& m, F&& copy_row) const;
  template <class T>
  void copy_floats(const StatePlan& s, const mekik_move& m, const std::uint8_t* from, std::uint8_t* to) const;
  void copy_codes(const StatePlan& s, const mekik_move& m, const std::uint8_t* from, std::uint8_t* to) const;

  Device& device_;
  const Settings settings_;
  mekik_limits limits_;
  Plan plan_;
  ProgramCopy copy_;
  ProgramReader program_;
  Arena weights_, work_, slots_;
  std::vector<Arena> pools_;
  std::vector<const std::uint8_t*> packed_;  // by tensor: in weights_, or where map() said; nullptr: not loaded
  std::vector<Matrix> matrices_;             // by tensor; of a stack the first, with its size
  struct ExpertScale {
    float scale, post;
  };
  std::vector<std::vector<ExpertScale>> expert_scales_;  // by tensor: of each matrix of a stack, where its form has such
  std::vector<View> views_;                              // by tensor; those of inputs and outputs change with the batch
  std::vector<std::uint32_t> bound_;
  std::vector<AttentionItems> items_;
  std::vector<Phase> phases_;
  mekik_batch batch_{};
  std::uint32_t *seq_of_ = nullptr, *first_put_ = nullptr, *next_put_ = nullptr;  // by token, by token, by row
  std::uint32_t *full_place_ = nullptr, *staged_ = nullptr;                       // by sequence: see pack_row and find_staged
  float* stages_ = nullptr;
  std::vector<std::int32_t> writer_;  // by slot, while find_staged runs: the token that is saved there
  std::uint64_t ticket_ = 0;
  std::vector<std::uint64_t> spent_, ends_;  // by operation; by phase. Empty: nobody wants to know
};

}  // namespace mekik::cpu
