// Speculation: a drafter proposes how answers go on, the next step computes what is worth it beside the tokens that are due, and
// Loop::verify keeps what came true. See plugin.h for the drafter's side.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/batch.hpp"
#include "engine/draft_model.hpp"
#include "engine/runtime.hpp"
#include "engine/sequence.hpp"
#include "engine/step_costs.hpp"
#include "engine/telemetry.hpp"

namespace mekik::engine {

// What is left of a step's limits when everyone has what is due.
struct DraftRoom {
  std::uint32_t tokens = 0;
  std::vector<std::uint32_t> granted;  // by part
};

// [engine thread]
class Speculation {
 public:
  static constexpr std::uint32_t kTries = 128, kFewestTries = 2048;
  static constexpr std::uint64_t kComparedEvery = 256;  // steps; a step without drafts must be known to compare with
  Speculation(const Runtime& runtime, Telemetry& telemetry);
  bool on() const { return static_cast<bool>(runtime_.drafter); }
  std::uint32_t rows() const { return on() ? runtime_.limits.max_rows - runtime_.limits.max_seqs : 0; }  // for drafts, of a step
  // Tokens that can be proposed for the sequence, which gets no longer than `longest`: none unless it is decoding.
  std::uint32_t most(const Sequence& s, std::uint32_t longest) const;
  // What is proposed for the parts and worth running. Good until the next call.
  void propose(const std::vector<Part>& parts, const DraftRoom& room);
  std::span<const std::int32_t> tokens(std::size_t part) const { return tokens_[part]; }
  std::span<const float> confidences(std::size_t part) const { return confidences_[part]; }
  void measured(const std::vector<Part>& parts, std::uint64_t step_ns);
  // Of the part's drafts so many came true.
  void verified(const Part& part, std::uint32_t accepted);
  void ended(const Sequence& s);
  Status check_invariants() const { return model_ ? model_->check_invariants() : Status{}; }

 private:
  struct Candidate {
    std::size_t part;
    double value;  // the probability that it is reached and comes true
  };
  // A proposal that a model is making, token by token.
  struct Open {
    std::size_t part;
    std::uint32_t room;
    std::optional<sample::Chain> chain;  // the sequence's, with what is proposed; none: a link cannot be copied
    double value = 1;                    // the probability that all of it comes true
  };
  void settle_guess(Sequence& s);
  double comes_true(const Sequence& s, float confidence) const { return s.draft.leaning.of(acceptance_.of(confidence)); }
  void came(Sequence& s, float confidence, bool did) {
    s.draft.leaning.seen(acceptance_.of(confidence), did);
    acceptance_.seen(confidence, did);
  }
  // speculate_model.cpp
  bool ask_model(const std::vector<Part>& parts, const DraftRoom& room);
  std::vector<Open> open_proposals(const std::vector<Part>& parts, const DraftRoom& room);
  std::uint32_t depth(const Sequence& s, std::uint32_t parts, std::uint32_t most);
  double least_value(std::uint32_t parts, std::size_t open) const;
  Status extend(const std::vector<Part>& parts, std::vector<Open>& open);

  bool ask(const std::vector<Part>& parts, const DraftRoom& room);
  void clean(const std::vector<Part>& parts);
  void choose(const std::vector<Part>& parts, const DraftRoom& room);
  std::size_t paying(std::vector<Candidate>& candidates, std::size_t parts) const;
  void complain(const std::string& what);
  bool usable(std::int32_t token);
  static float trusted(float confidence);

  const Runtime& runtime_;
  Telemetry& telemetry_;
  StepCosts costs_;
  Acceptance acceptance_{0.995F};
  std::vector<mekik_draft_ask> asks_;
  std::vector<mekik_draft_out> outs_;
  std::vector<std::size_t> asked_;                 // the part of each ask
  std::vector<std::vector<std::int32_t>> tokens_;  // by part
  std::vector<std::vector<float>> confidences_;
  bool complained_ = false;
  // Of a drafter with a model.
  std::unique_ptr<DraftModel> model_;
  Share share_{0.995F};
  double draft_ns_ = 0;                          // of a run of the draft model
  std::uint32_t idle_ = 0, try_again_ = kTries;  // steps since a proposal was made; after so many one is tried
  std::vector<float> logits_;
};

}  // namespace mekik::engine
