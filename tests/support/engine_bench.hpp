// The engine loop over a fake backend, a fake clock and the real schedulers and samplers, turned by hand.
#pragma once
#include <map>
#include <memory>
#include <set>

#include "config/options.hpp"
#include "config/table.hpp"
#include "engine/loop.hpp"
#include "support/fake_backend.hpp"
#include "support/registry.hpp"

namespace mekik::test {

class FakeClock final : public Clock {
 public:
  std::uint64_t now_ns() const override { return now; }
  std::atomic<std::uint64_t> now{1'000'000'000};
};

// A vocabulary of pieces; those written <like this> are special, <end> ends.
class FakeTokenizer final : public text::Tokenizer {
 public:
  explicit FakeTokenizer(std::vector<std::string> pieces) : pieces_{std::move(pieces)} {
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      if (pieces_[i] == "<end>") ends_.push_back(static_cast<std::int32_t>(i));
  }
  using Tokenizer::encode;
  std::vector<std::int32_t> encode(std::span<const text::TextPart>, bool) const override { return {}; }
  std::uint32_t size() const override { return static_cast<std::uint32_t>(pieces_.size()); }
  std::string_view piece(std::int32_t id) const override { return pieces_[static_cast<std::size_t>(id)]; }
  std::string_view token(std::int32_t id) const override { return piece(id); }
  std::uint32_t flags(std::int32_t id) const override {
    const auto p = piece(id);
    return (p.starts_with('<') ? text::kTokenSpecial : 0u) | (p == "<end>" ? text::kTokenEnd : 0u);
  }
  std::int32_t bos() const override { return -1; }
  std::int32_t eos() const override { return ends_.empty() ? -1 : ends_[0]; }
  const std::vector<std::int32_t>& ends() const override { return ends_; }
  std::string decode(std::span<const std::int32_t> ids, bool special) const override {
    std::string out;
    for (const auto id : ids)
      if (special || (flags(id) & text::kTokenSpecial) == 0) out += piece(id);
    return out;
  }
  std::string kind() const override { return "fake"; }

 private:
  std::vector<std::string> pieces_;
  std::vector<std::int32_t> ends_;
};

// Keeps everything until room is needed, then gives up the longest unused.
struct KeepingCache {
  static const mekik_cache_policy& table() {
    static const mekik_cache_policy policy = [] {
      mekik_cache_policy p{};
      p.struct_size = sizeof p;
      p.destroy = [](mekik_cache*) {};
      p.touched = [](mekik_cache*, const mekik_key*, std::uint64_t) {};
      p.victims = [](mekik_cache*, const mekik_node* nodes, std::uint32_t n, std::uint32_t, std::uint64_t bytes,
                     std::uint32_t* out) -> std::uint32_t {
        if (bytes == 0 || n == 0) return 0;
        out[0] = 0;
        for (std::uint32_t i = 1; i < n; ++i)
          if (nodes[i].last_use_ns < nodes[out[0]].last_use_ns) out[0] = i;
        return 1;
      };
      return p;
    }();
    return policy;
  }
};

// Wants nothing: what no sequence holds goes at once.
struct ForgettingCache {
  static const mekik_cache_policy& table() {
    static const mekik_cache_policy policy = [] {
      mekik_cache_policy p = KeepingCache::table();
      p.victims = [](mekik_cache*, const mekik_node*, std::uint32_t n, std::uint32_t, std::uint64_t, std::uint32_t* out) -> std::uint32_t {
        for (std::uint32_t i = 0; i < n; ++i) out[i] = i;
        return n;
      };
      return p;
    }();
    return policy;
  }
};

inline Plugins& shared_plugins() {
  static Plugins plugins;
  return plugins;
}

// A component with options written as TOML.
inline config::Use use(const std::string& kind, const std::string& name, const std::string& toml = "") {
  config::Use out;
  out.kind = kind;
  out.name = name;
  auto component = shared_plugins().registry.component(kind, out);
  if (!component) throw std::runtime_error{component.status().text};
  config::Diagnostics diagnostics;
  config::Value value;
  config::parse_toml(toml, "test", value, diagnostics);
  out.options = config::check_table({config::rows_of(**component)}, value, "[" + kind + "]", "", {diagnostics, nullptr, true, {}, false});
  if (!diagnostics.ok()) throw std::runtime_error{diagnostics.render()};
  return out;
}

struct Setup {
  std::uint32_t vocab = 64, context = 256, block_tokens = 4, max_tokens = 16, max_seqs = 4, max_rows = 8, slots = 0, max_queue = 256;
  std::vector<std::uint32_t> blocks{256};
  std::vector<std::uint64_t> windows{0};
  std::string scheduler = "continuous", scheduler_options;
  const mekik_scheduler* own_scheduler = nullptr;  // instead of the named one; gets no state of its own
  bool keeping_cache = false, forgetting_cache = false;
  std::string cache_options;               // of the cache "prefix", which is used where there are any
  const mekik_drafter* drafter = nullptr;  // with `drafter_state`, which must outlive the bench; or a component's name
  mekik_draft* drafter_state = nullptr;
  std::string drafter_name, drafter_options;
  bool draft_model = false;       // with drafter "model": a backend of its own that says what the model says, but for its hook
  std::uint32_t draft_vocab = 0;  // of that one; 0: as many tokens as the model has
  std::uint32_t max_drafts = 4;   // max_rows should be more than max_seqs for them
  bool adaptive_drafts = false;
  const mekik_cache_policy* own_cache = nullptr;  // instead; `own_cache_state` is its instance
  mekik_cache* own_cache_state = nullptr;
  const text::Tokenizer* tokenizer = nullptr;
};

struct Answer {
  std::vector<std::int32_t> tokens;
  std::vector<engine::TokenInfo> infos, prompt;
  std::string text;
  engine::Finish finish = engine::Finish::none;
  Status error;
  engine::Usage usage;
  engine::Timings timings;
  std::uint32_t events_after_finish = 0;
};

inline mekik_limits limits_of(const Setup& s) {
  mekik_limits l{};
  l.struct_size = sizeof l;
  l.max_tokens = s.max_tokens;
  l.max_seqs = s.max_seqs;
  l.max_rows = s.max_rows;
  l.max_blocks = (s.context + s.block_tokens - 1) / s.block_tokens;
  l.block_tokens = s.block_tokens;
  l.n_slots = s.slots;
  for (std::size_t g = 0; g < s.blocks.size(); ++g) l.n_blocks[g] = s.blocks[g];
  return l;
}

class Bench {
 public:
  explicit Bench(const Setup& setup = {})
      : backend{limits_of(setup), setup.windows, setup.vocab, setup.slots > 0},
        sampler_{use("sampler", "standard")},
        scheduler_{use("scheduler", setup.scheduler, setup.scheduler_options)} {
    engine::Runtime r;
    r.model_name = "fake";
    r.backend = &FakeBackend::table();
    r.exec = backend.exec();
    r.plan.struct_size = sizeof r.plan;
    for (auto& bytes : r.plan.block_bytes) bytes = backend.block_bytes();
    r.plan.slot_bytes = FakeBackend::slot_bytes();
    r.plan.slot_every = 1;
    r.plan.uses = MEKIK_USE_STATE_OUT;
    r.limits = limits_of(setup);
    r.vocab = r.row_size = setup.vocab;
    r.context = setup.context;
    for (const auto window : setup.windows) r.groups.push_back({window});
    r.slots = setup.slots > 0;
    r.tokenizer = setup.tokenizer;
    auto& registry = shared_plugins().registry;
    const auto sampler = *registry.find(sampler_);
    r.samplers.push_back({sampler.raw, sampler.host, plugin::abi_config(*sampler_.options)});
    const auto scheduler = *registry.find(scheduler_);
    const auto* table = &scheduler.table<mekik_scheduler>();
    mekik_sched* self = nullptr;
    if (table->create(scheduler.host, plugin::abi_config(*scheduler_.options), &self) != MEKIK_OK) throw std::runtime_error{"no scheduler"};
    r.scheduler = {table, self};
    if (setup.own_scheduler != nullptr) r.scheduler = {setup.own_scheduler, reinterpret_cast<mekik_sched*>(this)};
    r.scheduler_name = setup.scheduler;
    if (setup.keeping_cache) r.cache = {&KeepingCache::table(), reinterpret_cast<mekik_cache*>(this)};
    if (setup.forgetting_cache) r.cache = {&ForgettingCache::table(), reinterpret_cast<mekik_cache*>(this)};
    if (!setup.cache_options.empty()) {
      cache_ = use("cache", "prefix", setup.cache_options);
      auto made = engine::make_instance<mekik_cache_policy, mekik_cache>(registry, cache_);
      if (!made) throw std::runtime_error{made.status().text};
      r.cache = std::move(*made);
      r.tier = engine::has_tier(*r.cache.operator->(), r.cache.get());
    }
    if (setup.drafter != nullptr) r.drafter = {setup.drafter, setup.drafter_state};
    if (!setup.drafter_name.empty()) {
      drafter_ = use("drafter", setup.drafter_name, setup.drafter_options);
      auto made = engine::make_drafter(registry, drafter_, engine::vocab_view(setup.tokenizer, setup.vocab));
      if (!made) throw std::runtime_error{made.status().text};
      r.drafter = std::move(*made);
    }
    if (setup.draft_model) {
      const std::uint32_t vocab = setup.draft_vocab != 0 ? setup.draft_vocab : setup.vocab;
      draft_backend.emplace(limits_of(setup), setup.windows, vocab, false);
      r.draft_model = std::make_unique<engine::Runtime>();
      r.draft_model->backend = &FakeBackend::table();
      r.draft_model->exec = draft_backend->exec();
      r.draft_model->limits = limits_of(setup);
      r.draft_model->vocab = r.draft_model->row_size = vocab;
      r.draft_model->context = setup.context;
      r.draft_model->groups = r.groups;
    }
    r.drafter_name = setup.drafter_name.empty() ? "own" : setup.drafter_name;
    r.max_drafts = setup.max_drafts;
    r.adaptive_drafts = setup.adaptive_drafts;
    if (setup.own_cache != nullptr) {
      r.cache = {setup.own_cache, setup.own_cache_state};
      r.tier = engine::has_tier(*setup.own_cache, setup.own_cache_state);
    }
    r.metrics = &metrics;
    r.clock = &clock;
    r.max_queue = setup.max_queue;
    loop = std::make_unique<engine::Loop>(std::move(r));
  }

  Result<engine::RequestId> submit(engine::Request request) {
    const auto answers = std::make_shared<std::vector<Answer>>(std::min(request.n, 1000u));  // shared: the callback outlives this call
    auto id = loop->submit(std::move(request), [this, answers](const engine::Event& e) { receive((*answers)[e.index], e); });
    if (id) by_request_[*id] = answers;
    return id;
  }
  const Answer& answer(engine::RequestId id, std::uint32_t index = 0) const { return by_request_.at(id)->at(index); }

  engine::Loop::Turn step() {
    clock.now += 1'000'000;
    const auto turn = loop->step();
    if (const auto status = loop->check_invariants(); !status.ok()) throw std::runtime_error{status.text};
    if (draft_backend && !draft_backend->faults.empty())
      throw std::runtime_error{"the draft model's backend saw: " + draft_backend->faults[0]};
    if (!backend.faults.empty()) throw std::runtime_error{"the backend saw: " + backend.faults.front()};
    return turn;
  }
  // Until nothing is left to do.
  void run(int most_steps = 20000) {
    for (int i = 0; i < most_steps; ++i)
      if (step() == engine::Loop::Turn::idle) return;
    throw std::runtime_error{"the loop does not come to an end"};
  }
  // The value of a counter, or the count of a histogram, summed over its labels that contain `label`.
  double metric(const std::string& name, const std::string& label = "") const {
    double sum = 0;
    const auto snapshot = metrics.snapshot();
    for (const auto& s : snapshot.samples)
      if (name == s.name && (label.empty() || std::string{s.labels}.find(label) != std::string::npos))
        sum += s.type == MEKIK_SAMPLE_HISTOGRAM ? static_cast<double>(s.count) : s.value;
    return sum;
  }

  FakeClock clock;
  metrics::Metrics metrics;
  FakeBackend backend;
  std::optional<FakeBackend> draft_backend;
  std::function<void(const engine::Event&)> on_event;  // also called with every event

 private:
  config::Use sampler_, scheduler_, cache_, drafter_;
  std::map<engine::RequestId, std::shared_ptr<std::vector<Answer>>> by_request_;

 public:
  std::unique_ptr<engine::Loop> loop;  // before what its events write to goes away

 private:
  void receive(Answer& a, const engine::Event& e) {
    if (a.finish != engine::Finish::none) ++a.events_after_finish;
    for (const auto& t : e.tokens) {
      a.tokens.push_back(t.id);
      a.infos.push_back(t);
    }
    a.prompt.insert(a.prompt.end(), e.prompt.begin(), e.prompt.end());
    a.text += e.text;
    a.finish = e.finish;
    a.error = e.error;
    a.usage = e.usage;
    a.timings = e.timings;
    if (on_event) on_event(e);
  }
};

// Prompt tokens that depend on `salt`.
inline std::vector<std::int32_t> prompt_of(std::size_t n, std::uint64_t salt, std::uint32_t vocab = 64) {
  std::vector<std::int32_t> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::int32_t>(mix(salt * 1000003 + i) % vocab);
  return out;
}
inline engine::Request request_of(std::vector<std::int32_t> prompt, std::uint32_t max_tokens,
                                  std::string sampler = R"({"temperature":0})") {
  engine::Request r;
  r.prompt = std::move(prompt);
  r.max_tokens = max_tokens;
  r.sampler_json = std::move(sampler);
  r.seed = 7;
  return r;
}
// What the request gives when nothing else runs and nothing is short.
inline std::vector<Answer> alone(const engine::Request& request, const Setup& like = {}) {
  Setup roomy = like;
  roomy.max_tokens = 512;
  roomy.max_rows = 512;
  roomy.max_seqs = std::max(roomy.max_seqs, request.n);
  if (roomy.slots > 0) roomy.slots = 200;
  for (auto& blocks : roomy.blocks) blocks = 8192;
  roomy.keeping_cache = roomy.forgetting_cache = false;
  roomy.drafter = nullptr;
  roomy.drafter_name.clear();
  roomy.own_cache = nullptr;
  roomy.cache_options.clear();
  Bench bench{roomy};
  const auto id = bench.submit(request);
  if (!id) throw std::runtime_error{id.status().text};
  bench.run();
  std::vector<Answer> out;
  for (std::uint32_t i = 0; i < request.n; ++i) out.push_back(bench.answer(*id, i));
  return out;
}

}  // namespace mekik::test
