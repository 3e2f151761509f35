// A model made ready: file, page, program, backend, weights, tokenizer, template, all within a memory plan.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "config/pipeline.hpp"
#include "engine/memory_plan.hpp"
#include "engine/vectors.hpp"
#include "plugin/registry.hpp"
#include "program/page.hpp"
#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"
#include "weights/store.hpp"

namespace mekik::engine {

class Model {
 public:
  // All checks that need no weights: page, shapes, schemes, backend support, plan against the machine. `mekik check` ends here.
  static Result<std::unique_ptr<Model>> open(const config::Pipeline& pipeline, plugin::Registry& registry, const program::Pages& pages);
  // Compiles and loads the weights. Once.
  Status load();
  ~Model();

  const config::Pipeline& pipeline() const;
  const std::string& name() const;
  const MemoryPlan& plan() const;
  const std::string& fingerprint() const;   // of all that decides what is computed, once loaded; empty: the cache keeps nothing elsewhere
  const program::Program& program() const;  // lowered
  program::Task task() const;               // never automatic
  const std::vector<std::int32_t>& score_tokens() const;  // for no and yes; empty: the program's output is the score
  const Scoring& scoring() const;                         // of task score, if
  const Status& scoring_status() const;                   // does not say why there is none
  const std::string& pair_template() const;               // with {query} and {document}; empty: the tokenizer's pair
  const text::Tokenizer* tokenizer() const;               // nullptr: the file has none
  const Status& tokenizer_status() const;                 // why not
  const text::ChatTemplate* chat_template() const;        // nullptr: none
  const Status& template_status() const;                  // why not
  const std::vector<std::string>& notes() const;          // assumed values, decoded tensors, fallbacks
  std::uint32_t vocab() const;
  std::uint32_t context() const;

  // Has the memory of the plan made real: a server does so beside its work, so that no answer waits for pages, or finds that they are gone.
  // Any thread, after load(); ends early when `stop` is set.
  void make_resident(const std::atomic<bool>& stop) const;

  const Model* draft() const;  // of a drafter that has a model; or nullptr

  // For the engine.
  const mekik_backend& backend() const;
  mekik_exec* exec() const;
  const mekik_plan& backend_plan() const;
  const mekik_limits& limits() const;
  const mekik_device_info& device() const;
  const mekik_backend_measure* measure() const;  // nullptr: the backend does not offer it
  mekik_device* opened_device() const;

 private:
  Model();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mekik::engine
