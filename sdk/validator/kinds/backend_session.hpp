// A program on a backend: everything that is lent is taken back as soon as the header says so.
#pragma once
#include <mekik/program.hpp>

#include <memory>
#include <string>
#include <vector>

#include "program_builder.hpp"
#include "support/instance.hpp"

namespace mekik::validate {

// One sequence's part of a step.
struct StepPart {
  std::vector<std::int32_t> tokens;
  std::int32_t context = 0;          // stored before
  std::vector<std::int32_t> blocks;  // of every group
  std::int32_t state_in = -1, state_out = -1;
};

struct SessionSizes {
  std::uint32_t max_tokens = 64, max_seqs = 8, block_tokens = 4, n_blocks = 64, n_slots = 16;
};

class Device {
 public:
  explicit Device(const WorkoutPlan& plan);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  mekik_device* raw() const { return raw_; }
  explicit operator bool() const { return raw_ != nullptr; }
  const mekik_backend& table() const { return table_; }
  const WorkoutPlan& plan() const { return plan_; }
  // 1: every operation is native; the first that is not is in `why`.
  bool supports(test::ProgramBuilder& b, std::string* why) const;

 private:
  WorkoutPlan plan_;
  mekik_backend table_;
  mekik_device* raw_ = nullptr;
};

// A program's arrays, lent for one call.
const mekik_program* lend_program(Lent& lent, test::ProgramBuilder& b);
mekik_limits limits_for(test::ProgramBuilder& b, const SessionSizes& sizes);

class Session {
 public:
  Session(Device& device, test::ProgramBuilder& b, const SessionSizes& sizes = {}, bool weights = true);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  bool ready() const { return exec_ != nullptr; }
  // Every token's row of "logits", [n_tokens][width]; empty: it failed.
  std::vector<float> step(const std::vector<StepPart>& parts);
  struct Spoil {  // what is wrong on purpose
    std::int32_t token = -1, block = -2, state = -2;
    std::uint64_t uses = 0;
    std::uint32_t more_tokens = 0;
  };
  Answer submit(const std::vector<StepPart>& parts, const Spoil& spoil, std::vector<float>* out);
  Answer state(bool write, std::uint32_t what, std::int32_t id, std::vector<std::uint8_t>& bytes);
  Answer move(const std::vector<mekik_move>& moves);
  const mekik_plan& plan() const { return plan_; }
  const mekik_limits& limits() const { return limits_; }
  mekik_exec* exec() const { return exec_; }
  std::size_t width() const { return width_; }
  std::uint64_t last_ticket() const { return last_; }

 private:
  void load(test::ProgramBuilder& b);
  Answer wait(std::uint64_t ticket);
  Device& device_;
  const Mode& mode_;
  mekik_limits limits_{};
  mekik_plan plan_{};
  mekik_exec* exec_ = nullptr;
  std::uint32_t n_groups_ = 0;
  bool has_slots_ = false;
  std::size_t width_ = 0;
  std::uint64_t last_ = 0;
  bool any_ticket_ = false;
};

std::vector<std::int32_t> some_tokens(std::size_t n, std::uint64_t seed);

}  // namespace mekik::validate
