// The schedulers as functions of a view.
#include "support/catch.hpp"
#include "support/engine_bench.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

mekik_seq_view seq(std::uint64_t id, bool running, std::uint32_t prompt_left, std::uint32_t cached, std::uint32_t held,
                   std::int32_t priority = 0) {
  mekik_seq_view v{};
  v.id = v.arrival_ns = id;
  v.running = running ? 1 : 0;
  v.prompt_left = prompt_left;
  v.cached = cached;
  v.blocks_held = held;
  v.priority = priority;
  return v;
}

mekik_seq_view drafting(mekik_seq_view v, std::uint32_t most) {
  v.max_drafts = most;
  return v;
}

struct Limits {
  std::uint32_t free_blocks = 100, max_tokens = 16, max_seqs = 4;
  std::uint64_t now_ns = 0;
};

// An instance that lives for several steps.
class Scheduler {
 public:
  explicit Scheduler(const std::string& name, const std::string& options = "") : use_{use("scheduler", name, options)} {
    const auto component = *shared_plugins().registry.find(use_);
    table_ = &component.table<mekik_scheduler>();
    REQUIRE(table_->create(component.host, plugin::abi_config(*use_.options), &self_) == MEKIK_OK);
  }
  ~Scheduler() { table_->destroy(self_); }
  // The plan as "id:action:tokens ...", with "+drafts" where there are any.
  std::string plan(const std::vector<mekik_seq_view>& seqs, const Limits& limits = {}) {
    seqs_ = seqs;
    view_ = {};
    view_.struct_size = sizeof view_;
    view_.n_seqs = static_cast<std::uint32_t>(seqs.size());
    view_.seq_size = sizeof(mekik_seq_view);
    view_.max_tokens = limits.max_tokens;
    view_.max_seqs = limits.max_seqs;
    view_.block_tokens = 4;
    view_.free_blocks = limits.free_blocks;
    view_.now_ns = limits.now_ns;
    view_.seqs = seqs_.data();
    std::vector<mekik_choice> out(seqs.size());
    auto n = view_.n_seqs;
    REQUIRE(table_->plan(self_, &view_, out.data(), sizeof(mekik_choice), &n) == MEKIK_OK);
    REQUIRE(n <= out.size());
    std::string text;
    for (std::uint32_t i = 0; i < n; ++i) {
      static constexpr const char* kActions[] = {"?", "run", "hold", "drop", "swap", "refuse"};
      text +=
          (i > 0 ? " " : "") + std::to_string(seqs[out[i].seq].id) + ":" + kActions[out[i].action] + ":" + std::to_string(out[i].tokens);
      if (out[i].drafts > 0) text += "+" + std::to_string(out[i].drafts);
      if (out[i].action == MEKIK_REFUSE) retry_ns = out[i].retry_ns;
    }
    return text;
  }
  void took(std::uint64_t ns) { table_->observe(self_, &view_, ns); }
  std::uint64_t retry_ns = 0;  // of the last refusal

 private:
  config::Use use_;
  const mekik_scheduler* table_ = nullptr;
  mekik_sched* self_ = nullptr;
  mekik_step_view view_{};
  std::vector<mekik_seq_view> seqs_;
};

std::string plan(const std::string& name, const std::vector<mekik_seq_view>& seqs, std::uint32_t free_blocks = 100,
                 std::uint32_t max_tokens = 16, std::uint32_t max_seqs = 4, const std::string& options = "") {
  return Scheduler{name, options}.plan(seqs, {free_blocks, max_tokens, max_seqs});
}

mekik_seq_view of_tenant(mekik_seq_view v, std::uint64_t tenant) {
  v.tenant = tenant;
  return v;
}

constexpr std::uint64_t kMs = 1'000'000;

}  // namespace

TEST_CASE("continuous: decoding goes first, prompts fill the rest in order of arrival") {
  CHECK(plan("continuous", {seq(1, false, 30, 0, 0), seq(2, true, 0, 5, 2), seq(3, true, 0, 9, 3)}) == "2:run:1 3:run:1 1:run:14");
  CHECK(plan("continuous", {seq(1, true, 10, 4, 1), seq(2, false, 10, 0, 0)}) == "1:run:10 2:run:6");
  CHECK(plan("continuous", {seq(1, false, 10, 0, 0), seq(2, false, 10, 0, 0, 1)}) == "2:run:10 1:run:6");
  CHECK(plan("continuous", {seq(1, false, 10, 0, 0)}, 100, 16, 4, "max_prefill_tokens = 3") == "1:run:3");
  CHECK(plan("continuous", {}) == "");
}

TEST_CASE("drafts get what is left of tokens and blocks when everyone else has had theirs") {
  for (const char* name : {"continuous", "static"}) {
    CAPTURE(name);
    const auto a = drafting(seq(1, true, 0, 5, 2), 6), b = drafting(seq(2, true, 0, 6, 2), 6);
    CHECK(plan(name, {a, b}) == "1:run:1+6 2:run:1+6");
    CHECK(plan(name, {a, b}, 100, 6) == "1:run:1+4 2:run:1+4");  // of the four that are left the host takes the likeliest
    CHECK(plan(name, {a, b}, 100, 2) == "1:run:1 2:run:1");
    CHECK(plan(name, {a, b}, 0) == "1:run:1+2 2:run:1+1");  // the rest of their last blocks
    CHECK(plan(name, {a, b}, 1) == "1:run:1+6 2:run:1+1");
    CHECK(plan(name, {a, seq(2, true, 20, 4, 1)}, 100, 16) == "1:run:1 2:run:15");
  }
  // A prompt that has begun keeps the blocks of its rest.
  CHECK(plan("continuous", {drafting(seq(1, true, 0, 4, 1), 6), seq(2, true, 20, 4, 1)}, 6, 16, 4, "max_prefill_tokens = 4") ==
        "1:run:1+3 2:run:4");
}

TEST_CASE("continuous: when nobody that runs can go on for lack of blocks, the last in order starts again") {
  CHECK(plan("continuous", {seq(1, true, 2, 8, 2), seq(2, true, 3, 8, 2), seq(3, true, 0, 8, 2), seq(4, false, 5, 0, 0)}, 0) == "3:drop:0");
  CHECK(plan("continuous", {seq(1, true, 2, 8, 2)}, 0) == "");
}

TEST_CASE("continuous: no more sequences run than may be in a step") {
  std::vector<mekik_seq_view> seqs;
  for (std::uint64_t i = 1; i <= 4; ++i) seqs.push_back(seq(i, true, 0, 5, 2));
  seqs.push_back(seq(5, false, 3, 0, 0));
  CHECK(plan("continuous", seqs) == "1:run:1 2:run:1 3:run:1 4:run:1");
}

TEST_CASE("continuous: who does not fit waits, and nobody passes by") {
  CHECK(plan("continuous", {seq(1, true, 0, 5, 2), seq(2, false, 40, 0, 0), seq(3, false, 1, 0, 0)}, 5) == "1:run:1");
  CHECK(plan("continuous", {seq(2, false, 40, 0, 0)}, 5) == "2:run:16");  // alone: it starts with what there is
  // Blocks that a prompt in progress still needs are not given away.
  CHECK(plan("continuous", {seq(1, true, 32, 4, 1), seq(2, false, 4, 0, 0)}, 9, 16) == "1:run:16");
}

TEST_CASE("continuous: who gave up its blocks comes back when there is one more for each that runs") {
  auto again = seq(2, false, 12, 0, 0);
  again.generated = 5;
  CHECK(plan("continuous", {seq(1, true, 0, 8, 2), again}, 5) == "1:run:1");
  CHECK(plan("continuous", {seq(1, true, 0, 8, 2), again}, 6) == "1:run:1 2:run:12");
  CHECK(plan("continuous", {again}, 4) == "2:run:12");
}

TEST_CASE("who gives up its blocks has them stored where that pays") {
  auto last = seq(3, true, 0, 6, 2);
  last.swap_bytes = 1;
  for (const char* name : {"continuous", "fair", "priority", "deadline"})
    CHECK(plan(name, {seq(1, true, 0, 8, 2), seq(2, true, 0, 8, 2), last}, 0) == "3:swap:0 1:run:1 2:run:1");
}

TEST_CASE("continuous: when blocks run out the last to come gives up its own") {
  CHECK(plan("continuous", {seq(1, true, 0, 8, 2), seq(2, true, 0, 8, 2), seq(3, true, 0, 6, 2)}, 0) == "3:drop:0 1:run:1 2:run:1");
  CHECK(plan("continuous", {seq(1, true, 0, 8, 2), seq(2, true, 0, 8, 2, 5)}, 0) == "1:drop:0 2:run:1");  // priority
  CHECK(plan("continuous", {seq(1, true, 0, 8, 2)}, 0) == "");
}

TEST_CASE("static: a batch is closed until all of it have ended") {
  CHECK(plan("static", {seq(1, false, 4, 0, 0), seq(2, false, 8, 0, 0)}) == "1:run:4 2:run:8");
  CHECK(plan("static", {seq(1, true, 0, 5, 2), seq(2, false, 8, 0, 0)}) == "1:run:1");
  CHECK(plan("static", {seq(1, true, 12, 4, 1), seq(2, true, 0, 8, 2)}) == "2:run:1 1:run:12");
  std::vector<mekik_seq_view> seqs;
  for (std::uint64_t i = 1; i <= 6; ++i) seqs.push_back(seq(i, false, 2, 0, 0));
  CHECK(plan("static", seqs) == "1:run:2 2:run:2 3:run:2 4:run:2");
}

TEST_CASE("priority: a higher class takes the place of a lower one, the last to come first") {
  const auto low = [](std::uint64_t id) { return seq(id, true, 0, 5, 2); };
  CHECK(plan("priority", {low(1), low(2), seq(3, false, 4, 0, 0, 1)}, 100, 16, 2) == "2:drop:0 1:run:1 3:run:4");
  CHECK(plan("priority", {low(1), low(2), seq(3, false, 4, 0, 0)}, 100, 16, 2) == "1:run:1 2:run:1");     // of the same class it waits
  CHECK(plan("priority", {low(1), low(2), seq(3, false, 8, 0, 0, 1)}, 1) == "2:drop:0 1:run:1 3:run:8");  // for blocks
  // Nobody is dropped where that is not enough.
  CHECK(plan("priority", {low(1), seq(2, true, 0, 5, 2, 5), seq(3, false, 40, 0, 0, 1)}, 1) == "2:run:1 1:run:1");
}

TEST_CASE("priority: who waits long enough goes first among those that wait, and takes no place") {
  const auto later = [](mekik_seq_view v, std::uint64_t s) {
    v.arrival_ns = s * 1000 * kMs;
    return v;
  };
  Scheduler scheduler{"priority", "aging = \"10s\""};
  const auto old = later(seq(1, false, 10, 0, 0), 0), fresh = later(seq(2, false, 10, 0, 0, 2), 29);
  CHECK(scheduler.plan({old, fresh}, {100, 16, 4, 30'000 * kMs}) == "1:run:10 2:run:6");
  CHECK(scheduler.plan({old, fresh}, {100, 16, 4, 15'000 * kMs}) == "2:run:10 1:run:6");
  CHECK(scheduler.plan({old, later(seq(3, true, 0, 5, 2), 0)}, {100, 16, 1, 60'000 * kMs}) == "3:run:1");
}

TEST_CASE("fair: prompts take no more of a step than the bound allows while somebody decodes") {
  Scheduler scheduler{"fair"};
  const std::vector<mekik_seq_view> decoding{seq(1, true, 0, 5, 2)};
  for (int i = 0; i < 30; ++i) scheduler.plan(decoding, {1000, 512}), scheduler.took(10 * kMs);
  std::vector<mekik_seq_view> both{seq(1, true, 0, 5, 2), seq(2, true, 6000, 0, 0)};
  // A token of a prompt takes 0.25 ms: what is left of 20 ms, with a margin.
  for (int i = 0; i < 60; ++i) {
    const std::string text = scheduler.plan(both, {10000, 512});
    const auto tokens = std::stoul(text.substr(text.find("2:run:") + 6));
    if (i == 59) CHECK(tokens == 32);
    scheduler.took(10 * kMs + tokens * kMs / 4);
  }
  CHECK(scheduler.plan({both[1]}, {10000, 512}) == "2:run:512");  // nobody waits for it
  Scheduler bound{"fair", "max_step = \"15ms\""};
  for (int i = 0; i < 30; ++i) bound.plan(decoding, {1000, 512}), bound.took(10 * kMs);
  for (int i = 0; i < 60; ++i) {
    const std::string text = bound.plan(both, {10000, 512});
    const auto tokens = std::stoul(text.substr(text.find("2:run:") + 6));
    if (i == 59) CHECK(tokens == 14);
    bound.took(10 * kMs + tokens * kMs / 4);
  }
}

TEST_CASE("fair: tenants and prompts get the same time, whoever has more of them") {
  Scheduler scheduler{"fair"};
  std::vector<mekik_seq_view> seqs;
  for (std::uint64_t i = 1; i <= 6; ++i) seqs.push_back(of_tenant(seq(i, true, 100000, 0, 0), 1));
  seqs.push_back(of_tenant(seq(7, true, 100000, 0, 0), 2));
  std::map<std::string, int> turns;
  for (int i = 0; i < 120; ++i) {
    const std::string text = scheduler.plan(seqs, {1000000, 64, 8});
    ++turns[text.substr(0, text.find(':'))];
    scheduler.took(10 * kMs);
  }
  CHECK(turns["7"] == 60);
  for (const char* id : {"1", "2", "3", "4", "5", "6"}) CHECK(turns[id] == 10);
}

TEST_CASE("fair: a tenant that comes to full places gets its share of them, and nobody passes to and fro") {
  Scheduler scheduler{"fair", "patience = \"100ms\""};
  std::vector<mekik_seq_view> flood;
  for (std::uint64_t i = 1; i <= 4; ++i) flood.push_back(of_tenant(seq(i, true, 0, 5, 2), 1));
  for (int i = 0; i < 50; ++i) scheduler.plan(flood), scheduler.took(10 * kMs);
  flood.push_back(of_tenant(seq(5, false, 4, 0, 0), 2));
  std::string text;
  int steps = 0;
  for (; text.find("drop") == std::string::npos && steps < 50; ++steps) text = scheduler.plan(flood), scheduler.took(10 * kMs);
  CHECK(steps > 5);  // so much ahead must they be
  CHECK(text == "4:drop:0 1:run:1 2:run:1 3:run:1 5:run:4");
  flood[3].running = 0;
  flood[4].running = 1;
  for (int i = 0; i < 50; ++i) {
    CHECK(scheduler.plan(flood).find("drop") == std::string::npos);
    scheduler.took(10 * kMs);
  }
}

TEST_CASE("deadline: the earliest goes first, and who would be late for others is refused at once") {
  Scheduler scheduler{"deadline", "ttft = \"500ms\"\ntpot = \"20ms\""};
  const auto at = [](mekik_seq_view v, std::uint64_t ms) {
    v.arrival_ns = ms * kMs;
    return v;
  };
  // Nothing is known of costs: nobody is refused.
  CHECK(scheduler.plan({at(seq(1, false, 100, 0, 0), 5), at(seq(2, false, 100, 0, 0), 4)}, {1000, 64, 4, 10 * kMs}) == "2:run:64");
  for (int i = 0; i < 30; ++i) scheduler.plan({seq(1, true, 6400, 0, 0)}, {10000, 64, 4, 10 * kMs}), scheduler.took(64 * kMs);
  // A millisecond a token: 300 are ready in time, 300 more behind them are not.
  const std::vector<mekik_seq_view> queue{at(seq(1, false, 300, 0, 0), 1000), at(seq(2, false, 300, 0, 0), 1001),
                                          at(seq(3, false, 100, 0, 0), 1002)};
  CHECK(scheduler.plan(queue, {1000, 64, 4, 1002 * kMs}) == "2:refuse:0 1:run:64");
  CHECK((scheduler.retry_ns >= 150 * kMs && scheduler.retry_ns <= 250 * kMs));
  // With all places taken nobody knows when it would begin.
  CHECK(scheduler.plan({seq(4, true, 0, 5, 2), at(seq(1, false, 100, 0, 0), 1000)}, {1000, 64, 1, 1100 * kMs}) == "4:run:1");
  CHECK(scheduler.plan({seq(4, true, 0, 5, 2), at(seq(1, false, 100, 0, 0), 1000)}, {1000, 64, 1, 1450 * kMs}) == "1:refuse:0 4:run:1");
  // One that is late even alone is not refused for that; those in time go before it.
  CHECK(scheduler.plan({at(seq(1, false, 5000, 0, 0), 1000), at(seq(2, false, 50, 0, 0), 1001)}, {10000, 64, 4, 1002 * kMs}) ==
        "2:run:50 1:run:14");
  Scheduler polite{"deadline", "ttft = \"500ms\"\nrefuse = false"};
  for (int i = 0; i < 30; ++i) polite.plan({seq(1, true, 6400, 0, 0)}, {10000, 64}), polite.took(64 * kMs);
  CHECK(polite.plan(queue, {1000, 64, 4, 1002 * kMs}) == "1:run:64");
}

TEST_CASE("what the cache has of a prompt is no work for any scheduler") {
  const auto known = [](mekik_seq_view v, std::uint32_t n) {
    v.known = n;
    return v;
  };
  const auto a = known(seq(1, false, 30, 0, 0), 25), b = seq(2, false, 30, 0, 0);
  for (const char* name : {"continuous", "static", "priority", "fair", "deadline"}) {
    CAPTURE(name);
    CHECK(plan(name, {a, b}) == "1:run:5 2:run:11");
    CHECK(plan(name, {known(a, 29)}) == "1:run:1");
    CHECK(plan(name, {known(a, 40)}) == "1:run:1");  // the last one's logits are needed
  }
  // Known blocks are taken, too: 31 tokens of 4 a block want eight of them, and two are left.
  CHECK(plan("continuous", {a, b}, 10) == "1:run:5");
  CHECK(plan("continuous", {a, known(seq(2, false, 7, 0, 0), 3)}, 10) == "1:run:5 2:run:4");
}

TEST_CASE("deadline: who is known is not refused for what need not be computed, nor are those behind") {
  const auto at = [](mekik_seq_view v, std::uint64_t ms, std::uint32_t known) {
    v.arrival_ns = ms * kMs;
    v.known = known;
    return v;
  };
  Scheduler scheduler{"deadline", "ttft = \"500ms\"\ntpot = \"20ms\""};
  for (int i = 0; i < 30; ++i) scheduler.plan({seq(1, true, 6400, 0, 0)}, {10000, 64, 4, 10 * kMs}), scheduler.took(64 * kMs);
  const Limits limits{2000, 64, 4, 1002 * kMs};
  CHECK(scheduler.plan({at(seq(1, false, 300, 0, 0), 1000, 0), at(seq(2, false, 300, 0, 0), 1001, 250)}, limits) == "1:run:64");
  CHECK(scheduler.plan({at(seq(1, false, 400, 0, 0), 1000, 390), at(seq(2, false, 400, 0, 0), 1001, 0)}, limits) == "1:run:10 2:run:54");
  // Nor is it hopeless: 5000 tokens alone would be late.
  CHECK(scheduler.plan({at(seq(1, false, 5000, 0, 0), 1000, 4990), at(seq(2, false, 50, 0, 0), 1001, 0)}, limits) == "1:run:10 2:run:50");
}

TEST_CASE("fair: a step that is bounded by time has room for others beside a known prompt") {
  Scheduler scheduler{"fair"};
  for (int i = 0; i < 30; ++i) scheduler.plan({seq(1, true, 0, 5, 2)}, {1000, 512}), scheduler.took(10 * kMs);
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text = scheduler.plan({seq(1, true, 0, 5, 2), seq(2, true, 6000, 0, 0)}, {10000, 512});
    scheduler.took(10 * kMs + std::stoul(text.substr(text.find("2:run:") + 6)) * kMs / 4);
  }
  auto cached = seq(3, false, 1000, 0, 0);
  cached.known = 992;
  CHECK(scheduler.plan({seq(1, true, 0, 5, 2), cached, seq(4, false, 6000, 0, 0)}, {10000, 512}) == "1:run:1 3:run:8 4:run:24");
}

TEST_CASE("a long prompt that has begun does not keep out those that are to be served before the rest of it") {
  const auto long_prompt = seq(1, true, 6000, 100, 25), shorter = seq(2, false, 10, 0, 0, 1);
  CHECK(plan("continuous", {long_prompt, shorter}, 2000) == "1:run:6 2:run:10");
  CHECK(plan("priority", {long_prompt, shorter}, 2000) == "1:run:6 2:run:10");
  CHECK(plan("continuous", {long_prompt, seq(2, false, 10, 0, 0)}, 2000) == "1:run:16");  // first come, first served
  CHECK(plan("continuous", {long_prompt, shorter}, 1502) == "1:run:16");  // the rest of a prompt that has begun keeps its blocks
  Scheduler fair{"fair"};
  const std::vector<mekik_seq_view> seqs{of_tenant(seq(1, true, 100000, 0, 0), 1), of_tenant(seq(2, false, 10, 0, 0), 2)};
  CHECK(fair.plan(seqs, {1000000, 16}) == "1:run:16");
  fair.took(kMs);
  CHECK(fair.plan(seqs, {1000000, 16}) == "1:run:6 2:run:10");
}
