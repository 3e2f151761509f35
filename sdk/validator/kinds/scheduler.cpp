// A day of arrivals in fast motion: what a scheduler plans is carried out as the engine would, and checked against the view's limits.
#include <algorithm>
#include <chrono>

#include "support/instance.hpp"

namespace mekik::validate {

namespace {

struct Scenario {
  std::uint32_t max_tokens = 64, max_seqs = 8, block_tokens = 8, blocks = 4096, arrivals = 40, prompt = 60, answer = 16;
  bool rich = false;  // targets, tenants, priorities, drafts, fetches
  bool swaps = false;
};

Scenario scenario_of(std::uint64_t seed) {
  switch (seed % 6) {
    case 1:
      return {.blocks = 24, .rich = true, .swaps = true};
    case 2:
      return {.max_tokens = 1, .max_seqs = 1, .block_tokens = 1, .blocks = 100, .arrivals = 8, .prompt = 12, .answer = 5};
    case 3:
      return {.max_tokens = 512, .max_seqs = 256, .arrivals = 400, .prompt = 40, .answer = 6};
    case 4:
      return {.max_tokens = 16, .max_seqs = 4, .rich = true};
    case 5:
      return {.max_tokens = 0xFFFFFFFFu,
              .max_seqs = 0xFFFFFFFFu,
              .block_tokens = 4096,
              .blocks = 0xFFFFFFFFu,
              .arrivals = 12,
              .prompt = 100000,
              .answer = 3};
    default:
      return {};
  }
}

struct Sequence {
  mekik_seq_view view{};
  std::uint32_t answer_left = 0, computed = 0, swapped = 0;
  std::uint32_t fetch = 0;  // plans until its fetch is over
};

class SchedulerWorkout final : public Workout {
 public:
  explicit SchedulerWorkout(const WorkoutPlan& plan)
      : plan_{plan}, table_{table_of<mekik_scheduler>(plan.component)}, scenario_{scenario_of(plan.mode.seed)}, random_{plan.mode.seed} {}
  bool begin() override {
    self_ = create<mekik_sched>(plan_, [&](auto host, auto config, auto out) { return table_.create(host, config, out); });
    return self_ != nullptr;
  }
  unsigned steps() const override { return static_cast<unsigned>(60 * plan_.mode.scale); }
  void step(unsigned i) override {
    if (i == 3) plan_once({});  // nobody is there
    const std::uint64_t n = below(random_, 1 + 2 * scenario_.arrivals / 40);
    for (std::uint64_t a = 0; a < (i == 0 ? 3 : n) && arrived_ < scenario_.arrivals; ++a) arrive();
    turn();
  }
  void end() override {
    std::uint64_t left = 100;
    for (const Sequence& s : all_)
      left += 3 * (std::uint64_t{s.view.prompt_left} / std::min(scenario_.max_tokens, 64u) + s.answer_left + 2);
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(left, 20000) && !all_.empty(); ++i) turn();
    if (!all_.empty() && !plan_.mode.hostile)
      rule("plan: " + std::to_string(all_.size()) +
           " sequences were never finished after arrivals had ended, though everybody fits (scenario " +
           std::to_string(plan_.mode.seed % 6) + "): somebody starves");
    call(plan_.mode, "destroy", [&] { table_.destroy(self_); });
    self_ = nullptr;
  }

 private:
  void arrive() {
    ++arrived_;
    Sequence s;
    mekik_seq_view& v = s.view;
    v.id = 1000 + arrived_;
    v.arrival_ns = now_;
    v.prompt_left = 1 + static_cast<std::uint32_t>(below(random_, scenario_.prompt));
    s.answer_left = 1 + static_cast<std::uint32_t>(below(random_, scenario_.answer));
    if (scenario_.rich) {
      v.tenant = below(random_, 3);
      v.priority = static_cast<std::int32_t>(below(random_, 5)) - 2;
      if (below(random_, 3) == 0) v.ttft_ns = 20'000'000'000, v.tpot_ns = 5'000'000'000;
      if (below(random_, 4) == 0) v.deadline_ns = now_ + 60'000'000'000;
      v.max_drafts = static_cast<std::uint32_t>(below(random_, 4));
      if (below(random_, 4) == 0) s.fetch = 1 + static_cast<std::uint32_t>(below(random_, 5));
      if (below(random_, 4) == 0) v.known = static_cast<std::uint32_t>(below(random_, v.prompt_left));
    }
    all_.push_back(s);
  }
  std::uint32_t blocks_for(std::uint64_t tokens) const {
    return static_cast<std::uint32_t>((tokens + scenario_.block_tokens - 1) / scenario_.block_tokens);
  }
  std::uint32_t held() const {
    std::uint32_t sum = 0;
    for (const Sequence& s : all_) sum += s.view.blocks_held;
    return sum;
  }

  // The scheduler's choices for these sequences, checked.
  std::vector<mekik_choice> plan_once(const std::vector<mekik_seq_view>& views) {
    Lent lent{plan_.mode};
    mekik_step_view view{};
    view.struct_size = sizeof view;
    view.n_seqs = static_cast<std::uint32_t>(views.size());
    view.seqs = lent.rows("seqs", views, view.seq_size);
    view.max_tokens = scenario_.max_tokens;
    view.max_seqs = scenario_.max_seqs;
    view.block_tokens = scenario_.block_tokens;
    view.free_blocks = scenario_.blocks - std::min(scenario_.blocks, held());
    view.now_ns = now_;
    const std::uint32_t room = view.n_seqs;
    const mekik_step_view* lent_view = lent.one("mekik_step_view", view);
    std::uint32_t stride = 0;
    mekik_choice* out = lent.out_rows<mekik_choice>("choices", room, stride);
    std::uint32_t* n = lent.out<std::uint32_t>("n", 1);
    *n = room;
    const double began = own_seconds();
    const Answer answer = ask(plan_.mode, "plan", [&] { return table_.plan(self_, lent_view, out, stride, n); });
    const double seconds = plan_.mode.moving ? 0 : own_seconds() - began;
    if (seconds > 1) rule("plan: took " + std::to_string(seconds) + " s for " + std::to_string(views.size()) + " sequences");
    std::vector<mekik_choice> chosen;
    if (!expect_ok(plan_.mode, "plan", answer)) return chosen;
    if (*n > room) {
      rule("plan: says that it used " + std::to_string(*n) + " choices of a room for " + std::to_string(room));
      return chosen;
    }
    for (std::uint32_t i = 0; i < *n; ++i) chosen.push_back(Lent::at(out, i, stride));
    for (const mekik_choice& c : chosen) transcript.add("plan " + std::to_string(turns_), c);
    transcript.add("plan " + std::to_string(turns_) + ", choices", *n);
    lent.end();
    check(views, chosen);
    if (table_.observe != nullptr) {
      Lent again{plan_.mode};
      view.seqs = again.rows("seqs", views, view.seq_size);
      const mekik_step_view* seen = again.one("mekik_step_view", view);
      call(plan_.mode, "observe", [&] { table_.observe(self_, seen, 1'000'000 + 50'000 * views.size()); });
    }
    return chosen;
  }

  void check(const std::vector<mekik_seq_view>& views, const std::vector<mekik_choice>& chosen) {
    std::vector<bool> seen(views.size(), false);
    std::uint64_t tokens = 0, running = 0;
    const auto wrong = [&](const mekik_choice& c, const std::string& what) {
      rule("plan: chose " + what + " (sequence " + std::to_string(c.seq) + " of " + std::to_string(views.size()) + ")");
    };
    for (const mekik_choice& c : chosen) {
      if (c.seq >= views.size()) {
        wrong(c, "a sequence that is not in the view");
        continue;
      }
      const mekik_seq_view& v = views[c.seq];
      if (seen[c.seq]) wrong(c, "one sequence twice");
      seen[c.seq] = true;
      if (c.action < MEKIK_RUN || c.action > MEKIK_REFUSE) wrong(c, "the action " + std::to_string(c.action) + ", which is none");
      if (c.action == MEKIK_SWAP && v.swap_bytes == 0) wrong(c, "to swap one that cannot be swapped (swap_bytes is 0)");
      if (c.action != MEKIK_RUN) continue;
      ++running;
      tokens += c.tokens;
      if (c.tokens == 0) wrong(c, "to run no tokens");
      if (c.tokens > std::max(1u, v.prompt_left))
        wrong(c, "to run " + std::to_string(c.tokens) + " tokens where " + std::to_string(std::max(1u, v.prompt_left)) + " are left");
      if (v.waiting_fetch != 0) wrong(c, "to run one that waits for a fetch");
      if (c.drafts > v.max_drafts)
        wrong(c, std::to_string(c.drafts) + " drafts where at most " + std::to_string(v.max_drafts) + " may run");
    }
    if (tokens > scenario_.max_tokens)
      rule("plan: runs " + std::to_string(tokens) + " tokens in a step of at most " + std::to_string(scenario_.max_tokens));
    if (running > scenario_.max_seqs)
      rule("plan: runs " + std::to_string(running) + " sequences in a step of at most " + std::to_string(scenario_.max_seqs));
  }

  void turn() {
    ++turns_;
    std::vector<mekik_seq_view> views;
    for (Sequence& s : all_) {
      if (s.fetch > 0) --s.fetch;
      s.view.waiting_fetch = s.view.running == 0 && s.fetch > 0 ? 1 : 0;
      s.view.cached = s.computed;
      s.view.swap_bytes = scenario_.swaps && s.view.running != 0 && s.view.id % 2 == 0 ? 1u << 20 : 0;
      views.push_back(s.view);
    }
    const auto chosen = views.empty() ? std::vector<mekik_choice>{} : plan_once(views);
    std::vector<std::uint64_t> gone;
    bool moved = views.empty();
    for (const mekik_choice& c : chosen) {
      if (c.seq >= views.size()) continue;
      Sequence& s = all_[c.seq];
      if (c.action == MEKIK_REFUSE) gone.push_back(s.view.id), moved = true;
      if (c.action == MEKIK_DROP || c.action == MEKIK_SWAP) give_up(s, c.action == MEKIK_SWAP);
    }
    std::uint64_t tokens = 0;
    for (const mekik_choice& c : chosen)
      if (c.seq < views.size() && c.action == MEKIK_RUN && c.tokens > 0 && all_[c.seq].view.waiting_fetch == 0) {
        const std::uint32_t ran = run(all_[c.seq], std::min(c.tokens, scenario_.max_tokens));
        tokens += ran;
        if (ran > 0) moved = true;
        if (all_[c.seq].answer_left == 0) gone.push_back(all_[c.seq].view.id);
      }
    now_ += 1'000'000 + 50'000 * tokens;
    all_.erase(std::remove_if(all_.begin(), all_.end(),
                              [&](const Sequence& s) { return std::find(gone.begin(), gone.end(), s.view.id) != gone.end(); }),
               all_.end());
    const bool waits = std::any_of(views.begin(), views.end(), [](const mekik_seq_view& v) { return v.waiting_fetch == 0; });
    idle_ = moved || !waits ? 0 : idle_ + 1;
    if (idle_ == 40 && !plan_.mode.hostile)
      rule("plan: 40 plans in a row ran nobody, though " + std::to_string(views.size()) +
           " sequences wait and nothing is in their way (scenario " + std::to_string(plan_.mode.seed % 6) + ")");
  }

  void give_up(Sequence& s, bool swap) {
    if (s.view.running == 0) return;
    s.view.running = 0;
    s.view.blocks_held = 0;
    s.swapped = swap ? s.computed : 0;
    s.view.prompt_left += s.computed - s.swapped;
    s.computed = s.swapped;
    if (s.view.prompt_left == 0) s.view.prompt_left = 1;
    s.view.known = 0;
  }
  // As the engine does it: whoever came last gives its blocks when there are too few.
  std::uint32_t run(Sequence& s, std::uint32_t tokens) {
    tokens = std::min(tokens, std::max(1u, s.view.prompt_left));
    for (;;) {
      const std::uint32_t more = blocks_for(std::uint64_t{s.computed} + tokens) - s.view.blocks_held;
      if (more <= scenario_.blocks - std::min(scenario_.blocks, held())) break;
      const auto victim =
          std::find_if(all_.rbegin(), all_.rend(), [&](const Sequence& o) { return o.view.running != 0 && o.view.id != s.view.id; });
      if (victim == all_.rend()) return 0;
      give_up(*victim, false);
    }
    if (s.view.running == 0) s.view.running = 1, s.view.known = 0;
    s.computed += tokens;
    s.view.blocks_held = blocks_for(s.computed);
    s.view.prompt_left -= std::min(s.view.prompt_left, tokens);
    if (s.view.prompt_left == 0) ++s.view.generated, --s.answer_left;
    return tokens;
  }

  const WorkoutPlan plan_;
  const mekik_scheduler table_;
  const Scenario scenario_;
  Random random_;
  mekik_sched* self_ = nullptr;
  std::vector<Sequence> all_;
  std::uint64_t now_ = 1'000'000'000'000;
  std::uint32_t arrived_ = 0, turns_ = 0, idle_ = 0;
};

}  // namespace

std::unique_ptr<Workout> make_scheduler(const WorkoutPlan& plan) { return std::make_unique<SchedulerWorkout>(plan); }

}  // namespace mekik::validate
