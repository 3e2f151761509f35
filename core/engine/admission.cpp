// What other threads may ask of the loop: requests are checked here, before they are queued.
#include <algorithm>
#include <chrono>
#include <random>

#include "base/text.hpp"
#include "engine/loop.hpp"
#include "plugin/registry.hpp"

namespace mekik::engine {
namespace {

constexpr std::uint64_t kFlushNs = 5'000'000'000;  // at the end, for what is on its way to the cache's slower tier
constexpr std::uint32_t kStateTokens = 32768;      // over so many tokens of prompts the slots for kept states are spread
constexpr std::size_t kMaxStops = 64, kMaxStopBytes = 4096, kMaxStopTokens = 4096;

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

Loop::Loop(Runtime runtime)
    : runtime_{std::move(runtime)},
      telemetry_{runtime_},
      speculation_{runtime_, telemetry_},
      vocab_{vocab_view(runtime_.tokenizer, runtime_.vocab)},
      slots_{runtime_.slots ? runtime_.limits.n_slots : 0},
      prefixes_{runtime_},
      tier_{runtime_,
            prefixes_,
            telemetry_,
            {[this](std::uint64_t ticket) { return wait_for(ticket); }, [this](std::uint32_t group) { return take_block(group); },
             [this] { return take_slot(); }, [this] { wake(); }}} {
  for (std::size_t g = 0; g < runtime_.groups.size(); ++g) pools_.emplace_back(runtime_.limits.n_blocks[g]);
  if (runtime_.slots) {
    const std::uint32_t kept = slots_.size() - std::min(slots_.size(), runtime_.limits.max_seqs);
    std::uint32_t blocks = blocks_for(kStateTokens);
    if (!pools_.empty()) blocks = std::min(blocks, pools_[0].size());
    state_blocks_ = std::max(1u, blocks / std::max(kept, 1u));
  }
  longest_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(runtime_.context, longest_sequence(runtime_.groups, runtime_.limits)));
  publish(true);
}

Loop::~Loop() {
  admit();
  for (auto& s : sequences_) finish(*s, Finish::cancelled);
  sweep();
  tier_.flush(kFlushNs);
}

// Whether the model can give what the request wants.
Status Loop::check_kind(const Request& r) const {
  if (!r.vector && runtime_.vectors) return unsupported("this model gives vectors, not text; it cannot generate");
  if (!r.vector) return {};
  if (!runtime_.vectors && r.probe.empty()) return unsupported("this model generates text and gives no vectors; see model.task");
  if (runtime_.vectors && !r.probe.empty()) return invalid("probe is for models that generate");
  for (const auto id : r.probe)
    if (id < 0 || static_cast<std::uint32_t>(id) >= runtime_.vocab) return invalid("probe names a token outside the vocabulary");
  if (!r.token_types.empty() && r.token_types.size() != r.prompt.size())
    return invalid("token_types must be as many as the prompt's tokens");
  return {};
}

Status Loop::check(const Request& r) const {
  if (r.prompt.empty()) return invalid("the prompt has no tokens; at least one is needed");
  const auto inside = [this](std::int32_t id) { return id >= 0 && static_cast<std::uint32_t>(id) < runtime_.vocab; };
  for (std::size_t i = 0; i < r.prompt.size(); ++i)
    if (!inside(r.prompt[i]))
      return invalid("prompt token " + std::to_string(i) + " is " + std::to_string(r.prompt[i]) + ", outside the vocabulary of " +
                     std::to_string(runtime_.vocab) + " tokens");
  if (auto status = check_kind(r); !status.ok()) return status;
  const auto n = std::to_string(r.prompt.size());
  const bool no_answer = r.vector || (r.score_prompt && r.max_tokens == 0);
  if (r.prompt.size() + (no_answer ? 0 : 1) > runtime_.context)
    return invalid("context length exceeded: the prompt has " + n + " tokens, the context here is " + std::to_string(runtime_.context) +
                   " tokens" + (no_answer ? "" : ", one of them for the answer") +
                   "; shorten the prompt, or see model.context and cache.memory");
  if (runtime_.whole && r.prompt.size() > runtime_.limits.max_tokens)
    return invalid("the text has " + n + " tokens, but this model reads a text in one step, which here has at most " +
                   std::to_string(runtime_.limits.max_tokens) + "; shorten it or raise scheduler.max_batch_tokens");
  if (r.prompt.size() > longest_)
    return invalid("context length exceeded: the prompt has " + n + " tokens, the cache has blocks for " + std::to_string(longest_) +
                   "; shorten the prompt or raise [cache] memory");
  if (r.vector) return {};
  if (r.max_tokens == 0 && !r.score_prompt) return invalid("max_tokens is 0; at least 1, unless only the prompt is scored");
  if (r.n == 0 || r.n > kMaxAnswers)
    return invalid("n is " + std::to_string(r.n) + "; from 1 to " + std::to_string(kMaxAnswers) + " answers");
  if (r.logprobs < -1 || r.logprobs > static_cast<std::int64_t>(runtime_.vocab))
    return invalid("logprobs is " + std::to_string(r.logprobs) + "; from 0 to the vocabulary's " + std::to_string(runtime_.vocab));
  if (!r.stop.empty() && runtime_.tokenizer == nullptr) return unsupported("stop texts need a tokenizer, and this model has none");
  if (r.stop.size() > kMaxStops)
    return invalid("stop has " + std::to_string(r.stop.size()) + " texts; at most " + std::to_string(kMaxStops));
  for (const auto& stop : r.stop) {
    if (stop.empty()) return invalid("a stop text is empty");
    if (stop.size() > kMaxStopBytes) return invalid("a stop text is longer than " + std::to_string(kMaxStopBytes) + " bytes");
    if (!is_utf8(stop)) return invalid("a stop text is not UTF-8");
  }
  if (r.stop_tokens.size() > kMaxStopTokens) return invalid("stop_tokens has more than " + std::to_string(kMaxStopTokens) + " ids");
  for (const auto id : r.stop_tokens)
    if (!inside(id))
      return invalid("stop token " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(runtime_.vocab) + " tokens");
  return {};
}

Result<RequestId> Loop::submit(Request request, OnEvent on_event) {
  const auto refuse = [this](Status status) {
    telemetry_.refused(status.code);
    return status;
  };
  if (lost_) return refuse(fail(Code::device_lost, "the device is lost; restart the server"));
  if (refusing_) return refuse(fail(Code::busy, "the server is shutting down and takes no more requests"));
  if (auto status = check(request); !status.ok()) return refuse(std::move(status));
  if (const std::lock_guard lock{mutex_}; queued_ >= runtime_.max_queue)
    return refuse(fail(Code::busy, "the queue is full (" + std::to_string(runtime_.max_queue) + " requests wait); try again later"));

  auto active = std::make_unique<ActiveRequest>();
  active->request = std::move(request);
  const auto& r = active->request;
  active->on_event = std::move(on_event);
  active->seed = r.seed ? *r.seed : random_seed();
  active->arrival_ns = now();
  active->open_answers = r.n;
  std::vector<std::unique_ptr<Sequence>> sequences;
  for (std::uint32_t i = 0; i < r.n; ++i) {
    auto s = std::make_unique<Sequence>();
    if (!r.vector) {
      auto chain = sample::Chain::create(runtime_.samplers, vocab_, r.sampler_json);
      if (!chain) return refuse(chain.status());
      s->chain = std::move(*chain);
      s->chain.accept(r.prompt, true);
    }
    s->request = active.get();
    s->index = i;
    s->state = i == 0 ? SequenceState::waiting : SequenceState::following;
    s->tokens = r.prompt;
    s->prompt_tokens = static_cast<std::uint32_t>(r.prompt.size());
    s->text = AnswerText{runtime_.tokenizer, r.stop, r.show_special};
    sequences.push_back(std::move(s));
  }
  RequestId id = 0;
  {
    const std::lock_guard lock{mutex_};
    // Again, now that it counts: another thread may have taken the last place, or begun to drain.
    if (queued_ >= runtime_.max_queue) return refuse(fail(Code::busy, "the queue is full; try again later"));
    if (refusing_) return refuse(fail(Code::busy, "the server is shutting down and takes no more requests"));
    id = active->id = active->order = next_request_++;
    ++queued_;
    ++open_;
    telemetry_.accepted(*active);
    if (!busy_.exchange(true)) progress_ns_ = now();  // the watchdog's time starts with the work
    inbox_.emplace_back(std::move(active), std::move(sequences));
    woken_ = true;
  }
  wake_.notify_all();
  return id;
}

void Loop::cancel(RequestId id) {
  {
    const std::lock_guard lock{mutex_};
    if (id == 0 || id >= next_request_ || open_ == 0) return;
    cancels_.push_back(id);
    woken_ = true;
  }
  wake_.notify_all();
}

void Loop::cancel_all() {
  {
    const std::lock_guard lock{mutex_};
    cancel_all_ = true;
    woken_ = true;
  }
  wake_.notify_all();
}

void Loop::refuse_new() { refusing_ = true; }

bool Loop::wait_until_done(std::uint64_t timeout_ns) {
  std::unique_lock lock{mutex_};
  return done_.wait_for(lock, std::chrono::nanoseconds{std::min<std::uint64_t>(timeout_ns, INT64_MAX / 4)}, [this] { return open_ == 0; });
}

void Loop::sleep(std::uint64_t most_ns) {
  std::unique_lock lock{mutex_};
  wake_.wait_for(lock, std::chrono::nanoseconds{std::min<std::uint64_t>(most_ns, INT64_MAX / 4)}, [this] { return woken_; });
}

void Loop::wake() {
  {
    const std::lock_guard lock{mutex_};
    woken_ = true;
  }
  wake_.notify_all();
}

EngineStats Loop::stats() const {
  const auto time = now();
  const auto progress = progress_ns_.load();
  EngineStats out;
  {
    const std::lock_guard lock{mutex_};
    out = stats_;
  }
  out.stuck = busy_ && time > progress && time - progress > runtime_.watchdog_ns;
  out.device_lost = lost_;
  if (out.stuck && !stalled_.exchange(true)) telemetry_.stalled();
  return out;
}

}  // namespace mekik::engine
