// Internal: builds a Plan in program order. plan.cpp: checks and what every operation needs; ops/*.cpp: dispatches; plan_memory.cpp: where
// everything lies.
#pragma once
#include <map>
#include <string_view>

#include "plan.hpp"

namespace mekik::vulkan {

class Planner {
 public:
  Planner(const mekik_program& raw, const DeviceLimits& device, Plan& plan)
      : raw_{raw}, program_{raw}, limits_{plan.limits}, device_{device}, plan_{plan} {}
  void run();

 private:
  void check() const;
  void check_limits() const;
  void place_batch();
  void add(std::uint32_t o);
  // ops/rows.cpp
  void add_map(std::uint32_t o);
  void add_addend(std::uint32_t o, std::uint32_t out);
  void add_norm(std::uint32_t o, NormMode mode, std::uint32_t x, std::uint32_t w, std::uint32_t bias, double eps, std::uint32_t out);
  void add_norm_op(std::uint32_t o);
  void add_rope(std::uint32_t o);
  void add_rope_of(const mekik_op& op, std::uint32_t x, std::uint32_t table, double magnitude);
  void add_rows(std::uint32_t o);
  void add_embed(std::uint32_t o);
  void add_pool(std::uint32_t o);
  void add_argmax(std::uint32_t o);
  // ops/linear.cpp
  void add_linear(std::uint32_t o);
  void add_product(std::uint32_t x, std::uint32_t w, std::uint32_t bias, std::uint32_t residual, Ref out, std::uint32_t o, bool joins);
  void add_experts(std::uint32_t o);
  Dispatch& expert_dispatch(std::uint32_t w, std::uint32_t bias, std::uint64_t top, std::int64_t rows, Ref x, std::uint32_t x_of_choice,
                            Ref ids);
  Ref padded(Ref x, std::int64_t rows, std::uint64_t lists, std::uint64_t m);
  void add_route(std::uint32_t o);
  Ref aligned(std::uint32_t x, std::uint32_t weight, std::uint32_t o);
  std::vector<std::uint32_t> form_constants(const WeightPlan& w) const;
  // ops/attention.cpp
  void add_append(std::uint32_t o);
  void append(Ref k, Ref v, const StatePlan& s, std::uint32_t state, std::uint32_t pool);
  void add_attention(std::uint32_t o);
  void add_full(std::uint32_t o);
  void add_latent(std::uint32_t o);
  Ref turned(Ref x, std::int64_t rows, std::uint64_t lists, std::uint64_t n, bool divide, Ref to = {});
  void set_state(Dispatch& d, const StatePlan& s, std::uint32_t state, std::uint32_t pool);
  struct Sight {
    std::uint32_t kind = 0, span = 0;  // 0 causal, 1 all, 2 and 3 the same within chunks of `span`
    bool window = false;               // of `span`
  };
  Dispatch& attend(const StatePlan& s, std::uint32_t state, std::uint32_t pool, std::uint32_t heads, bool latent, const Sight& sight,
                   double scale, double cap, std::uint32_t sinks, std::uint32_t slopes);
  void look_back(std::uint32_t state, std::int64_t window);
  void shape_state(StatePlan& s, KvForm form, std::uint32_t heads, std::uint32_t first, std::uint32_t second) const;
  // ops/recurrent.cpp
  void add_scan(std::uint32_t o);
  std::uint32_t load_slot(std::uint32_t slot);
  // plan_memory.cpp
  void place_buffers();
  void place_weights();
  void place_states();
  void identify();

  std::uint32_t root(std::uint32_t tensor) const { return root_of(program_, tensor)->tensor; }
  const mekik_tensor& tensor(std::uint32_t i) const { return program_.tensor(i); }
  std::int64_t domain(std::uint32_t t) const { return tensor(t).shape[0]; }
  std::uint64_t row(std::uint32_t t) const { return row_size(tensor(t)); }
  // Opens a dispatch over the rows of `rows`; side by side with the one before where it `joins`.
  Dispatch& open(std::string shader, std::int64_t rows, std::uint64_t each, bool joins = false);
  std::uint32_t new_buffer(std::int64_t rows, std::uint64_t numbers);
  // Binds rows as operand 0 (out) to 3 (c), with offset and stride in their words; a buffer lives until now.
  void bind(Dispatch& d, std::uint32_t operand, Ref ref);
  void patch(Dispatch& d, Patch::Kind kind, std::uint32_t word, Ref ref);
  void vector(Dispatch& d, std::uint32_t word, std::uint32_t weight);  // kNone stays where there is none
  void use(std::uint32_t buffer) { plan_.buffers[buffer].last = moment_; }
  Ref read(std::uint32_t t, std::uint32_t o);   // a tensor that must have been written
  Ref write(std::uint32_t t, std::uint32_t o);  // a tensor that is written now
  WeightPlan& matrix(std::uint32_t tensor, std::uint64_t experts, bool plain);
  void bind_weight(Dispatch& d, std::uint32_t weight);
  std::uint64_t turn(std::uint32_t weight, std::uint64_t half, double magnitude);

  const mekik_program& raw_;
  ProgramReader program_;
  const mekik_limits& limits_;
  const DeviceLimits& device_;
  Plan& plan_;
  std::uint32_t moment_ = 0;
  std::map<std::uint32_t, std::uint32_t> written_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Ref> aligned_;  // (tensor, weight whose order of inputs it has or kNone) -> copy
};

}  // namespace mekik::vulkan
