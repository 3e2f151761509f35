// A request inside the loop, and its answers.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/acceptance.hpp"
#include "engine/answer_text.hpp"
#include "engine/blocks.hpp"
#include "engine/engine.hpp"
#include "sample/chain.hpp"

namespace mekik::engine {

struct Sequence;

struct ActiveRequest {
  RequestId id = 0;
  Request request;
  OnEvent on_event;
  std::uint64_t seed = 0, arrival_ns = 0, order = 0;
  std::optional<std::uint64_t> first_run_ns, first_token_ns;
  std::uint32_t open_answers = 0;          // without a finish yet
  std::uint32_t cached_tokens = 0;         // of the prompt, at the first run
  bool muted = false;                      // the callback threw: no more calls
  std::vector<TokenInfo> prompt_logprobs;  // score_prompt: grows with the chunks
};

enum class SequenceState {
  waiting,    // holds nothing; computed is 0
  following,  // an answer beyond the first: waits for the first one's prompt, to share its blocks
  running,    // holds blocks
  done,       // has its finish; removed at the end of the step
};

// What the prefix index has of a sequence that waits, so that a look costs little: a key is hashed once.
struct Lookup {
  std::vector<std::array<std::uint8_t, 32>> keys;  // of the root, then of blocks from the first on
  std::uint64_t epoch = 0;                         // of the index, when it was asked; 0: never
  std::uint32_t blocks = 0, tokens = 0;            // whole blocks in front that it had; tokens that need not be computed
};

// A state that was kept on the way: a sequence that has the same tokens up to there can go on from it.
struct Checkpoint {
  std::uint32_t tokens = 0;  // after so many; more than the sequence has computed: it is made by the step in progress
  Lease slot;
};

// One answer: a stream of tokens with its state on the backend.
struct Sequence {
  ActiveRequest* request = nullptr;
  std::uint32_t index = 0;  // which of the n answers
  std::uint64_t id = 0;
  SequenceState state = SequenceState::waiting;
  std::vector<std::int32_t> tokens;  // prompt, then what was made
  std::uint32_t prompt_tokens = 0;
  std::uint32_t computed = 0;                 // tokens whose state is stored; the rest is to be computed
  std::vector<std::vector<Lease>> blocks;     // per group; an empty lease: behind the group's window
  Lease slot;                                 // of the state after `computed` tokens; empty: none yet
  Lease next_slot;                            // during a step: where the state goes, when it may not go to `slot`
  std::vector<Checkpoint> checkpoints;        // ascending; behind the full blocks that the prefix index knows
  Lookup lookup;                              // while it waits
  std::uint32_t branch = 0;                   // where others that began the same went another way; 0: nowhere
  std::uint32_t keyed_blocks = 0;             // full blocks that the prefix index knows
  std::array<std::uint8_t, 32> prefix_key{};  // of the last of them
  sample::Chain chain;
  AnswerText text{nullptr, {}, false};
  bool prompt_told = false;
  std::uint32_t stopped_at = 0;  // preempted after it had computed so many tokens; 0: it was not, or runs again
  bool swapped = false;          // and they were given to the slower tier
  bool swap_pays = false;        // as it was judged last
  std::uint8_t fetches = 0;      // begun since then
  std::vector<float> vector;     // with Request::vector, for its event
  std::uint64_t first_token_ns = 0, last_token_ns = 0;
  DraftState draft;

  std::uint32_t generated() const { return static_cast<std::uint32_t>(tokens.size()) - prompt_tokens; }
  std::uint32_t left() const { return static_cast<std::uint32_t>(tokens.size()) - computed; }
  bool active() const { return state == SequenceState::waiting || state == SequenceState::running; }
  bool scoring() const { return request->request.score_prompt && generated() == 0 && index == 0; }
  void drop_state() {
    blocks.clear();
    slot.reset();
    next_slot.reset();
    checkpoints.clear();
    computed = keyed_blocks = branch = 0;
  }
};

}  // namespace mekik::engine
