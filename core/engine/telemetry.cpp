#include "engine/telemetry.hpp"

#include <algorithm>
#include <array>

#include "base/log.hpp"
#include "metrics/names.hpp"

namespace mekik::engine {
namespace {

constexpr std::uint64_t kPublishEveryNs = 1'000'000'000;

// Handles are null when another component took the name for something else; the registry has logged that.
void record(mekik_metric* metric, double value) {
  if (metric != nullptr) metric->record(value);
}
double seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

mekik_field number(const char* key, std::uint32_t type, double value) { return {key, type, 0, value, {nullptr, 0}}; }
mekik_field text(const char* key, std::string_view value) { return {key, MEKIK_OPT_TEXT, 0, 0, {value.data(), value.size()}}; }

}  // namespace

Telemetry::Telemetry(const Runtime& runtime) : runtime_{runtime} {
  std::string name = runtime.model_name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ',' || c == '='; }, '_');
  labels_ = "model_name=" + name;
  auto& m = *runtime.metrics;
  const auto make = [&](const metrics::Definition& d) { return metrics::make(m, d, labels_); };
  running_ = make(metrics::kRequestsRunning);
  waiting_ = make(metrics::kRequestsWaiting);
  blocks_ = make(metrics::kBlocksTotal);
  blocks_free_ = make(metrics::kBlocksFree);
  prompt_tokens_ = make(metrics::kPromptTokens);
  generated_tokens_ = make(metrics::kGeneratedTokens);
  cached_tokens_ = make(metrics::kCachedTokens);
  query_tokens_ = make(metrics::kCacheQueryTokens);
  computed_again_ = make(metrics::kComputedAgain);
  drafts_ = make(metrics::kDrafts);
  draft_tokens_ = make(metrics::kDraftTokens);
  accepted_tokens_ = make(metrics::kAcceptedTokens);
  tier_written_ = make(metrics::kTierWritten);
  tier_read_ = make(metrics::kTierRead);
  tier_failures_ = make(metrics::kTierFailures);
  steps_ = make(metrics::kSteps);
  step_sequences_ = make(metrics::kStepSequences);
  step_tokens_ = make(metrics::kStepTokens);
  stalls_ = make(metrics::kWatchdogStalls);
  ttft_ = make(metrics::kTtft);
  tpot_ = make(metrics::kTpot);
  inter_token_ = make(metrics::kInterToken);
  request_time_ = make(metrics::kRequestTime);
  queue_time_ = make(metrics::kQueueTime);
  step_time_ = make(metrics::kStepTime);
  finished_[0] = nullptr;
  for (int f = 1; f < 5; ++f)
    finished_[f] = metrics::make(m, metrics::kRequestsFinished, labels_ + ",reason=" + finish_name(static_cast<Finish>(f)));
  misses_[0] = nullptr;
  for (int i = 1; i < 5; ++i)
    misses_[i] = metrics::make(m, metrics::kCacheMisses, labels_ + ",reason=" + miss_name(static_cast<PrefixIndex::Miss>(i)));
  dropped_ = metrics::make(m, metrics::kPreemptions, labels_ + ",kind=recompute");
  swapped_ = metrics::make(m, metrics::kPreemptions, labels_ + ",kind=swap");
  refused_busy_ = metrics::make(m, metrics::kRequestsRefused, labels_ + ",reason=busy");
  refused_invalid_ = metrics::make(m, metrics::kRequestsRefused, labels_ + ",reason=invalid");
}

void Telemetry::accepted(const ActiveRequest& request) { record(prompt_tokens_, static_cast<double>(request.request.prompt.size())); }
void Telemetry::refused(Code code) { record(code == Code::busy ? refused_busy_ : refused_invalid_, 1); }
void Telemetry::started(const ActiveRequest& request) { record(queue_time_, seconds(*request.first_run_ns - request.arrival_ns)); }

void Telemetry::token(const Sequence& sequence, std::uint64_t now_ns, std::optional<std::uint64_t> previous_ns) {
  record(generated_tokens_, 1);
  if (previous_ns) record(inter_token_, seconds(now_ns - *previous_ns));
  auto& request = *sequence.request;
  if (!request.first_token_ns) {  // once a request, however many answers it has
    request.first_token_ns = now_ns;
    record(ttft_, seconds(now_ns - request.arrival_ns));
  }
}

void Telemetry::preempted(bool swapped) { record(swapped ? swapped_ : dropped_, 1); }
void Telemetry::computed_again(std::uint32_t tokens) { record(computed_again_, tokens); }
void Telemetry::drafted(std::uint32_t run, std::uint32_t accepted) {
  record(drafts_, 1);
  record(draft_tokens_, run);
  record(accepted_tokens_, accepted);
}
void Telemetry::looked_up(const Sequence& sequence, PrefixIndex::Miss miss) {
  record(query_tokens_, static_cast<double>(sequence.tokens.size()));
  record(cached_tokens_, sequence.computed);
  record(misses_[static_cast<int>(miss)], 1);
  if (miss == PrefixIndex::Miss::none || !log::enabled(log::Level::debug)) return;
  log::debug("cache", "request " + sequence.request->request.id + ": " + std::to_string(sequence.computed) + " of " +
                          std::to_string(sequence.tokens.size()) + " tokens were known (" + miss_name(miss) + "); the next one is " +
                          std::to_string(sequence.tokens[sequence.computed]));
}
void Telemetry::stored(std::uint64_t bytes) { record(tier_written_, static_cast<double>(bytes)); }
void Telemetry::fetched(std::uint64_t bytes) { record(tier_read_, static_cast<double>(bytes)); }
void Telemetry::tier_failed() { record(tier_failures_, 1); }
void Telemetry::step(std::uint64_t step_ns, std::uint32_t sequences, std::uint32_t tokens) {
  record(steps_, 1);
  record(step_sequences_, sequences);
  record(step_tokens_, tokens);
  record(step_time_, seconds(step_ns));
}
void Telemetry::stalled() const { record(stalls_, 1); }

void Telemetry::finished(const Sequence& sequence, const Event& event, std::uint64_t now_ns) {
  const auto& request = *sequence.request;
  if (event.error.code != Code::busy) {  // who was refused is counted as that
    record(finished_[static_cast<int>(event.finish)], 1);
    if (request.open_answers == 0) record(request_time_, seconds(event.timings.total));
  }
  const auto tpot = metrics::tpot_seconds(event.timings.decode, event.usage.completion_tokens);
  if (tpot) record(tpot_, *tpot);

  std::vector<mekik_field> fields{text("id", request.request.id),
                                  text("model", runtime_.model_name),
                                  number("index", MEKIK_OPT_INT, event.index),
                                  text("finish_reason", finish_name(event.finish)),
                                  number("prompt_tokens", MEKIK_OPT_INT, event.usage.prompt_tokens),
                                  number("cached_tokens", MEKIK_OPT_INT, event.usage.cached_tokens),
                                  number("completion_tokens", MEKIK_OPT_INT, event.usage.completion_tokens),
                                  number("queue_seconds", MEKIK_OPT_REAL, seconds(event.timings.queued)),
                                  number("total_seconds", MEKIK_OPT_REAL, seconds(event.timings.total))};
  if (runtime_.drafter) {
    fields.push_back(number("accepted_draft_tokens", MEKIK_OPT_INT, event.usage.accepted_drafts));
    fields.push_back(number("rejected_draft_tokens", MEKIK_OPT_INT, event.usage.rejected_drafts));
  }
  if (event.usage.completion_tokens > 0) fields.push_back(number("ttft_seconds", MEKIK_OPT_REAL, seconds(event.timings.ttft)));
  if (tpot) fields.push_back(number("tpot_seconds", MEKIK_OPT_REAL, *tpot));
  if (!event.error.ok()) fields.push_back(text("error", event.error.text));
  for (const auto& sink : runtime_.sinks) {
    if (MEKIK_HAS(mekik_sink_api, sink.operator->(), event) && sink->event != nullptr)
      sink->event(sink.get(), "request_finished", now_ns, fields.data(), static_cast<std::uint32_t>(fields.size()), sizeof(mekik_field));
  }
}

void Telemetry::levels(const EngineStats& stats) {
  record(running_, stats.running);
  record(waiting_, stats.waiting);
  record(blocks_, stats.blocks_total);
  record(blocks_free_, stats.blocks_free);
}

void Telemetry::publish(std::uint64_t now_ns, bool at_once) {
  if (runtime_.sinks.empty() || (!at_once && now_ns - last_publish_ns_ < kPublishEveryNs)) return;
  last_publish_ns_ = now_ns;
  const auto snapshot = runtime_.metrics->snapshot();
  for (const auto& sink : runtime_.sinks)
    sink->publish(sink.get(), now_ns, snapshot.samples.data(), static_cast<std::uint32_t>(snapshot.samples.size()), sizeof(mekik_sample));
}

}  // namespace mekik::engine
