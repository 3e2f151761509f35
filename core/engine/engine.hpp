// The engine: one loop per loaded model. See engine/loop.cpp for the loop itself.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "engine/model.hpp"
#include "metrics/metrics.hpp"

namespace mekik::engine {

// What a request asks for. Checked in Engine::submit; errors say which field and what is allowed.
struct Request {
  std::vector<std::int32_t> prompt;       // at least one token, each inside the vocabulary
  std::uint32_t max_tokens = 0;           // 0 with `score_prompt`: only the prompt is scored; otherwise at least 1
  std::uint32_t n = 1;                    // answers to one prompt
  std::vector<std::string> stop;          // texts; the earliest occurrence ends the answer and is not shown
  std::vector<std::int32_t> stop_tokens;  // besides the model's end tokens
  bool ignore_eos = false;
  bool show_special = false;          // special tokens appear in the text
  std::int32_t logprobs = -1;         // -1: none; else how many of the likeliest per token
  bool score_prompt = false;          // logprobs of the prompt's tokens, too (echo)
  std::optional<std::uint64_t> seed;  // none: a random one
  // The answer is the model's output after the prompt: an embedding, a score, or with `probe` the logits of these tokens. Nothing is
  // drawn, and what belongs to drawing is not read.
  bool vector = false;
  std::vector<std::int32_t> probe;        // of a model that generates
  std::vector<std::int32_t> token_types;  // of the prompt's tokens, for pairs; empty: all 0
  std::string sampler_json = "{}";        // fields named like options of a sampler of the chain
  std::int32_t priority = 0;
  std::uint64_t tenant = 0, salt = 0;      // whose it is; what is kept of it is used for requests with the same salt only. 0: everybody's
  std::uint64_t deadline_ns = 0;           // a time of the engine's clock, 0: none
  std::uint64_t ttft_ns = 0, tpot_ns = 0;  // targets for schedulers: to the first token, and from one to the next; 0: none
  std::string id;                          // for logs and sinks
};

struct TokenLogprob {
  std::int32_t id = 0;
  float logprob = 0;
};

struct TokenInfo {
  std::int32_t id = 0;
  float logprob = 0;              // of the raw logits (before the sampler chain); NaN for a prompt's first token
  std::vector<TokenLogprob> top;  // likeliest first, `logprobs` of them
};

enum class Finish { none, stop, length, cancelled, error };
const char* finish_name(Finish finish);  // "stop", "length", "cancelled", "error"

struct Usage {
  std::uint32_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
  std::uint32_t accepted_drafts = 0, rejected_drafts = 0;  // of the tokens that were proposed and run
};

struct Timings {             // nanoseconds
  std::uint64_t queued = 0;  // arrival to the first step that ran it
  std::uint64_t ttft = 0;    // arrival to first token
  std::uint64_t total = 0;   // arrival to finish
  std::uint64_t decode = 0;  // first token to last token; TPOT = decode / (completion_tokens - 1)
};

// What happened to one answer of a request. Delivered in order, from the engine's thread: the callback must not block and may call
// cancel() but not submit().
struct Event {
  std::uint32_t index = 0;        // which of the n answers
  std::vector<TokenInfo> prompt;  // score_prompt: once, before the first token
  std::vector<TokenInfo> tokens;  // tokens made since the last event, the one that ends the answer included (its text is not)
  std::string text;               // text that is now certain: whole UTF-8, no part of a stop string
  // How many of the last tokens so far are not in the text of the events so far: it is not certain yet, or, with Finish::stop, they
  // are the end token or the stop string. What shows tokens beside the text leaves them out.
  std::uint32_t unsaid = 0;
  std::vector<float> vector;     // with Request::vector, in its only event
  Finish finish = Finish::none;  // set in the last event of this index
  Status error;                  // with Finish::error
  std::uint64_t retry_ns = 0;    // with it: the scheduler has refused the request, and would not after so long; 0: it has not
  Usage usage;                   // so far
  Timings timings;
};

using OnEvent = std::function<void(const Event&)>;
using RequestId = std::uint64_t;

struct EngineStats {
  std::uint32_t running = 0, waiting = 0, blocks_total = 0, blocks_free = 0, blocks_pending = 0;
  std::uint64_t steps = 0;
  std::uint32_t blocks_leaked = 0;  // held by nobody we know of while nothing runs: always 0
  bool stuck = false;               // the watchdog saw no progress
  bool device_lost = false;         // nothing runs any more; restart
};

// Thread: submit, cancel, stats and drain from any thread.
class Engine {
 public:
  struct Options {
    std::uint32_t max_queue = 256;  // waiting requests; more are refused with Code::busy
    std::uint64_t watchdog_ns = 30'000'000'000;
    const Clock* clock = nullptr;  // default: the steady clock
  };
  // Starts the loop's thread. The model must outlive the engine. Makes the scheduler, cache and sinks of the model's pipeline.
  static Result<std::unique_ptr<Engine>> start(Model& model, plugin::Registry& registry, metrics::Metrics& metrics, const Options& options);
  virtual ~Engine() = default;  // cancels what runs

  // Checks and queues a request; on success events follow until each index had its finish.
  virtual Result<RequestId> submit(Request request, OnEvent on_event) = 0;
  virtual void cancel(RequestId id) = 0;  // unknown or finished ids are fine
  virtual EngineStats stats() const = 0;
  // Takes no more requests (Code::busy); returns when all are done or at the deadline, when the rest is cancelled.
  virtual void drain(std::uint64_t timeout_ns) = 0;
  virtual bool draining() const = 0;
  // GET /metrics: the body by the first sink that can be scraped. Code::unsupported when the pipeline has none.
  struct Scrape {
    std::string content_type, body;
  };
  virtual Result<Scrape> scrape(std::string_view accept) = 0;
  virtual Model& model() = 0;
};

}  // namespace mekik::engine
