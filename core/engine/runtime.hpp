// What the loop works on. Engine::start fills it from a Model; tests fill it with a backend of their own.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "metrics/metrics.hpp"
#include "plugin/registry.hpp"
#include "program/program.hpp"
#include "sample/chain.hpp"
#include "text/tokenizer.hpp"

namespace mekik::engine {

// An instance of a component together with its function table; destroyed by it.
template <class Table, class T>
class Instance {
 public:
  Instance() = default;
  Instance(const Table* table, T* self) : self_{self, Destroy{table}} {}
  const Table* operator->() const { return self_.get_deleter().table; }
  T* get() const { return self_.get(); }
  explicit operator bool() const { return self_ != nullptr; }

 private:
  struct Destroy {
    const Table* table = nullptr;
    void operator()(T* self) const { table->destroy(self); }
  };
  std::unique_ptr<T, Destroy> self_;
};

// Makes the instance of a component that a pipeline uses. Errors: the component's own, which begin with the place of a rejected key.
template <class Table, class T>
Result<Instance<Table, T>> make_instance(plugin::Registry& registry, const config::Use& use) {
  MEKIK_TRY(component, registry.find(use));
  const auto* table = &component.template table<Table>();
  T* self = nullptr;
  const auto* options = use.options ? plugin::abi_config(*use.options) : nullptr;
  MEKIK_CHECK_OK(plugin::to_status(table->create(component.host, options, &self), use.kind + " " + use.name));
  return Instance<Table, T>{table, self};
}

// The same for a drafter, which knows the vocabulary.
Result<Instance<mekik_drafter, mekik_draft>> make_drafter(plugin::Registry& registry, const config::Use& use, const mekik_vocab& vocab);

// The links of a pipeline's sampler chain.
Result<std::vector<sample::Link>> sampler_links(plugin::Registry& registry, const config::Pipeline& pipeline);

// The ABI's view of a tokenizer; the tokenizer (may be null: pieces are empty, no flags) must outlive it.
mekik_vocab vocab_view(const text::Tokenizer* tokenizer, std::uint32_t vocab);

// Whether the cache keeps anything beyond the backend's memory.
bool has_tier(const mekik_cache_policy& table, mekik_cache* cache);

struct Runtime {
  std::string model_name;
  // The model. All of it outlives the loop.
  const mekik_backend* backend = nullptr;
  mekik_exec* exec = nullptr;
  mekik_plan plan{};
  mekik_limits limits{};
  std::uint32_t vocab = 0, context = 0;     // tokens
  std::vector<program::StateGroup> groups;  // at most MEKIK_MAX_GROUPS; limits.n_blocks holds the pool of each
  bool slots = false;                       // the program keeps recurrent states: a slot per sequence
  std::uint32_t row_size = 0;               // numbers in a row of the output: the vocabulary, or a vector's size
  bool vectors = false;                     // the output is no logits: a request's answer is its row
  bool whole = false;                       // a sequence must come in one step
  bool token_types = false;                 // the program reads them
  const text::Tokenizer* tokenizer = nullptr;
  std::string extra_key;  // what stored blocks depend on besides their tokens and the plan's ids
  // The pipeline's components.
  std::vector<sample::Link> samplers;
  Instance<mekik_scheduler, mekik_sched> scheduler;
  std::string scheduler_name;
  Instance<mekik_cache_policy, mekik_cache> cache;  // may be empty
  Instance<mekik_drafter, mekik_draft> drafter;     // may be empty
  std::string drafter_name;
  std::uint32_t max_drafts = 0;  // of a sequence in a step; limits.max_rows has more than limits.max_seqs for them
  bool adaptive_drafts = true;
  bool tier = false;                     // the cache has a slower tier
  std::unique_ptr<Runtime> draft_model;  // of a drafter that wants one: backend, exec, plan, limits, groups, sizes
  std::vector<Instance<mekik_sink_api, mekik_sink>> sinks;
  // The process.
  metrics::Metrics* metrics = nullptr;
  const Clock* clock = nullptr;
  std::uint32_t max_queue = 256;
  std::uint64_t watchdog_ns = 30'000'000'000;
};

}  // namespace mekik::engine
