// What Engine::start makes a loop of; who turns one by hand starts here, too.
#pragma once
#include "engine/engine.hpp"
#include "engine/runtime.hpp"

namespace mekik::engine {

// Scheduler, cache and sampler chain of a pipeline.
Status add_components(const config::Pipeline& pipeline, plugin::Registry& registry, Runtime& runtime);
// All that a loaded model's loop works on.
Result<Runtime> make_runtime(Model& model, plugin::Registry& registry, metrics::Metrics& metrics, const Engine::Options& options);

}  // namespace mekik::engine
