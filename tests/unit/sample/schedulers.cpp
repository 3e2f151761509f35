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

// The plan as "id:action:tokens ...", with "+drafts" where there are any.
std::string plan(const std::string& name, const std::vector<mekik_seq_view>& seqs, std::uint32_t free_blocks = 100,
                 std::uint32_t max_tokens = 16, std::uint32_t max_seqs = 4, const std::string& options = "") {
  const auto made = use("scheduler", name, options);
  const auto component = *shared_plugins().registry.find(made);
  const auto& table = component.table<mekik_scheduler>();
  mekik_sched* self = nullptr;
  REQUIRE(table.create(component.host, plugin::abi_config(*made.options), &self) == MEKIK_OK);
  mekik_step_view view{};
  view.struct_size = sizeof view;
  view.n_seqs = static_cast<std::uint32_t>(seqs.size());
  view.seq_size = sizeof(mekik_seq_view);
  view.max_tokens = max_tokens;
  view.max_seqs = max_seqs;
  view.block_tokens = 4;
  view.free_blocks = free_blocks;
  view.seqs = seqs.data();
  std::vector<mekik_choice> out(seqs.size());
  auto n = view.n_seqs;
  REQUIRE(table.plan(self, &view, out.data(), sizeof(mekik_choice), &n) == MEKIK_OK);
  table.destroy(self);
  REQUIRE(n <= out.size());
  std::string text;
  for (std::uint32_t i = 0; i < n; ++i) {
    static constexpr const char* kActions[] = {"?", "run", "hold", "drop"};
    text += (i > 0 ? " " : "") + std::to_string(seqs[out[i].seq].id) + ":" + kActions[out[i].action] + ":" + std::to_string(out[i].tokens);
    if (out[i].drafts > 0) text += "+" + std::to_string(out[i].drafts);
  }
  return text;
}

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
