// A small model on the backend: ragged steps, states that are read, written and moved.
#include "kinds/backend_session.hpp"
#include "programs.hpp"

namespace mekik::validate {

namespace {

class BackendWorkout final : public Workout {
 public:
  explicit BackendWorkout(const WorkoutPlan& plan) : plan_{plan} {}
  bool begin() override {
    mekik_device_info info{};
    info.struct_size = sizeof info;
    const mekik_backend table = table_of<mekik_backend>(plan_.component);
    if (!ask(plan_.mode, "probe", [&] { return table.probe(0, &info); }).ok()) return false;  // a machine without such a device
    device_ = std::make_unique<Device>(plan_);
    if (!*device_) return false;
    builder_ = std::make_unique<test::ProgramBuilder>(plan_.mode.seed);
    test::build_llama(*builder_, plan_.mode.seed % 2 == 0 ? "q8_0" : "f32", "f16", 0);
    std::string why;
    if (!device_->supports(*builder_, &why)) {
      rule("supports: lacks an operation that every backend has: " + why);
      return false;
    }
    session_ = std::make_unique<Session>(*device_, *builder_);
    return session_->ready();
  }
  unsigned steps() const override { return 6; }
  void step(unsigned i) override {
    const auto first = some_tokens(24, 7), second = some_tokens(24, 8);
    const auto part = [&](const std::vector<std::int32_t>& all, std::int32_t a, std::int32_t b, std::vector<std::int32_t> blocks) {
      return StepPart{{all.begin() + a, all.begin() + b}, a, std::move(blocks), a == 0 ? -1 : 0, 0};
    };
    const std::vector<std::int32_t> here{5, 2, 9, 60}, there{1, 0, 63, 7};
    if (i == 0) keep(session_->step({part(first, 0, 7, here), part(second, 0, 3, there)}));
    if (i == 1) keep(session_->step({part(second, 3, 10, there), part(first, 7, 8, here)}));
    if (i == 2) states();
    if (i == 3) keep(session_->step({part(first, 8, 9, {5, 2, 20, 60}), part(second, 10, 11, there)}));
    if (i == 4) keep(session_->step({part(second, 11, 12, there)}));
    if (i == 5) refusals();
  }
  void end() override {
    session_.reset();
    device_.reset();
  }

 private:
  void keep(const std::vector<float>& rows) {
    for (const float x : rows) transcript.add("logits", x);
  }
  // Block 9, of the first sequence, goes to block 20 by way of the host or of move().
  void states() {
    std::vector<std::uint8_t> bytes(session_->plan().block_bytes[0]), again = bytes;
    if (plan_.mode.seed % 3 == 0) {
      expect_ok(plan_.mode, "move", session_->move({{MEKIK_WHAT_BLOCK, 0, 9, 20, 0, 0, 0, 0}}));
    } else if (expect_ok(plan_.mode, "state_read", session_->state(false, MEKIK_WHAT_BLOCK, 9, bytes))) {
      expect_ok(plan_.mode, "state_write", session_->state(true, MEKIK_WHAT_BLOCK, 20, bytes));
      if (expect_ok(plan_.mode, "state_read", session_->state(false, MEKIK_WHAT_BLOCK, 20, again)) && again != bytes)
        rule("state_read: gives other bytes than state_write() brought");
    }
  }
  void refusals() {
    const auto refuse = [&](const Answer& a, const char* when) {
      if (a.ok()) rule(std::string{"submit: answered OK "} + when);
    };
    const std::vector<StepPart> one{{{1, 2}, 0, {3}, -1, 0}};
    refuse(session_->submit(one, {.token = 1 << 20}, nullptr), "for a token that the embedding lacks");
    refuse(session_->submit(one, {.token = -7}, nullptr), "for a negative token");
    refuse(session_->submit(one, {.block = 64}, nullptr), "for a block behind the last");
    refuse(session_->submit(one, {.block = -1}, nullptr), "where a block that is needed is not there");
    for (std::uint64_t bit = 1; bit <= MEKIK_USE_TYPES; bit *= 2)
      if ((session_->plan().uses & bit) == 0) {
        const Answer a = session_->submit(one, {.uses = bit}, nullptr);
        if (a.code != MEKIK_E_UNSUPPORTED)
          rule("submit: answered " + std::string{code_name(a.code)} + " to a use that its plan did not list (bit " + std::to_string(bit) +
               "); UNSUPPORTED is right");
        break;
      }
    const mekik_backend& table = device_->table();
    const Answer unknown = ask(plan_.mode, "wait", [&] { return table.wait(session_->exec(), session_->last_ticket() + 1000, 0); });
    if (unknown.ok()) rule("wait: answered OK for a ticket that was never given out");
    std::vector<std::uint8_t> few(session_->plan().block_bytes[0] > 1 ? session_->plan().block_bytes[0] - 1 : 1),
        whole(session_->plan().block_bytes[0]);
    if (session_->state(false, MEKIK_WHAT_BLOCK, 5, few).ok())
      rule("state_read: answered OK for a number of bytes that is not block_bytes");
    if (session_->state(false, MEKIK_WHAT_BLOCK, 64, whole).ok()) rule("state_read: answered OK for a block behind the last");
    if (session_->state(true, MEKIK_WHAT_BLOCK, -1, whole).ok()) rule("state_write: answered OK for the block -1");
    if (session_->move({{MEKIK_WHAT_BLOCK, 0, 64, 1, 0, 0, 0, 0}}).ok()) rule("move: answered OK for a block behind the last");
    if (session_->move({{MEKIK_WHAT_ROWS, 0, 1, 2, 3, 0, 2, 0}}).ok()) rule("move: answered OK for rows past the end of a block");
    keep(session_->step(one));  // and it goes on
  }

  const WorkoutPlan plan_;
  std::unique_ptr<test::ProgramBuilder> builder_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Session> session_;
};

}  // namespace

std::unique_ptr<Workout> make_backend(const WorkoutPlan& plan) { return std::make_unique<BackendWorkout>(plan); }

}  // namespace mekik::validate
