// A compiled program with its weights and states, and the device it belongs to.
#pragma once
#include <mekik/backend.hpp>
#include <mekik/program.hpp>

#include <memory>
#include <optional>
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

// Calls follow mekik_backend; each throws Error and then has changed nothing.
class Exec {
 public:
  Exec(Device& device, const mekik_program& program, const mekik_limits& limits);
  mekik_status weight(const mekik_weight& weight);  // what rows() answered, where that failed
  std::uint64_t submit(const mekik_batch& batch);
  std::uint64_t move(Strided<const mekik_move> moves);
  std::uint64_t read(std::uint32_t what, std::uint32_t group, std::int32_t id, void* to, std::uint64_t bytes);
  std::uint64_t write(std::uint32_t what, std::uint32_t group, std::int32_t id, const void* from, std::uint64_t bytes);
  bool completed(std::uint64_t ticket) const { return ticket <= ticket_; }

 private:
  // load.cpp
  mekik_status load_matrix(const mekik_weight& w, const WeightPlan& plan);
  mekik_status load_vector(const mekik_weight& w, const WeightPlan& plan);
  // batch.cpp
  void check_batch(const mekik_batch& b) const;
  void check_blocks(const mekik_batch& b) const;
  // run.cpp
  void bind(const mekik_batch& b);
  void schedule();
  std::uint32_t tasks_of(const PhasePlan& p) const;
  static void run_task(void* self, std::uint32_t phase, std::uint32_t task, std::uint32_t thread);
  std::uint32_t rows_in(std::int64_t domain) const;
  // ops/
  void run_rows(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const;
  void run_row(const RowOp& r, std::uint32_t row, std::uint32_t thread) const;
  void run_op_row(const mekik_op& op, const RowOp& r, std::uint32_t row, std::uint32_t thread) const;
  void embed_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const;
  void append_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const;
  void pool_row(const mekik_op& op, std::uint32_t row) const;
  void put_row(const mekik_op& op, std::uint32_t row) const;
  void run_linear(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const;
  void run_stripe(const PhasePlan& p, std::uint32_t product, std::uint32_t stripe, std::uint32_t thread) const;
  void multiply(const Product& p, std::uint32_t x, std::uint32_t stripe, std::uint32_t m0, std::uint32_t m1, float* panel,
                float* acc) const;
  std::uint32_t stripes_per_task(const PhasePlan& p) const;
  void run_attention(const PhasePlan& p, std::uint32_t task, std::uint32_t thread) const;
  const AttentionItems& items_for(std::uint32_t heads) const;

  View view(std::uint32_t tensor) const { return views_[tensor]; }
  const float* vector(std::uint32_t tensor) const {
    return tensor == kNone ? nullptr : reinterpret_cast<const float*>(weights_.data() + plan_.weights[tensor].vector_offset);
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
  template <class T>
  void copy_rows(const StatePlan& s, const mekik_move& m, const std::uint8_t* from, std::uint8_t* to) const;

  Device& device_;
  const Settings settings_;
  mekik_limits limits_;
  Plan plan_;
  ProgramCopy copy_;
  ProgramReader program_;
  Arena weights_, work_;
  std::vector<Arena> pools_;
  std::vector<bool> loaded_;
  std::vector<Matrix> matrices_;  // by tensor
  std::vector<View> views_;       // by tensor; those of inputs and outputs change with the batch
  std::vector<std::uint32_t> bound_;
  std::vector<AttentionItems> items_;
  std::vector<Phase> phases_;
  mekik_batch batch_{};
  std::uint32_t *seq_of_ = nullptr, *first_put_ = nullptr, *next_put_ = nullptr;
  std::uint64_t ticket_ = 0;
};

}  // namespace mekik::cpu
