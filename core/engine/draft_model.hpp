// The model of a drafter: what it has computed of which sequence, and its rows, token by token.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/batch.hpp"
#include "engine/runtime.hpp"
#include "engine/sequence.hpp"

namespace mekik::engine {

// Blocks of its own for each sequence that was proposed for. What turns out wrong is written over; who has not been asked for longest
// gives up its blocks when they run out. [engine thread]
class DraftModel {
 public:
  explicit DraftModel(const Runtime& runtime);

  // The sequence's text so far. False: the model cannot follow it now, for its length, for a token that its vocabulary does not have, or
  // for what there is to catch up with; a part of that is computed by the next run().
  bool follow(std::uint64_t seq, std::span<const std::int32_t> tokens);
  // A token that is proposed behind it.
  void append(std::uint64_t seq, std::int32_t token);
  std::span<const std::int32_t> tokens(std::uint64_t seq) const { return sequences_.at(seq)->tokens; }
  // Computes what is missing of these sequences, and beside it of those that catch up. Then each has its row. A sequence without one
  // found no blocks.
  Status run(const std::vector<std::uint64_t>& sequences);
  std::span<const float> row(std::uint64_t seq) const;  // empty: none
  void forget(std::uint64_t seq) { sequences_.erase(seq); }

  Status check_invariants() const;  // for tests

 private:
  struct Text : Sequence {
    std::uint64_t asked = 0;          // the last follow(), counted
    std::size_t sure = 0;             // tokens that are no proposal
    bool foreign = false;             // one of them is not in the vocabulary
    std::uint32_t row = 0, rows = 0;  // of the last run
  };
  std::uint32_t take_blocks(Text& s, std::uint32_t tokens);
  bool make_room(const Text& needs);
  void let_go(Text& s);

  const Runtime& runtime_;
  std::vector<Pool> pools_;  // per group; before what holds leases
  ActiveRequest request_;    // of nobody
  std::map<std::uint64_t, std::unique_ptr<Text>> sequences_;
  std::vector<std::uint64_t> behind_;  // those that catch up
  Batch batch_;
  std::vector<float> rows_;
  std::uint64_t asks_ = 0, runs_ = 0;
};

}  // namespace mekik::engine
