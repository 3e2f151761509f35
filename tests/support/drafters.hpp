// Drafters for tests of speculation: one that knows the answers, and one that is as wrong as can be.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "support/engine_bench.hpp"

namespace mekik::test {

// Calls a function of the test, and checks what it is asked.
class OwnDrafter {
 public:
  using Propose = std::function<void(const mekik_draft_ask&, mekik_draft_out&)>;
  explicit OwnDrafter(Propose propose) : propose_{std::move(propose)} {}
  OwnDrafter(OwnDrafter&&) = delete;
  void use_in(Setup& setup) {
    setup.drafter = &table();
    setup.drafter_state = reinterpret_cast<mekik_draft*>(this);
  }
  mekik_status fail = MEKIK_OK;  // of every propose()
  std::uint64_t asks = 0, run = 0, accepted = 0, guesses = 0, right_guesses = 0, forgotten = 0, most_room = 0;
  std::vector<std::string> faults;
  std::map<std::uint64_t, std::uint32_t> known;  // sequences, with their tokens so far

 private:
  static OwnDrafter& self(mekik_draft* d) { return *reinterpret_cast<OwnDrafter*>(d); }
  void fault(const std::string& what) { faults.push_back(what); }
  mekik_status propose(const mekik_draft_ask* ask, std::uint32_t n, mekik_draft_out* out) {
    for (std::uint32_t i = 0; i < n; ++i) {
      ++asks;
      most_room = std::max<std::uint64_t>(most_room, ask[i].room);
      if (ask[i].room == 0) fault("asked for nothing");
      if (ask[i].n_tokens <= ask[i].n_prompt) fault("asked before the first token");
      auto& tokens = known[ask[i].seq];
      if (ask[i].n_tokens <= tokens && tokens != 0) fault("asked twice for one token");
      tokens = ask[i].n_tokens;
      propose_(ask[i], out[i]);
    }
    return fail;
  }
  static const mekik_drafter& table() {
    static const mekik_drafter drafter{
        sizeof(mekik_drafter),
        0,
        nullptr,
        [](mekik_draft*) {},
        [](mekik_draft* d, const mekik_draft_ask* ask, std::uint32_t n, std::uint32_t, mekik_draft_out* out, std::uint32_t) {
          return self(d).propose(ask, n, out);
        },
        [](mekik_draft* d, std::uint64_t seq, std::uint32_t run, std::uint32_t accepted) {
          auto& my = self(d);
          if (my.known.count(seq) == 0) my.fault("told of an unknown sequence");
          if (run == 0) ++my.guesses, my.right_guesses += accepted;
          else my.run += run, my.accepted += accepted;
          if (accepted > std::max(run, 1u)) my.fault("more came true than was run");
        },
        [](mekik_draft* d, std::uint64_t seq, std::uint64_t, const std::int32_t*, std::uint32_t n, std::uint32_t n_prompt) {
          auto& my = self(d);
          if (my.known.count(seq) == 0 || n < my.known[seq] || n_prompt > n) my.fault("forgets what it does not know");
          my.known.erase(seq);
          ++my.forgotten;
        }};
    return drafter;
  }
  Propose propose_;
};

// Knows how texts go on, and tells the truth about each token with this probability.
class Oracle {
 public:
  Oracle(double truth, unsigned seed = 1) : truth_{truth}, random_{seed} {}
  void learn(const std::vector<std::int32_t>& prompt, const Answer& answer) {
    texts_.push_back(prompt);
    texts_.back().insert(texts_.back().end(), answer.tokens.begin(), answer.tokens.end());
  }
  void operator()(const mekik_draft_ask& ask, mekik_draft_out& out) {
    std::uniform_real_distribution<double> uniform;
    for (const auto& text : texts_) {
      if (text.size() < ask.n_tokens || !std::equal(ask.tokens, ask.tokens + ask.n_tokens, text.begin())) continue;
      for (; out.n < ask.room && ask.n_tokens + out.n < text.size(); ++out.n) {
        const std::int32_t next = text[ask.n_tokens + out.n];
        out.tokens[out.n] = uniform(random_) < truth_ ? next : (next + 1) % static_cast<std::int32_t>(ask.vocab);
        out.probs[out.n] = static_cast<float>(truth_);
      }
      if (out.n > 0) return;
    }
  }

 private:
  double truth_;
  std::mt19937 random_;
  std::vector<std::vector<std::int32_t>> texts_;
};

// Proposes at random: sometimes nothing, sometimes tokens that do not exist, and says that there are more than there is room for.
class Liar {
 public:
  explicit Liar(unsigned seed) : random_{seed} {}
  void operator()(const mekik_draft_ask& ask, mekik_draft_out& out) {
    if (random_() % 8 == 0) return;
    for (std::uint32_t i = 0; i < ask.room; ++i) {
      out.tokens[i] = random_() % 16 == 0 ? static_cast<std::int32_t>(random_()) : static_cast<std::int32_t>(random_() % ask.vocab);
      out.probs[i] = random_() % 8 == 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(random_() % 100) * 0.02F - 0.5F;
    }
    out.n = random_() % 16 == 0 ? static_cast<std::uint32_t>(random_()) : random_() % (ask.room + 1);
  }

 private:
  std::mt19937 random_;
};

}  // namespace mekik::test
