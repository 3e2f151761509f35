// What schedulers promise, over scenarios. Exact, since nothing here depends on the machine.
#include "support.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

const simulate::Tally& load(const simulate::Outcome& o, const std::string& name) {
  for (const auto& l : o.loads)
    if (l.name == name) return l;
  throw std::runtime_error{"no load " + name};
}

}  // namespace

TEST_CASE("a prompt of 600,000 tokens does not hold up neighbours with 101") {
  const auto alone = run(ready("long-prompt", {"load.1.begin=59s", "load.1.prompt={fixed=1}"}));
  const double ttft = percentile(load(alone, "neighbours").ttft, 0.99), tpot = percentile(load(alone, "neighbours").tpot, 0.99);
  for (const std::vector<std::string>& set :
       {std::vector<std::string>{"scheduler.use=fair"}, {"scheduler.use=continuous", "scheduler.max_prefill_tokens=128"}}) {
    CAPTURE(set[0]);
    const auto o = run(ready("long-prompt", set), 256);
    const auto& others = load(o, "neighbours");
    CHECK(load(o, "long").finished == 1);
    CHECK(others.finished == others.sent);
    CHECK(percentile(others.ttft, 0.99) < 20 * ttft);  // which is a step of their own; now they wait for one of 512 tokens at least
    CHECK(percentile(others.ttft, 1) < 0.5);
    CHECK(percentile(others.tpot, 0.99) < 3.5 * tpot);
    CHECK(load(o, "long").ttft[0] < 100);  // nor is it starved
  }
}

TEST_CASE("a tenant that floods the server does not take the others' time under fair") {
  const auto quiet = run(ready("flood", {"load.0.rate=0.001"}));
  const auto fair = run(ready("flood"), 4096), first_come = run(ready("flood", {"scheduler.use=continuous"}), 4096);
  const auto& others = load(fair, "others");
  CHECK(others.finished == others.sent);
  CHECK(load(fair, "flood").finished == load(fair, "flood").sent);
  CHECK(percentile(others.ttft, 0.5) < 20 * percentile(load(quiet, "others").ttft, 0.5));
  CHECK(percentile(others.ttft, 0.99) < 2);  // patience is a second
  CHECK(percentile(others.ttft, 0.99) < percentile(load(first_come, "others").ttft, 0.99) / 20);
  CHECK(percentile(others.total, 0.99) < 8);
}

TEST_CASE("a storm of cancels gives every block back") {
  for (const char* scheduler : {"continuous", "static", "priority", "fair", "deadline"}) {
    CAPTURE(scheduler);
    const auto o = run(ready("cancels", {std::string{"scheduler.use="} + scheduler}), 64);
    const auto all = o.all();
    CHECK(all.cancelled > 100);
    CHECK(all.finished > 100);
    CHECK(all.failed == 0);
    CHECK(all.finished + all.cancelled + all.refused_queue + all.refused_scheduler == all.sent);
    CHECK(o.cache_hit_tokens > 0);
  }
}

TEST_CASE("protecting those who decode does not starve those who wait") {
  // Places for all, bounds that leave prompts no more than a few tokens a step, and answers that do not end soon.
  const std::string scenario = R"(
[scenario]
duration = "40s"
[costs]
step_us = 3000
token_us = 60
row_us = 300
[scheduler]
max_sequences = 24
[[load]]
name = "decoders"
arrivals = "closed"
users = 16
prompt = { fixed = 20 }
answer = { fixed = 400 }
[[load]]
name = "prompts"
rate = 0.4
prompt = { fixed = 1000 }
answer = { fixed = 4 }
)";
  const auto o = run(written(scenario, {"scheduler.use=fair", "scheduler.max_step=12ms"}));
  const auto& prompts = load(o, "prompts");
  CHECK(prompts.finished == prompts.sent);
  CHECK(percentile(load(o, "decoders").tpot, 0.99) < 0.0125);  // the bound holds
  CHECK(percentile(prompts.ttft, 1) < 6);
  const auto deadline = run(written(scenario, {"scheduler.use=deadline", "scheduler.tpot=12ms", "scheduler.ttft=20s"}));
  CHECK(load(deadline, "prompts").finished == load(deadline, "prompts").sent);
  CHECK(percentile(load(deadline, "decoders").tpot, 0.99) < 0.0125);
}

TEST_CASE("blocks that run out in the middle of everything stop nobody") {
  for (const char* scheduler : {"continuous", "static", "priority", "fair", "deadline"}) {
    CAPTURE(scheduler);
    const auto scenario = ready("shortage", {std::string{"scheduler.use="} + scheduler});
    const auto o = run(scenario, 4);
    const auto all = o.all();
    CHECK(o.preemptions > 0);
    CHECK(all.failed == 0);
    CHECK(all.finished + all.refused_scheduler == all.sent);
    if (std::string{scheduler} != "deadline") CHECK(all.finished == all.sent);
  }
}

TEST_CASE("deadline answers in time what it takes on, and tells the rest at once") {
  const auto o = run(ready("targets"), 64), none = run(ready("targets", {"scheduler.use=continuous"}), 64);
  const auto all = o.all();
  CHECK(all.refused_scheduler > 20);
  CHECK(all.finished + all.refused_scheduler == all.sent);
  CHECK(all.in_time >= 0.97 * static_cast<double>(all.with_targets));
  CHECK(none.all().in_time < 0.7 * static_cast<double>(none.all().with_targets));
  CHECK(all.in_time > none.all().in_time);  // also in numbers, not only in part
}

TEST_CASE("deadline does not refuse prompts whose beginning the cache has") {
  const std::string scenario = R"(
[scenario]
duration = "60s"
[scheduler]
use = "deadline"
ttft = "500ms"
[costs]
step_us = 2000
token_us = 400
row_us = 200
[[load]]
name = "asks"
rate = 3
prompt = { fixed = 20 }
answer = { fixed = 5 }
prefix_groups = 1
prefix_tokens = 1000
)";
  const auto o = run(written(scenario));
  CHECK(o.all().refused_scheduler <= 3);  // while the prefix is computed for the first time
  CHECK(run(written(scenario, {"cache.use=none"})).all().refused_scheduler > 50);
}

TEST_CASE("a day of more than 100,000 requests is over soon") {
  const auto o = run(ready("day"), 1 << 20);
  const auto all = o.all();
  CHECK(all.sent > 100000);
  CHECK(o.seconds > 86000);
  CHECK(all.failed == 0);
  CHECK(all.invalid == 0);
  CHECK(all.finished + all.cancelled + all.refused_queue == all.sent);
  CHECK(static_cast<double>(all.cached_tokens) > 0.4 * static_cast<double>(all.prompt_tokens));
}
