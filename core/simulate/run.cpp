#include "simulate/run.hpp"

#include <algorithm>
#include <optional>

#include "base/log.hpp"
#include "engine/start.hpp"
#include "simulate/backend.hpp"

namespace mekik::simulate {
namespace {

constexpr std::uint64_t kEpochNs = 1'000'000'000;         // a time of 0 means none to some
constexpr std::uint64_t kBlockedNs = 2'000'000;           // the engine's thread looks again so soon when nothing can run
constexpr std::uint64_t kStuckNs = 3'600'000'000'000;     // without a step, and nothing to come
constexpr std::uint64_t kDefaultCacheBytes = 1ull << 30;  // as of a pipeline that names no cache.memory
constexpr std::uint64_t kMostRealWaitNs = 1'000'000'000;
constexpr std::uint32_t kMostBlocks = 1u << 26;

std::uint32_t blocks_for(std::uint64_t tokens, std::uint32_t block) { return static_cast<std::uint32_t>((tokens + block - 1) / block); }

// What a model's plan would say.
Status plan_machine(const Scenario& scenario, engine::Runtime& r) {
  const config::Pipeline& p = scenario.pipeline;
  r.model_name = "simulated";
  r.context = scenario.machine.context;
  if (p.model.context > 0) r.context = std::min(r.context, p.model.context);
  r.groups.push_back({0});
  r.limits.struct_size = sizeof r.limits;
  r.limits.max_tokens = p.max_batch_tokens;
  r.limits.max_seqs = r.limits.max_rows = p.max_sequences;
  r.limits.block_tokens = p.block_tokens;
  r.limits.max_blocks = blocks_for(r.context, p.block_tokens);
  r.plan.struct_size = sizeof r.plan;
  r.plan.block_bytes[0] = scenario.machine.token_bytes * p.block_tokens;
  const std::uint64_t blocks = (p.cache_bytes > 0 ? p.cache_bytes : kDefaultCacheBytes) / r.plan.block_bytes[0];
  if (blocks == 0) return invalid("[cache] memory does not hold one block of " + std::to_string(p.block_tokens) + " tokens; raise it");
  r.limits.n_blocks[0] = static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, kMostBlocks));
  return {};
}

void plan_model(const engine::Model& model, engine::Runtime& r) {
  r.model_name = model.name();
  r.context = model.context();
  r.plan = model.backend_plan();
  r.limits = model.limits();
  for (const auto& group : model.program().groups) r.groups.push_back(group);
  r.slots = model.program().n_slots > 0;
}

std::uint32_t vocabulary_of(const Scenario& scenario, const engine::Model* model) {
  return model != nullptr ? std::min(model->vocab(), scenario.machine.vocabulary) : scenario.machine.vocabulary;
}

void read_metrics(const metrics::Metrics& metrics, Outcome& out) {
  const auto snapshot = metrics.snapshot();
  for (const auto& s : snapshot.samples) {
    const std::string_view name{s.name};
    const auto value = static_cast<std::uint64_t>(s.value);
    if (name == "mekik_steps_total") out.steps += value;
    if (name == "mekik_step_sequences_total") out.step_sequences += value;
    if (name == "mekik_step_tokens_total") out.step_tokens += value;
    if (name == "mekik_num_preemptions_total") out.preemptions += value;
    if (name == "mekik_prefix_cache_queries_total") out.cache_query_tokens += value;
    if (name == "mekik_prefix_cache_hits_total") out.cache_hit_tokens += value;
    if (name != "mekik_cache_miss_total") continue;
    const std::string labels = s.labels;
    const auto at = labels.find("reason=");
    out.misses[labels.substr(at + 7, labels.find(',', at) - at - 7)] += value;
  }
}

Outcome outcome_of(const Traffic& traffic, const metrics::Metrics& metrics, std::uint32_t places) {
  Outcome out;
  out.loads = traffic.tallies();
  out.tenants = traffic.tenants();
  out.seconds = static_cast<double>(traffic.last_ns()) / 1e9;
  out.places = places;
  read_metrics(metrics, out);
  return out;
}

struct Under {  // way
  engine::Loop& loop;
  const Traffic& traffic;
  const SimulatedClock& clock;
  const SimulatedBackend& backend;
  const std::function<void(std::uint64_t until_ns)>& pass;
  const std::function<Status(const engine::Loop&)>& after_step;
};

// As the engine's thread does. Returns how many waited at most.
Result<std::uint64_t> turn_to_the_end(const Scenario& scenario, const Under& way) {
  std::uint64_t most_waiting = 0, ran_ns = way.clock.now;
  while (true) {
    const auto turn = way.loop.step();
    const auto stats = way.loop.stats();
    most_waiting = std::max<std::uint64_t>(most_waiting, stats.waiting);
    if (way.after_step) MEKIK_CHECK_OK(way.after_step(way.loop));
    const std::uint64_t due = way.traffic.next_ns();
    if (turn == engine::Loop::Turn::ran) {
      way.pass(way.clock.now + static_cast<std::uint64_t>(host_ns(scenario.costs, way.backend.last())));
      ran_ns = way.clock.now;
    } else if (turn == engine::Loop::Turn::idle) {
      if (due == Traffic::kNever) return most_waiting;
      way.pass(due + kEpochNs);
      ran_ns = way.clock.now;
    } else {
      if (due == Traffic::kNever && way.clock.now - ran_ns > kStuckNs)
        return internal_error("the scheduler " + scenario.pipeline.scheduler.name + " has planned nothing that can run for an hour, and " +
                              std::to_string(stats.running + stats.waiting) + " sequences wait for it");
      way.pass(way.clock.now + kBlockedNs);
    }
  }
}

}  // namespace

Tally Outcome::all() const {
  Tally out;
  for (const Tally& load : loads) out.add(load);
  out.name = "all";
  return out;
}

Result<Outcome> simulate(const Scenario& scenario, plugin::Registry& registry, const engine::Model* model,
                         const std::function<Status(const engine::Loop&)>& after_step) {
  SimulatedClock clock;
  clock.now = kEpochNs;
  metrics::Metrics metrics;
  engine::Runtime r;
  r.plan = {};
  if (model != nullptr) plan_model(*model, r);
  else MEKIK_CHECK_OK(plan_machine(scenario, r));
  std::optional<Traffic> traffic;  // outlives the loop, whose last events it hears
  // What is due while a step runs comes then, as from other threads.
  const std::function<void(std::uint64_t)> pass = [&](std::uint64_t until) {
    for (std::uint64_t due; traffic && (due = traffic->next_ns()) != Traffic::kNever && due + kEpochNs <= until;) {
      clock.now = std::max(clock.now, due + kEpochNs);
      traffic->release(clock.now - kEpochNs);
    }
    clock.now = std::max(clock.now, until);
  };
  r.vocab = r.row_size = vocabulary_of(scenario, model);
  SimulatedBackend backend{scenario.costs, r.vocab, clock, pass};
  r.backend = &SimulatedBackend::table();
  r.exec = backend.exec();
  MEKIK_CHECK_OK(engine::add_components(scenario.pipeline, registry, r));
  if (engine::has_tier(*r.cache.operator->(), r.cache.get()))
    log::warning("simulate", "of the cache's slower tier nothing is simulated: what is not in memory is computed");
  r.metrics = &metrics;
  r.clock = &clock;
  r.max_queue = scenario.pipeline.server.max_queue;
  const std::uint32_t context = r.context, places = r.limits.max_seqs;
  engine::Loop loop{std::move(r)};
  traffic.emplace(scenario, context, vocabulary_of(scenario, model), kEpochNs,
                  Traffic::Engine{[&](engine::Request request, engine::OnEvent on_event) {
                                    return loop.submit(std::move(request), std::move(on_event));
                                  },
                                  [&](engine::RequestId id) { loop.cancel(id); }});
  pass(clock.now);
  MEKIK_TRY(most_waiting, turn_to_the_end(scenario, {loop, *traffic, clock, backend, pass, after_step}));
  Outcome out = outcome_of(*traffic, metrics, places);
  out.most_waiting = most_waiting;
  out.blocks_leaked = loop.stats().blocks_leaked;
  return out;
}

Result<Outcome> run_real(const Scenario& scenario, plugin::Registry& registry, engine::Model& model) {
  metrics::Metrics metrics;
  engine::Engine::Options options;
  options.max_queue = scenario.pipeline.server.max_queue;
  MEKIK_TRY(engine, engine::Engine::start(model, registry, metrics, options));
  const std::uint64_t epoch = now_ns();
  Traffic traffic{
      scenario,
      model.context(),
      vocabulary_of(scenario, &model),
      epoch,
      {[&](engine::Request request, engine::OnEvent on_event) { return engine->submit(std::move(request), std::move(on_event)); },
       [&](engine::RequestId id) { engine->cancel(id); }}};
  std::uint64_t most_waiting = 0;
  while (!traffic.done()) {
    const std::uint64_t now = now_ns() - epoch;
    traffic.release(now);
    const auto stats = engine->stats();
    most_waiting = std::max<std::uint64_t>(most_waiting, stats.waiting);
    if (stats.device_lost) {
      engine.reset();  // before those who hear of its requests
      return fail(Code::device_lost, "the device is lost");
    }
    traffic.wait(now, std::min(traffic.next_ns(), now + kMostRealWaitNs));
  }
  Outcome out = outcome_of(traffic, metrics, model.limits().max_seqs);
  out.most_waiting = most_waiting;
  engine->drain(kMostRealWaitNs);
  out.blocks_leaked = engine->stats().blocks_leaked;
  engine.reset();
  return out;
}

}  // namespace mekik::simulate
