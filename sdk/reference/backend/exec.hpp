// A compiled program with its weights and states, on the host's memory. Whoever writes a backend can begin here: derive, override run() for
// the operations that are there so far, and let the reference run the rest.
#pragma once
#include <mekik/backend.hpp>

#include <memory>
#include <vector>

#include "reference/backend/layout.hpp"
#include "reference/execute.hpp"

namespace mekik::reference_backend {

inline constexpr std::uint64_t kUses =
    MEKIK_USE_TREE | MEKIK_USE_STATE_OUT | MEKIK_USE_EMBEDS | MEKIK_USE_AXES | MEKIK_USE_SPANS | MEKIK_USE_HIDDEN | MEKIK_USE_TYPES;

// Calls follow mekik_backend; each throws Error and then has changed nothing.
class Exec {
 public:
  Exec(const mekik_program& program, const mekik_limits& limits);
  virtual ~Exec() = default;
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;
  mekik_status weight(const mekik_weight& weight);  // what its rows() answered, where that failed
  std::uint64_t submit(const mekik_batch& batch);
  std::uint64_t move(Strided<const mekik_move> moves);
  std::uint64_t read(std::uint32_t what, std::uint32_t group, std::int32_t id, void* to, std::uint64_t bytes);
  std::uint64_t write(std::uint32_t what, std::uint32_t group, std::int32_t id, const void* from, std::uint64_t bytes);
  bool completed(std::uint64_t ticket) const { return ticket <= ticket_; }

 protected:
  // Runs one operation of a step, whose operands reference::Operands{program(), op, memory(), step} finds. Its rows come in any number, and
  // must not depend on each other. Must not throw.
  virtual void run(std::uint32_t op, const reference::Step& step);
  const ProgramReader& program() const { return program_; }
  const reference::Memory& memory() const { return memory_; }

 private:
  std::byte* place(std::uint32_t what, std::uint32_t group, std::int32_t id, std::uint64_t bytes) const;
  void check_move(const mekik_move& move) const;
  void copy(const mekik_move& move);
  void bind(const mekik_batch& batch);
  void bring_out(const mekik_batch& batch);

  ProgramCopy copy_;
  ProgramReader program_;
  mekik_limits limits_;
  Layout layout_;
  HostMemory arena_, slots_;
  std::vector<HostMemory> pools_, weight_memory_;  // by group; by tensor
  std::vector<std::unique_ptr<reference::Weight>> weights_;
  reference::Memory memory_;
  std::vector<std::uint32_t> seq_of_;
  std::vector<std::int32_t> segments_, token_types_;
  std::uint64_t ticket_ = 0;
};

// Everything that execute() relies on and only the batch knows. Throws Error.
void check_batch(const ProgramReader& program, const Layout& layout, const mekik_limits& limits, const mekik_batch& batch);

}  // namespace mekik::reference_backend
