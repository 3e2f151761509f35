#include "metrics/names.hpp"

namespace mekik::metrics {

namespace {

// Bounds include those of vLLM, so that existing dashboards fit; the small ones resolve models that decode in under 10 ms.
const std::vector<double> kTtftBounds{0.0005, 0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                      1,      2.5,   5,     7.5,  10,   20,   40,   80,   160, 640,  2560};
const std::vector<double> kTokenBounds{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,
                                       0.3,    0.4,     0.5,    0.75,  1,      2.5,   5,    7.5,   10,   20,    40,  80};
const std::vector<double> kRequestBounds{0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1,   1.5, 2,   2.5, 5,    10,
                                         15,   20,   30,  40,  50,  60,  120, 240, 480, 960, 1920, 7680};

}  // namespace

const Definition kRequestsRunning{
    "mekik_num_requests_running", MEKIK_SAMPLE_GAUGE, "Sequences that hold blocks and take part in steps.", {}};
const Definition kRequestsWaiting{"mekik_num_requests_waiting", MEKIK_SAMPLE_GAUGE, "Sequences that wait for their first step.", {}};
const Definition kBlocksTotal{"mekik_kv_blocks", MEKIK_SAMPLE_GAUGE, "KV blocks of the scarcest group.", {}};
const Definition kBlocksFree{
    "mekik_kv_blocks_free", MEKIK_SAMPLE_GAUGE, "KV blocks that can be had at once: free, or held by the cache alone.", {}};
const Definition kPromptTokens{"mekik_prompt_tokens_total", MEKIK_SAMPLE_COUNTER, "Prompt tokens of accepted requests.", {}};
const Definition kGeneratedTokens{"mekik_generation_tokens_total", MEKIK_SAMPLE_COUNTER, "Tokens made.", {}};
const Definition kCachedTokens{"mekik_prefix_cache_hits_total", MEKIK_SAMPLE_COUNTER, "Prompt tokens whose state came from the cache.", {}};
const Definition kCacheQueryTokens{
    "mekik_prefix_cache_queries_total", MEKIK_SAMPLE_COUNTER, "Prompt tokens that were looked up in the cache.", {}};
const Definition kCacheMisses{"mekik_cache_miss_total",
                              MEKIK_SAMPLE_COUNTER,
                              "Prompts that were not wholly known, by what ended the known part: new_prompt (nothing was), diverged "
                              "(others went on otherwise), evicted "
                              "(it had been known), state (known, but no recurrent state was kept there).",
                              {}};
const Definition kTierWritten{"mekik_cache_tier_written_bytes_total", MEKIK_SAMPLE_COUNTER, "Bytes given to the cache's slower tier.", {}};
const Definition kTierRead{
    "mekik_cache_tier_read_bytes_total", MEKIK_SAMPLE_COUNTER, "Bytes that came back from the cache's slower tier.", {}};
const Definition kTierFailures{"mekik_cache_tier_failures_total",
                               MEKIK_SAMPLE_COUNTER,
                               "Values that the slower tier could not store, could not give back, or gave back too late or damaged.",
                               {}};
const Definition kPreemptions{
    "mekik_num_preemptions_total",
    MEKIK_SAMPLE_COUNTER,
    "Sequences that lost their blocks before they ended, by kind: swap (they were stored in the slower tier), recompute.",
    {}};
const Definition kComputedAgain{
    "mekik_preempted_tokens_computed_total", MEKIK_SAMPLE_COUNTER, "Tokens of preempted sequences that were computed again.", {}};
const Definition kSteps{"mekik_steps_total", MEKIK_SAMPLE_COUNTER, "Steps that the backend ran.", {}};
const Definition kStepSequences{"mekik_step_sequences_total",
                                MEKIK_SAMPLE_COUNTER,
                                "Sequences in steps, added up: over steps and scheduler.max_sequences the part of all places that is busy.",
                                {}};
const Definition kStepTokens{"mekik_step_tokens_total", MEKIK_SAMPLE_COUNTER, "Tokens in steps, of prompts, answers and drafts.", {}};
const Definition kWatchdogStalls{
    "mekik_watchdog_stalls_total", MEKIK_SAMPLE_COUNTER, "Times that the watchdog saw the loop make no progress.", {}};
const Definition kDrafts{
    "mekik_spec_decode_num_drafts_total", MEKIK_SAMPLE_COUNTER, "Proposals that were run, each of one sequence in a step.", {}};
const Definition kDraftTokens{"mekik_spec_decode_num_draft_tokens_total", MEKIK_SAMPLE_COUNTER, "Proposed tokens that were run.", {}};
const Definition kAcceptedTokens{
    "mekik_spec_decode_num_accepted_tokens_total", MEKIK_SAMPLE_COUNTER, "Proposed tokens that were run and came true.", {}};
const Definition kRequestsFinished{
    "mekik_requests_finished_total", MEKIK_SAMPLE_COUNTER, "Answers that ended, by reason (stop, length, cancelled, error).", {}};
const Definition kRequestsRefused{
    "mekik_requests_refused_total",
    MEKIK_SAMPLE_COUNTER,
    "Requests that the engine did not accept, by reason (busy, invalid); what the server refuses by itself is not among them.",
    {}};
const Definition kTtft{"mekik_time_to_first_token_seconds", MEKIK_SAMPLE_HISTOGRAM, "From a request's arrival to its first token.",
                       kTtftBounds};
const Definition kTpot{"mekik_request_time_per_output_token_seconds", MEKIK_SAMPLE_HISTOGRAM,
                       "Per answer of two tokens or more: from the first token to the last, over the tokens after the first.",
                       kTokenBounds};
const Definition kInterToken{"mekik_inter_token_latency_seconds", MEKIK_SAMPLE_HISTOGRAM, "Between two steps that gave a sequence tokens.",
                             kTokenBounds};
const Definition kRequestTime{"mekik_e2e_request_latency_seconds", MEKIK_SAMPLE_HISTOGRAM, "From a request's arrival to its end.",
                              kRequestBounds};
const Definition kQueueTime{"mekik_request_queue_time_seconds", MEKIK_SAMPLE_HISTOGRAM,
                            "From a request's arrival to the first step that ran it.", kRequestBounds};
const Definition kStepTime{"mekik_step_seconds", MEKIK_SAMPLE_HISTOGRAM, "One step of the backend, submission to completion.",
                           kTokenBounds};

const std::vector<Definition>& definitions() {
  static const std::vector<Definition> all{kRequestsRunning, kRequestsWaiting,  kBlocksTotal,      kBlocksFree,    kPromptTokens,
                                           kGeneratedTokens, kCachedTokens,     kCacheQueryTokens, kCacheMisses,   kTierWritten,
                                           kTierRead,        kTierFailures,     kPreemptions,      kComputedAgain, kSteps,
                                           kStepSequences,   kStepTokens,       kWatchdogStalls,   kDrafts,        kDraftTokens,
                                           kAcceptedTokens,  kRequestsFinished, kRequestsRefused,  kTtft,          kTpot,
                                           kInterToken,      kRequestTime,      kQueueTime,        kStepTime};
  return all;
}

mekik_metric* make(Metrics& metrics, const Definition& definition, std::string_view labels) {
  switch (definition.type) {
    case MEKIK_SAMPLE_COUNTER:
      return metrics.counter(definition.name, definition.help, labels);
    case MEKIK_SAMPLE_GAUGE:
      return metrics.gauge(definition.name, definition.help, labels);
    case MEKIK_SAMPLE_HISTOGRAM:
      return metrics.histogram(definition.name, definition.help, definition.bounds, labels);
    default:
      return nullptr;
  }
}

std::optional<double> tpot_seconds(std::uint64_t first_to_last_ns, std::uint32_t completion_tokens) {
  if (completion_tokens < 2) return std::nullopt;
  return static_cast<double>(first_to_last_ns) * 1e-9 / static_cast<double>(completion_tokens - 1);
}

}  // namespace mekik::metrics
