#include "bench/bench.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "engine/engine.hpp"
#include "sample/chain.hpp"

namespace mekik::bench {
namespace {

constexpr std::uint64_t kDrainNs = 1'000'000'000;

std::string counted(std::uint64_t n, const char* what) { return std::to_string(n) + " " + what; }

// What came of one request, on the engine's thread.
struct Seen {
  std::uint64_t submitted = 0;
  std::vector<std::uint64_t> tokens;  // when each came
  engine::Usage usage;
  engine::Timings timings;
  Status error;
  bool over = false;
};

class Runner {
 public:
  Runner(engine::Engine& engine, std::string sampler_json)
      : engine_{engine}, model_{engine.model()}, sampler_json_{std::move(sampler_json)} {}

  Status once(Outcome& out, bool counts, bool profile) {
    const Test& test = out.test;
    std::vector<std::vector<std::int32_t>> prompts;
    for (std::uint32_t s = 0; s < test.sequences; ++s) prompts.push_back(random_tokens(std::max(test.depth, 1u)));
    if (test.depth > 0) MEKIK_CHECK_OK(run(prompts, 1).status());  // so that the cache has it
    if (test.kind == Test::Kind::prefill)
      for (auto& prompt : prompts) {
        if (test.depth == 0) prompt.clear();
        const auto more = random_tokens(test.tokens);
        prompt.insert(prompt.end(), more.begin(), more.end());
      }
    const mekik_backend_measure* measure = profile ? model_.measure() : nullptr;
    if (measure != nullptr) MEKIK_CHECK_OK(plugin::to_status(measure->profile(model_.exec(), 1), "backend: profile"));
    MEKIK_TRY(seen, run(prompts, test.kind == Test::Kind::prefill ? 1 : test.tokens + 1));
    if (measure != nullptr) {
      out.spent_ns.resize(model_.program().ops.size());
      const auto n = static_cast<std::uint32_t>(out.spent_ns.size());
      MEKIK_CHECK_OK(plugin::to_status(measure->spent(model_.exec(), out.spent_ns.data(), n), "backend: spent"));
      MEKIK_CHECK_OK(plugin::to_status(measure->profile(model_.exec(), 0), "backend: profile"));
    }
    if (!counts) return {};
    return test.kind == Test::Kind::prefill ? count_prefill(seen, out) : count_decode(seen, out);
  }

 private:
  std::vector<std::int32_t> random_tokens(std::uint32_t n) {
    std::uniform_int_distribution<std::int32_t> any{0, static_cast<std::int32_t>(model_.vocab()) - 1};
    std::vector<std::int32_t> out(n);
    for (std::int32_t& id : out) id = any(random_);
    return out;
  }

  // All at once; returns when all are over.
  Result<std::vector<Seen>> run(const std::vector<std::vector<std::int32_t>>& prompts, std::uint32_t tokens) {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Seen> seen(prompts.size());
    Status refused;
    std::atomic<bool> all_sent{false};
    std::size_t sent = 0;
    for (; sent < prompts.size() && refused.ok(); ++sent) {
      Seen& mine = seen[sent];
      engine::Request request;
      request.prompt = prompts[sent];
      request.max_tokens = tokens;
      request.ignore_eos = true;
      request.sampler_json = sampler_json_;
      mine.submitted = now_ns();
      const auto id = engine_.submit(std::move(request), [&](const engine::Event& event) {
        all_sent.wait(false);  // a short answer would be over before the next one is asked for; holding up the loop is what is wanted
        const std::uint64_t now = now_ns();
        const std::lock_guard lock{mutex};
        mine.tokens.insert(mine.tokens.end(), event.tokens.size(), now);
        if (event.finish == engine::Finish::none) return;
        mine.usage = event.usage;
        mine.timings = event.timings;
        mine.error = event.error;
        mine.over = true;
        changed.notify_all();
      });
      if (!id.ok()) refused = id.status(), mine.over = true;
    }
    all_sent = true;
    all_sent.notify_all();
    std::unique_lock lock{mutex};
    changed.wait(lock, [&] {
      return std::all_of(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(sent), [](const Seen& s) { return s.over; });
    });
    MEKIK_CHECK_OK(std::move(refused));
    for (const Seen& s : seen) {
      MEKIK_CHECK_OK(Status{s.error});
      if (s.tokens.size() < tokens)
        return invalid("an answer ended after " + counted(s.tokens.size(), "tokens") + " of " + std::to_string(tokens));
    }
    return seen;
  }

  // From the first prompt's arrival to the last one's first token.
  Status count_prefill(const std::vector<Seen>& seen, Outcome& out) const {
    std::uint64_t begin = seen[0].submitted, end = 0;
    for (const Seen& s : seen) {
      if (10 * std::uint64_t{s.usage.cached_tokens} < 9 * std::uint64_t{out.test.depth})
        return unsupported("of a context of " + counted(out.test.depth, "tokens") + " the cache kept " +
                           std::to_string(s.usage.cached_tokens) +
                           ", so a prompt behind it cannot be timed alone; use = \"prefix\" in [cache], with more memory, keeps it");
      begin = std::min(begin, s.submitted);
      end = std::max(end, s.tokens[0]);
      out.ttft.push_back(1e-9 * static_cast<double>(s.timings.ttft));
    }
    out.tokens_per_second.push_back(1e9 * out.test.tokens * out.test.sequences / static_cast<double>(end - begin));
    return {};
  }

  // While all of them are being answered: from the last one's first token to the first one's last.
  static Status count_decode(const std::vector<Seen>& seen, Outcome& out) {
    std::uint64_t begin = 0, end = UINT64_MAX, tokens = 0;
    for (const Seen& s : seen) {
      begin = std::max(begin, s.tokens.front());
      end = std::min(end, s.tokens.back());
    }
    if (end <= begin)
      return invalid("decode " + std::to_string(out.test.tokens) + ": one answer ended before another began; take more tokens");
    for (const Seen& s : seen) {
      std::uint64_t last = 0;
      for (const std::uint64_t t : s.tokens) {
        if (t > begin && t <= end) ++tokens;
        if (last != 0) out.tpot.push_back(1e-9 * static_cast<double>(t - last));
        last = t;
      }
    }
    out.tokens_per_second.push_back(1e9 * static_cast<double>(tokens) / static_cast<double>(end - begin));
    return {};
  }

  engine::Engine& engine_;
  engine::Model& model_;
  std::string sampler_json_;
  std::mt19937_64 random_{1};
};

// Temperature 0, where a sampler of the pipeline knows it.
Result<std::string> likeliest(plugin::Registry& registry, const config::Pipeline& pipeline) {
  std::vector<const mekik_component*> chain;
  for (const config::Use& use : pipeline.samplers) {
    MEKIK_TRY(component, registry.component("sampler", use));
    chain.push_back(component);
  }
  std::vector<std::string> unknown;
  return sample::sampler_request(chain, json::object{{"temperature", 0}}, unknown);
}

}  // namespace

std::string Test::name() const {
  std::string out = (kind == Kind::prefill ? "prefill " : "decode ") + std::to_string(tokens);
  if (depth > 0) out += " at " + std::to_string(depth);
  if (sequences > 1) out += ", " + std::to_string(sequences) + " sequences";
  return out;
}

Status check(const std::vector<Test>& tests, const engine::Model& model) {
  const engine::MemoryPlan& plan = model.plan();
  std::string faults;
  for (const Test& test : tests) {
    const std::uint64_t each = std::uint64_t{test.depth} + test.tokens + 1;
    const std::uint64_t all = test.sequences * ((each + plan.block_tokens - 1) / plan.block_tokens * plan.block_tokens);
    const auto fault = [&](const std::string& what) { faults += (faults.empty() ? "" : "\n") + test.name() + ": " + what; };
    if (test.sequences > plan.max_sequences) fault("scheduler.max_sequences is " + std::to_string(plan.max_sequences));
    if (each > model.context())
      fault(counted(each, "tokens") + " are more than the context of " + std::to_string(model.context()) +
            " (model.context, cache.memory)");
    else if (plan.token_bytes > 0 && all > plan.pool_tokens)
      fault(counted(all, "tokens") + " are more than cache.memory holds (" + std::to_string(plan.pool_tokens) + "); raise it");
  }
  return faults.empty() ? Status{} : invalid(faults);
}

Result<std::vector<Outcome>> run(const std::vector<Test>& tests, std::uint32_t runs, bool profile, plugin::Registry& registry,
                                 engine::Model& model) {
  MEKIK_CHECK_OK(check(tests, model));
  MEKIK_TRY(sampler_json, likeliest(registry, model.pipeline()));
  metrics::Metrics metrics;
  engine::Engine::Options options;
  for (const Test& test : tests) options.max_queue = std::max(options.max_queue, test.sequences);
  MEKIK_TRY(engine, engine::Engine::start(model, registry, metrics, options));
  const std::atomic<bool> never{false};
  model.make_resident(never);  // as a server's is, soon after it starts
  Runner runner{*engine, sampler_json};
  std::vector<Outcome> out;
  for (const Test& test : tests) out.push_back({test, {}, {}, {}, {}});
  for (std::uint32_t round = 0; round < runs + 1; ++round)
    for (Outcome& outcome : out) MEKIK_CHECK_OK(runner.once(outcome, round > 0, false).in(outcome.test.name()));
  if (profile)
    for (Outcome& outcome : out) MEKIK_CHECK_OK(runner.once(outcome, false, true).in(outcome.test.name()));
  engine->drain(kDrainNs);
  return out;
}

}  // namespace mekik::bench
