// A model made ready: file, page, program, backend, weights, tokenizer, template, all within a memory plan.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "config/pipeline.hpp"
#include "plugin/registry.hpp"
#include "program/page.hpp"
#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"
#include "weights/store.hpp"

namespace mekik::engine {

// The plan that is printed before load and held to.
struct MemoryPlan {
  std::uint64_t file_bytes = 0;       // mapped, dropped after loading
  std::uint64_t weight_bytes = 0;     // packed, on the device
  std::uint64_t kv_bytes = 0;         // all blocks
  std::uint64_t slot_bytes = 0;       // recurrent states
  std::uint64_t work_bytes = 0;       // activations and scratch of the backend
  std::uint64_t host_bytes = 0;       // of the core: tokenizer, program, batch arrays (estimated)
  std::uint64_t peak_load_bytes = 0;  // what loading needs beyond the above, for a moment
  std::uint64_t machine_bytes = 0;
  std::uint32_t n_blocks = 0, block_tokens = 0, context = 0, max_sequences = 0, max_batch_tokens = 0;
  std::uint64_t total() const { return weight_bytes + kv_bytes + slot_bytes + work_bytes + host_bytes; }
  std::string render() const;
};

class Model {
 public:
  struct Opened;  // everything known before weights are touched

  // All checks that need no weights: page, shapes, schemes, backend support, plan against the machine. `mekik check` ends here.
  static Result<std::unique_ptr<Model>> open(const config::Pipeline& pipeline, plugin::Registry& registry, const program::Pages& pages);
  // Compiles and loads the weights. Once.
  Status load();
  ~Model();

  const config::Pipeline& pipeline() const;
  const std::string& name() const;
  const MemoryPlan& plan() const;
  const program::Program& program() const;          // lowered
  const text::Tokenizer* tokenizer() const;         // nullptr: the file has none
  const Status& tokenizer_status() const;           // why not
  const text::ChatTemplate* chat_template() const;  // nullptr: none
  const Status& template_status() const;            // why not
  const std::vector<std::string>& notes() const;    // assumed values, decoded tensors, fallbacks
  std::uint32_t vocab() const;
  std::uint32_t context() const;

  // For the engine.
  const mekik_backend& backend() const;
  mekik_exec* exec() const;
  const mekik_plan& backend_plan() const;
  const mekik_limits& limits() const;
  const mekik_device_info& device() const;

 private:
  Model();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mekik::engine
