// The engine's metrics, each defined once: the server, bench and every sink read these and no others.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "metrics/metrics.hpp"

namespace mekik::metrics {

struct Definition {
  const char* name;
  std::uint32_t type;  // MEKIK_SAMPLE_*
  const char* help;
  std::vector<double> bounds;
};

// Times start when the engine accepts a request (its arrival), so waiting in the queue counts.
extern const Definition kRequestsRunning, kRequestsWaiting, kBlocksTotal, kBlocksFree;
extern const Definition kPromptTokens, kGeneratedTokens, kCachedTokens, kCacheQueryTokens, kComputedAgain, kSteps, kWatchdogStalls;
extern const Definition kDrafts, kDraftTokens, kAcceptedTokens;
extern const Definition kRequestsFinished;  // labelled reason=stop|length|cancelled|error
extern const Definition kStepSequences, kStepTokens;
extern const Definition kTierWritten, kTierRead, kTierFailures;
extern const Definition kPreemptions;      // labelled kind=recompute|swap
extern const Definition kCacheMisses;      // labelled reason=new_prompt|diverged|evicted|state
extern const Definition kRequestsRefused;  // labelled reason=busy|invalid
extern const Definition kTtft, kTpot, kInterToken, kRequestTime, kQueueTime, kStepTime;

const std::vector<Definition>& definitions();  // all of the above

// The handle of a definition; nullptr as Metrics says.
mekik_metric* make(Metrics& metrics, const Definition& definition, std::string_view labels = {});

// Time per output token of one request: from the first token to the last, over the tokens after the first. A request with fewer
// than two tokens has none, and is not counted as zero.
std::optional<double> tpot_seconds(std::uint64_t first_to_last_ns, std::uint32_t completion_tokens);

}  // namespace mekik::metrics
