// Runs programs on any backend library through the C ABI.
#pragma once
#include <mekik/testing.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program_builder.hpp"

namespace mekik::test {

// A backend of the build, by name, with options set ("math=exact").
class Backend {
 public:
  Backend(const std::string& name, const std::vector<std::string>& settings);
  const mekik_backend& table() const { return *table_; }
  const mekik_component& component() const { return *component_; }
  testing::FakeHost& host() { return host_; }
  const std::string& name() const { return name_; }
  bool row_invariant() const;
  std::unique_ptr<mekik_device, void (*)(mekik_device*)> open();

 private:
  testing::FakeHost host_{2};
  std::unique_ptr<testing::Library> library_;
  const mekik_component* component_;
  const mekik_backend* table_;
  std::string name_;
};

// One sequence's part of a step.
struct Part {
  std::vector<std::int32_t> tokens;
  std::int32_t context = 0;          // stored before
  std::vector<std::int32_t> blocks;  // of every group
  std::int32_t state_in = -1, state_out = -1;
};

struct Sizes {
  std::uint32_t max_tokens = 64, max_seqs = 8, block_tokens = 4, n_blocks = 64, n_slots = 16;
};

class Session {
 public:
  Session(Backend& backend, ProgramBuilder& builder, const Sizes& sizes = {});  // compiled, weights loaded; throws with the reason
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // Every token's row of "logits", [n_tokens][width].
  std::vector<float> step(const std::vector<Part>& parts);
  // The batch that step() makes, for tests that spoil it; `submit` answers the status.
  struct Batch {
    mekik_batch raw{};
    std::vector<std::int32_t> tokens, positions, seq_start, context, rows, state_in, state_out, table;
    std::vector<const std::int32_t*> tables;
    std::vector<float> logits;
  };
  std::unique_ptr<Batch> batch(const std::vector<Part>& parts) const;
  mekik_status submit(const mekik_batch& batch, std::uint64_t* ticket = nullptr);
  void fill_states(std::uint8_t byte);  // blocks and slots
  const mekik_plan& plan() const { return plan_; }
  const mekik_limits& limits() const { return limits_; }
  mekik_exec* exec() const { return exec_; }
  Backend& backend() { return backend_; }
  std::size_t width() const { return width_; }

 private:
  void check(mekik_status status, const std::string& what) const;
  Backend& backend_;
  std::unique_ptr<mekik_device, void (*)(mekik_device*)> device_;
  mekik_limits limits_{};
  mekik_plan plan_{};
  mekik_exec* exec_ = nullptr;
  std::uint32_t n_groups_;
  bool has_slots_;
  std::size_t width_ = 0;
};

// Does the backend run every operation of this program natively? `why` says what not.
bool supports_all(Backend& backend, ProgramBuilder& builder, std::string* why);

}  // namespace mekik::test
