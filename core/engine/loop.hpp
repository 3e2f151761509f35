// The engine loop without its thread: tests turn it by hand, Engine::start turns it in a thread.
#pragma once
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/batch.hpp"
#include "engine/prefix_index.hpp"
#include "engine/runtime.hpp"
#include "engine/sequence.hpp"
#include "engine/speculate.hpp"
#include "engine/telemetry.hpp"
#include "engine/tier.hpp"

namespace mekik::engine {

// Answers to one prompt; more are refused.
inline constexpr std::uint32_t kMaxAnswers = 128;

class Loop {
 public:
  enum class Turn { idle, blocked, ran };  // nothing to do; something, but no step could run; one step ran

  explicit Loop(Runtime runtime);
  ~Loop();  // cancels what is left, with events

  // [any] As Engine.
  Result<RequestId> submit(Request request, OnEvent on_event);
  void cancel(RequestId id);
  void cancel_all();
  EngineStats stats() const;
  void refuse_new();  // draining
  bool refusing() const { return refusing_; }
  bool wait_until_done(std::uint64_t timeout_ns);  // real time; false: requests are left

  // [engine] One turn of the loop.
  Turn step();
  // [engine] Sleeps until a request, a cancel or wake() comes, at most for `most_ns`.
  void sleep(std::uint64_t most_ns);
  void wake();  // [any]

  // Promises about blocks, slots and sequences; an error names the broken one. For tests, after every step.
  Status check_invariants() const;
  const Runtime& runtime() const { return runtime_; }

 private:
  // loop.cpp, in the order of a step
  void admit();
  void end_overdue();
  std::vector<mekik_choice> ask_scheduler();
  std::vector<Part> check_plan(const std::vector<mekik_choice>& plan);
  std::optional<Part> start_part(Sequence& s, const mekik_choice& choice, std::uint32_t tokens_left, std::uint32_t rows_left);
  void match_cache(Sequence& s);
  bool copy_rows(Sequence& s, const PrefixIndex::Match& next);
  std::uint32_t take_blocks(Sequence& s, std::uint32_t tokens);
  bool evict(std::uint32_t group);
  Status run(const std::vector<Part>& parts);
  Status wait_for(std::uint64_t ticket);
  void advance(const std::vector<Part>& parts);
  void keep_state(Sequence& s);
  void publish(bool at_once);
  // preempt.cpp
  void make_room();
  void preempt(Sequence& s, bool swap);
  bool comes_back(Sequence& s);
  void resumed(Sequence& s, std::uint32_t known);
  // states.cpp
  Lease take_slot();
  Lease take_block(std::uint32_t group);
  bool spare_slot() const;
  int worth(const Sequence& s, std::uint32_t tokens) const;
  bool take_slots(Sequence& s, std::uint32_t tokens);
  void name_slots(const Sequence& s, std::uint64_t ticket);
  void keep_slots(Sequence& s);
  // speculate.cpp
  void add_drafts(std::vector<Part>& parts, const std::vector<std::uint32_t>& granted);
  void verify(const Part& part);
  // output.cpp
  void sample(const Part& part);
  void score(const Part& part, std::uint32_t first);
  void give_vector(const Part& part);
  void sample_row(Sequence& s, std::span<float> row);
  void fork(Sequence& leader, std::span<const float> row);
  bool move(const std::vector<mekik_move>& moves);
  bool share_state(const Sequence& leader, Sequence& s);
  void append(Sequence& s, TokenInfo info);
  void finish(Sequence& s, Finish why, Status error = {}, std::vector<TokenInfo> tokens = {}, std::string text = {},
              std::uint64_t retry_ns = 0);
  void deliver(Sequence& s, Event& event);
  void fail_parts(const std::vector<Part>& parts, const Status& error);
  void fail_all(const Status& error);
  void sweep();
  // admission.cpp
  Status check(const Request& request) const;
  Status check_kind(const Request& request) const;
  std::uint64_t now() const { return runtime_.clock->now_ns(); }
  std::uint32_t blocks_for(std::uint32_t tokens) const {
    return (tokens + runtime_.limits.block_tokens - 1) / runtime_.limits.block_tokens;
  }

  Runtime runtime_;
  Telemetry telemetry_;
  Speculation speculation_;
  const mekik_vocab vocab_;
  std::uint32_t state_blocks_ = 1;  // of a prompt from one kept state to the next
  std::uint32_t longest_ = 0;       // tokens that a sequence may have: the context, or what the pools hold

  mutable std::mutex mutex_;  // of what is marked [any]; before the tier, whose calls wake the loop until the last of them is over
  std::condition_variable wake_, done_;
  bool woken_ = false;

  // [engine] only
  std::vector<Pool> pools_;  // per group; before everything that holds leases
  Pool slots_;
  PrefixIndex prefixes_;
  Tier tier_;
  std::vector<std::unique_ptr<ActiveRequest>> requests_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  // in order of arrival
  Batch batch_;
  std::vector<float> logits_, row_;
  std::vector<double> scratch_;
  std::vector<mekik_seq_view> view_;
  mekik_step_view step_view_{};  // of the last plan
  std::vector<Sequence*> view_sequences_;
  bool short_of_blocks_ = false, scheduler_warned_ = false, blocked_said_ = false;
  std::uint64_t next_sequence_ = 1, steps_ = 0;

  // [any]
  std::vector<std::pair<std::unique_ptr<ActiveRequest>, std::vector<std::unique_ptr<Sequence>>>> inbox_;
  std::vector<RequestId> cancels_;
  bool cancel_all_ = false;
  std::uint32_t queued_ = 0, open_ = 0;  // requests before their first step; requests without all finishes
  RequestId next_request_ = 1;
  EngineStats stats_;
  std::atomic<bool> refusing_{false}, lost_{false}, busy_{false};
  std::atomic<std::uint64_t> progress_ns_{0};
  mutable std::atomic<bool> stalled_{false};
};

}  // namespace mekik::engine
