// A model and its pipeline become a running engine.
#include "engine/start.hpp"

#include <thread>

#include "base/log.hpp"
#include "engine/loop.hpp"
#include "plugin/registry.hpp"

namespace mekik::engine {
namespace {

constexpr std::uint64_t kIdleNs = 3'600'000'000'000;  // an idle loop is woken by what comes, not by the time
constexpr std::uint64_t kBlockedNs = 2'000'000;       // a scheduler holds all: look again soon
constexpr std::uint64_t kCancelNs = 10'000'000'000;   // for the last step and the events of what drain() cancels

// What computes: of the model, and of a draft model.
void fill_runtime(const Model& model, Runtime& r) {
  r.model_name = model.name();
  r.backend = &model.backend();
  r.exec = model.exec();
  r.plan = model.backend_plan();
  r.limits = model.limits();
  r.vocab = model.vocab();
  r.context = model.context();
  r.groups = model.program().groups;
  r.slots = model.program().n_slots > 0;
  r.row_size = static_cast<std::uint32_t>(program::output_size(model.program()));
  r.vectors = program::output_of(model.program()).name != "logits";
  r.whole = program::needs_whole_sequences(model.program());
  r.token_types = program::reads_input(model.program(), "token_types");
}

}  // namespace

Status add_components(const config::Pipeline& pipeline, plugin::Registry& registry, Runtime& r) {
  MEKIK_TRY(links, sampler_links(registry, pipeline));
  r.samplers = std::move(links);
  auto scheduler = make_instance<mekik_scheduler, mekik_sched>(registry, pipeline.scheduler);
  if (!scheduler) return scheduler.status();
  r.scheduler = std::move(*scheduler);
  r.scheduler_name = pipeline.scheduler.name;
  auto cache = make_instance<mekik_cache_policy, mekik_cache>(registry, pipeline.cache);
  if (!cache) return cache.status();
  r.cache = std::move(*cache);
  return {};
}

Result<Runtime> make_runtime(Model& model, plugin::Registry& registry, metrics::Metrics& metrics, const Engine::Options& options) {
  const auto& pipeline = model.pipeline();
  Runtime r;
  fill_runtime(model, r);
  r.tokenizer = model.tokenizer();
  r.extra_key = model.program().position_key + model.fingerprint();
  r.metrics = &metrics;
  r.clock = options.clock != nullptr ? options.clock : &steady_clock();
  r.max_queue = options.max_queue;
  r.watchdog_ns = options.watchdog_ns;
  if (r.exec == nullptr) return internal_error("the model is not loaded");
  MEKIK_CHECK_OK(add_components(pipeline, registry, r));
  if (pipeline.draft) {
    auto drafter = make_drafter(registry, *pipeline.draft, vocab_view(r.tokenizer, r.vocab));
    if (!drafter) return drafter.status();
    r.drafter = std::move(*drafter);
    r.drafter_name = pipeline.draft->name;
    r.max_drafts = pipeline.max_drafts;
    r.adaptive_drafts = pipeline.adaptive_drafts;
    if (const Model* draft = model.draft()) {
      r.draft_model = std::make_unique<Runtime>();
      fill_runtime(*draft, *r.draft_model);
    }
  }
  r.tier = has_tier(*r.cache.operator->(), r.cache.get());
  for (const auto& use : pipeline.sinks) {
    auto sink = make_instance<mekik_sink_api, mekik_sink>(registry, use);
    if (!sink) return sink.status();
    r.sinks.push_back(std::move(*sink));
  }
  return r;
}

namespace {

class Threaded final : public Engine {
 public:
  Threaded(Model& model, Runtime runtime) : model_{model}, loop_{std::move(runtime)}, thread_{[this] { turn(); }} {}
  ~Threaded() override {
    loop_.refuse_new();
    loop_.cancel_all();
    stop_ = true;
    loop_.wake();
    thread_.join();
  }

  Result<RequestId> submit(Request request, OnEvent on_event) override { return loop_.submit(std::move(request), std::move(on_event)); }
  void cancel(RequestId id) override { loop_.cancel(id); }
  EngineStats stats() const override { return loop_.stats(); }
  bool draining() const override { return loop_.refusing(); }
  Model& model() override { return model_; }

  void drain(std::uint64_t timeout_ns) override {
    loop_.refuse_new();
    if (loop_.wait_until_done(timeout_ns)) return;
    loop_.cancel_all();
    if (!loop_.wait_until_done(kCancelNs)) log::error("engine", "drain: the step in progress does not end");
  }

  Result<Scrape> scrape(std::string_view accept) override {
    const auto& runtime = loop_.runtime();
    for (const auto& sink : runtime.sinks) {
      if (!MEKIK_HAS(mekik_sink_api, sink.operator->(), scrape) || sink->scrape == nullptr) continue;
      const auto snapshot = runtime.metrics->snapshot();
      Scrape out;
      mekik_str type{};
      const auto write = [](void* ctx, mekik_str text) { static_cast<std::string*>(ctx)->append(text.ptr, text.len); };
      const auto code = sink->scrape(sink.get(), plugin::abi_str(accept), snapshot.samples.data(),
                                     static_cast<std::uint32_t>(snapshot.samples.size()), sizeof(mekik_sample), write, &out.body, &type);
      MEKIK_CHECK_OK(plugin::to_status(code, "sink"));
      out.content_type = plugin::view(type);
      return out;
    }
    return unsupported("no sink of the pipeline can be scraped; add [[sink]] use = \"prometheus\"");
  }

 private:
  void turn() {
    while (!stop_) {
      const auto turned = loop_.step();
      if (turned != Loop::Turn::ran) loop_.sleep(turned == Loop::Turn::idle ? kIdleNs : kBlockedNs);
    }
    loop_.step();  // delivers the cancels of the destructor
  }

  Model& model_;
  Loop loop_;
  std::atomic<bool> stop_{false};
  std::thread thread_;  // last: it uses the rest
};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::start(Model& model, plugin::Registry& registry, metrics::Metrics& metrics, const Options& options) {
  MEKIK_TRY(runtime, make_runtime(model, registry, metrics, options));
  return std::unique_ptr<Engine>{std::make_unique<Threaded>(model, std::move(runtime))};
}

}  // namespace mekik::engine
