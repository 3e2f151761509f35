// Proposals over several sequences that come, grow and go.
#include <algorithm>
#include <cmath>

#include "kinds/vocab.hpp"
#include "support/instance.hpp"

namespace mekik::validate {

namespace {

struct Stream {
  std::uint64_t seq, tenant;
  std::vector<std::int32_t> tokens;
  std::uint32_t n_prompt, proposed = 0;
};

class DrafterWorkout final : public Workout {
 public:
  explicit DrafterWorkout(const WorkoutPlan& plan)
      : plan_{plan}, table_{table_of<mekik_drafter>(plan.component)}, random_{plan.mode.seed}, vocab_{300} {}
  bool begin() override {
    self_ = create<mekik_draft>(plan_, [&](auto host, auto config, auto out) { return table_.create(host, config, vocab_.raw(), out); });
    return self_ != nullptr;
  }
  unsigned steps() const override { return static_cast<unsigned>(40 * plan_.mode.scale); }
  void step(unsigned i) override {
    if (i % 3 == 0 && streams_.size() < 6) {
      streams_.push_back({1 + next_++, i % 2, {}, 0});
      const std::size_t n = i == 0 ? 1 : 1 + below(random_, 40);
      for (std::size_t t = 0; t < n; ++t) streams_.back().tokens.push_back(word());
      streams_.back().n_prompt = static_cast<std::uint32_t>(n);
    }
    propose(i);
    for (Stream& s : streams_) {
      if (s.proposed > 0 || below(random_, 3) == 0) {
        const auto run = static_cast<std::uint32_t>(below(random_, s.proposed + 1)),
                   accepted = static_cast<std::uint32_t>(below(random_, run + 1));
        call(plan_.mode, "verified", [&] { table_.verified(self_, s.seq, run, accepted); });
      }
      for (std::uint64_t t = 0; t <= below(random_, 3); ++t) s.tokens.push_back(word());
    }
    if (i % 7 == 6 && !streams_.empty()) leave();
    if (i == 5) {  // one that it was never asked for
      call(plan_.mode, "verified", [&] { table_.verified(self_, 987654321, 0, 0); });
    }
  }
  void end() override {
    while (streams_.size() > 1) leave();  // the last one is still there when the engine ends
    call(plan_.mode, "destroy", [&] { table_.destroy(self_); });
  }

 private:
  std::int32_t word() {  // few, so that things repeat
    at_ = (at_ * 5 + (below(random_, 6) == 0 ? 3 : 1)) % 23;
    return static_cast<std::int32_t>(at_ + (at_ == 7 ? 292 : 0));
  }
  void leave() {
    const Stream s = streams_.front();
    streams_.erase(streams_.begin());
    Lent lent{plan_.mode};
    const std::int32_t* tokens = lent.in("tokens", s.tokens);
    call(plan_.mode, "forget",
         [&] { table_.forget(self_, s.seq, s.tenant, tokens, static_cast<std::uint32_t>(s.tokens.size()), s.n_prompt); });
  }
  void propose(unsigned i) {
    const bool by_model = (table_.wants & MEKIK_WANT_MODEL) != 0;
    Lent lent{plan_.mode};
    std::vector<mekik_draft_ask> asks;
    std::vector<mekik_draft_out> outs;
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      mekik_draft_ask a{};
      a.seq = streams_[s].seq;
      a.tenant = streams_[s].tenant;
      a.tokens = lent.in("tokens", streams_[s].tokens);
      a.n_tokens = static_cast<std::uint32_t>(streams_[s].tokens.size());
      a.n_prompt = streams_[s].n_prompt;
      a.room = by_model ? 1 : static_cast<std::uint32_t>((i + s) % 5 == 4 ? 0 : 1 + below(random_, 12));
      a.uniform = static_cast<double>(below(random_, 1000)) / 1000;
      a.vocab = vocab_.size();
      if (by_model) {
        std::vector<float> logits(vocab_.size());
        for (float& x : logits) x = static_cast<float>(below(random_, 1000)) / 100;
        a.logits = lent.in("logits", logits);
      }
      asks.push_back(a);
      outs.push_back({lent.out<std::int32_t>("proposed tokens", a.room), lent.out<float>("probs", a.room), 0, 0});
    }
    std::uint32_t ask_size = 0, out_size = 0;
    const mekik_draft_ask* in = lent.rows("asks", asks, ask_size);
    mekik_draft_out* out = lent.out_rows<mekik_draft_out>("outs", outs.size(), out_size);
    for (std::size_t s = 0; s < outs.size(); ++s) Lent::at(out, s, out_size) = outs[s];
    const Answer a = ask(plan_.mode, "propose",
                         [&] { return table_.propose(self_, in, static_cast<std::uint32_t>(asks.size()), ask_size, out, out_size); });
    for (Stream& s : streams_) s.proposed = 0;
    if (!expect_ok(plan_.mode, "propose", a)) return;
    for (std::size_t s = 0; s < asks.size(); ++s) check(asks[s], outs[s], Lent::at(out, s, out_size), streams_[s], i);
  }
  void check(const mekik_draft_ask& a, const mekik_draft_out& given, const mekik_draft_out& got, Stream& s, unsigned i) {
    if (got.tokens != given.tokens || got.probs != given.probs) return rule("propose: changed the host's pointers in mekik_draft_out");
    if (got.n > a.room)
      return rule("propose: proposed " + std::to_string(got.n) + " tokens where " + std::to_string(a.room) + " have room");
    for (std::uint32_t j = 0; j < got.n; ++j) {
      transcript.add("propose " + std::to_string(i), got.tokens[j]);
      transcript.add("propose " + std::to_string(i) + ", probability", got.probs[j]);
      if (got.tokens[j] < 0 || static_cast<std::uint32_t>(got.tokens[j]) >= vocab_.size())
        return rule("propose: proposed token " + std::to_string(got.tokens[j]) + " of " + std::to_string(vocab_.size()) +
                    ", or did not write it");
      if (!(got.probs[j] >= 0 && got.probs[j] <= 1))
        return rule("propose: gave a token the probability " + std::to_string(got.probs[j]) + ", or did not write it");
    }
    s.proposed = got.n;
  }

  const WorkoutPlan plan_;
  const mekik_drafter table_;
  Random random_;
  Vocabulary vocab_;
  mekik_draft* self_ = nullptr;
  std::vector<Stream> streams_;
  std::uint64_t next_ = 0, at_ = 1;
};

}  // namespace

std::unique_ptr<Workout> make_drafter(const WorkoutPlan& plan) { return std::make_unique<DrafterWorkout>(plan); }

}  // namespace mekik::validate
