// Internal: builds a Plan in program order. plan.cpp: checks, rows and products; plan_families.cpp: the other operations;
// plan_memory.cpp: where everything lies.
#pragma once
#include <map>
#include <string_view>

#include "plan.hpp"

namespace mekik::cpu {

class Planner {
 public:
  Planner(const mekik_program& raw, const mekik_limits& limits, const Settings& settings, Plan& plan)
      : raw_{raw}, program_{raw}, limits_{limits}, settings_{settings}, plan_{plan} {}
  void run();

 private:
  // plan.cpp
  void check() const;
  void check_limits() const;
  void find_outputs();
  void add(std::uint32_t o);
  void add_linear(std::uint32_t o);
  void add_row(std::uint32_t o);
  void add_attention(std::uint32_t o);
  void look_back(std::uint32_t state, std::int64_t window);
  void prepare(std::uint32_t x, Product& p);
  std::uint32_t gathered(std::uint32_t x, std::uint32_t weight);
  std::uint32_t rope_table(const mekik_op& op, std::uint32_t weight);
  void copy_outputs();
  // plan_families.cpp
  void add_full(std::uint32_t o);
  void add_scan(std::uint32_t o);
  void add_experts(std::uint32_t o);
  void add_latent(std::uint32_t o);
  std::uint32_t grouping_of(std::uint32_t ids, std::uint32_t experts, std::int64_t domain_of_rows);
  void spread(std::uint32_t x, std::uint32_t source, std::uint32_t grouping, std::int64_t domain_of_rows, Product& p);
  // plan_memory.cpp
  void place_buffers();
  void place_weights();
  void place_states();
  void place_state(std::uint32_t tensor);
  void place_codes(StatePlan& s, std::uint32_t bits, std::string_view name) const;
  void place_slots();
  void count_scratch();
  std::uint64_t scan_scratch(std::uint32_t o) const;
  void identify();

  std::uint32_t root(std::uint32_t tensor) const { return root_of(program_, tensor)->tensor; }
  std::int64_t domain(std::uint32_t tensor) const { return program_.tensor(tensor).shape[0]; }
  PhasePlan& phase() { return plan_.phases.back(); }
  std::uint32_t now() const { return static_cast<std::uint32_t>(plan_.phases.size() - 1); }
  PhasePlan& open(PhasePlan::Kind kind, std::int64_t domain_of_rows, std::uint32_t op);
  void open_rows(std::int64_t domain_of_rows, bool fresh = false) {
    if (!fresh && !plan_.phases.empty() && phase().kind == PhasePlan::Kind::rows && phase().domain == domain_of_rows) return;
    open(PhasePlan::Kind::rows, domain_of_rows, kNone);
  }
  std::uint32_t new_buffer(std::uint64_t bytes) {
    plan_.buffers.push_back({round_up(bytes, 64), 0, now(), now()});
    return static_cast<std::uint32_t>(plan_.buffers.size() - 1);
  }
  void use_buffer(std::uint32_t b) {
    if (b != kNone) plan_.buffers[b].last = std::max(plan_.buffers[b].last, now());
  }
  void touch(std::uint32_t x) { use_buffer(plan_.buffer_of[root(x)]); }
  void read(std::uint32_t tensor, std::uint32_t op);   // a buffer must have been written; it lives until now
  void write(std::uint32_t tensor, std::uint32_t op);  // a buffer of its own from now on
  void use_vector(std::uint32_t tensor) {
    if (tensor != kNone) plan_.weights[tensor].vector = true;
  }
  void use_columns(std::uint32_t tensor) { plan_.weights[tensor].columns = true; }
  const WeightPlan& matrix(std::uint32_t tensor, std::uint64_t experts = 1);
  bool integer(const Matrix& m) const { return !settings_.exact && m.integer && settings_.kernels->int_gemm(m) != nullptr; }
  bool same_acts(std::uint32_t a, std::uint32_t b) const {
    return same_inputs(a, b) && plan_.weights[a].layout.matrix.act_outlier == plan_.weights[b].layout.matrix.act_outlier;
  }
  bool same_inputs(std::uint32_t a, std::uint32_t b) const { return plan_.weights[a].layout.inputs == plan_.weights[b].layout.inputs; }

  struct Prepared {  // acts, or gathered floats, of tensor x in the order of inputs of `weight`
    std::uint32_t x, weight, buffer;
  };
  struct Spread {
    std::uint32_t x, grouping;
    Product product;
  };
  struct Table {
    std::uint32_t weight;
    float magnitude;
    std::uint32_t buffer;
  };
  const mekik_program& raw_;
  ProgramReader program_;
  const mekik_limits& limits_;
  const Settings& settings_;
  Plan& plan_;
  std::map<std::uint32_t, std::uint32_t> written_;
  std::vector<Prepared> quantised_, gathered_;
  std::vector<Spread> spreads_;
  std::vector<Table> tables_;
};

}  // namespace mekik::cpu
