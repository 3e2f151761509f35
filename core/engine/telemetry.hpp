// The engine's numbers on their way to the metrics registry and the sinks. Names and meanings: metrics/names.hpp.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "engine/prefix_index.hpp"
#include "engine/runtime.hpp"
#include "engine/sequence.hpp"

namespace mekik::engine {

class Telemetry {
 public:
  explicit Telemetry(const Runtime& runtime);
  void accepted(const ActiveRequest& request);                // [any]
  void refused(Code code);                                    // [any]
  void started(const ActiveRequest& request);                 // its first step
  void token(const Sequence& sequence, std::uint64_t now_ns,  // after the sequence counted it
             std::optional<std::uint64_t> previous_ns);
  void preempted(bool swapped);
  void computed_again(std::uint32_t tokens);                         // after a preemption
  void drafted(std::uint32_t run, std::uint32_t accepted);           // of one sequence in a step
  void looked_up(const Sequence& sequence, PrefixIndex::Miss miss);  // its `computed` tokens were known
  void stored(std::uint64_t bytes);                                  // given to the cache's slower tier
  void fetched(std::uint64_t bytes);                                 // got from there
  void tier_failed();
  void step(std::uint64_t step_ns, std::uint32_t sequences, std::uint32_t tokens);
  // Also one event "request_finished" to every sink.
  void finished(const Sequence& sequence, const Event& event, std::uint64_t now_ns);
  void levels(const EngineStats& stats);
  void stalled() const;  // [any]
  // Hands all metrics to the sinks when a second has passed since the last time, or at once.
  void publish(std::uint64_t now_ns, bool at_once);

 private:
  const Runtime& runtime_;
  std::string labels_;
  std::uint64_t last_publish_ns_ = 0;
  mekik_metric *running_, *waiting_, *blocks_, *blocks_free_, *prompt_tokens_, *generated_tokens_, *cached_tokens_, *query_tokens_,
      *computed_again_, *tier_written_, *tier_read_, *tier_failures_, *drafts_, *draft_tokens_, *accepted_tokens_, *steps_,
      *step_sequences_, *step_tokens_, *stalls_, *ttft_, *tpot_, *inter_token_, *request_time_, *queue_time_, *step_time_;
  mekik_metric* finished_[5];
  mekik_metric* misses_[5];
  mekik_metric *dropped_, *swapped_;
  mekik_metric *refused_busy_, *refused_invalid_;
};

}  // namespace mekik::engine
