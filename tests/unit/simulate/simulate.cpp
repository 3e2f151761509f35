// The parts of a simulation: what it is told, what it draws, what it counts.
#include <cmath>

#include "simulate/random.hpp"
#include "support.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

std::string report(const simulate::Scenario& s) { return json::serialize(simulate::to_json(s, run(s))); }

const std::string kSmall = R"(
[scenario]
duration = "20s"
[costs]
step_us = 1000
token_us = 100
row_us = 50
context_ns = 0
host_step_us = 0
host_row_us = 0
[[load]]
name = "one"
)";

}  // namespace

TEST_CASE("the same scenario gives the same bytes, another seed gives others") {
  for (const char* name : {"cancels", "shortage"}) {
    CAPTURE(name);
    const auto first = report(ready(name));
    CHECK(first == report(ready(name)));
    CHECK(first != report(ready(name, {"scenario.seed=2"})));
  }
}

TEST_CASE("a request alone takes what the costs say") {
  const auto o =
      run(written(kSmall + "arrivals = \"constant\"\nrate = 0.1\nrequests = 1\nprompt = { fixed = 1000 }\nanswer = { fixed = 11 }\n"));
  const auto all = o.all();
  REQUIRE(all.finished == 1);
  // 512 and 488 tokens, the last with a row; then ten steps of a token and a row.
  CHECK(all.ttft[0] == Approx(2 * 0.001 + 1000 * 0.0001 + 0.00005).epsilon(1e-9));
  CHECK(all.tpot[0] == Approx(0.001 + 0.0001 + 0.00005).epsilon(1e-9));
  CHECK(all.gap[0] == Approx(all.tpot[0]).epsilon(1e-9));
  CHECK(all.total[0] == Approx(all.ttft[0] + 10 * all.tpot[0]).epsilon(1e-9));
  CHECK(all.queue[0] == 0);
  CHECK(o.steps == 12);
  CHECK(o.seconds == Approx(10 + all.total[0]));
}

TEST_CASE("who comes while a step runs has come then, and waits for its end") {
  const auto o =
      run(written(kSmall + "arrivals = \"constant\"\nrate = 1000\nrequests = 3\nprompt = { fixed = 500 }\nanswer = { fixed = 1 }\n"));
  // The first comes at 1 ms and runs for 51.05 ms; the others at 2 and 3 ms.
  const auto all = o.all();
  REQUIRE(all.queue.size() == 3);
  CHECK(all.queue[0] == 0);
  CHECK(all.queue[1] == Approx(0.05105 - 0.001).epsilon(1e-6));
  CHECK(all.queue[2] == Approx(all.queue[1] - 0.001).epsilon(1e-6));  // both begin then
}

TEST_CASE("arrivals come as often as they should") {
  const auto sent = [](const std::string& more) {
    return run(written(kSmall + "prompt = { fixed = 1 }\nanswer = { fixed = 1 }\n" + more)).all().sent;
  };
  CHECK(sent("arrivals = \"constant\"\nrate = 5") == 100);
  CHECK(sent("arrivals = \"constant\"\nrate = 5\nburst = 3") == 300);
  CHECK(sent("arrivals = \"constant\"\nrate = 5\nshape = [0, 2, 0, 0]") == 50);
  CHECK(sent("arrivals = \"constant\"\nrate = 5\nbegin = \"5s\"\nend = \"9s\"") == 20);
  const auto poisson = sent("rate = 50");
  CHECK((poisson > 900 && poisson < 1100));
  // Ten users with an answer of 1.15 ms and a second to think, for 20 s.
  const auto closed = sent("arrivals = \"closed\"\nusers = 10\nthink = \"1s\"");
  CHECK((closed > 160 && closed < 240));
  CHECK(sent("arrivals = \"closed\"\nusers = 3\nthink = \"1s\"\nrequests = 7") == 7);
}

TEST_CASE("lengths are drawn as they are given") {
  const auto mean = [](const std::string& length) {
    const auto all = run(written(kSmall + "rate = 50\nanswer = { fixed = 1 }\nprompt = " + length)).all();
    return static_cast<double>(all.prompt_tokens) / static_cast<double>(all.sent);
  };
  CHECK(mean("{ fixed = 17 }") == 17);
  CHECK(mean("{ uniform = [10, 30] }") == Approx(20).epsilon(0.04));
  CHECK(mean("{ list = [10, 10, 40] }") == Approx(20).epsilon(0.06));
  CHECK(mean("{ lognormal = [20, 0.5] }") == Approx(20 * std::exp(0.125)).epsilon(0.05));
  CHECK(mean("{ lognormal = [20, 3.0], min = 10, max = 11 }") < 11);
}

TEST_CASE("turns of a chat know what went before, prefixes are shared, tenants are not") {
  const std::string chat =
      kSmall + "rate = 1\nturns = 3\nturn_think = \"1s\"\nprompt = { fixed = 64 }\nsaid = { fixed = 10 }\nanswer = { fixed = 20 }\n";
  const auto o = run(written(chat));
  const auto all = o.all();
  CHECK(all.sent % 3 == 0);
  CHECK(all.prompt_tokens == all.sent / 3 * (64 + 94 + 124));
  CHECK(all.cached_tokens >= all.sent / 3 * (83 + 113));  // but for an answer's last token, which was never computed
  CHECK(all.cached_tokens < all.sent / 3 * (83 + 113) + all.sent);
  const std::string prefixed =
      kSmall + "rate = 5\nprompt = { fixed = 8 }\nanswer = { fixed = 2 }\nprefix_groups = 1\nprefix_tokens = 320\n";
  const auto shared = run(written(prefixed)).all();
  CHECK(shared.cached_tokens >= 320 * (shared.sent - 8));
  const auto apart = run(written(prefixed + "tenants = [1, 1, 1, 1]\n"));
  CHECK(apart.all().cached_tokens < shared.cached_tokens - 2 * 320);
  CHECK(apart.tenants.size() == 4);
  CHECK(run(written(prefixed + "tenants = [1, 1, 1, 1]\n", {"scenario.share_prefixes=true"})).all().cached_tokens == shared.cached_tokens);
  CHECK(run(written(prefixed, {"cache.use=none"})).all().cached_tokens < shared.cached_tokens / 2);
}

TEST_CASE("who is refused tries again, and gives up in the end") {
  const std::string burst =
      kSmall + "arrivals = \"constant\"\nrate = 0.1\nrequests = 40\nburst = 40\nprompt = { fixed = 400 }\nanswer = { fixed = 50 }\n";
  const auto all = run(written(burst, {"server.max_queue=8", "scheduler.max_sequences=4"})).all();
  CHECK(all.refused_queue == 32);
  CHECK(all.given_up == 32);
  CHECK(all.finished == 8);
  const auto again = run(written(burst + "retries = 100\n", {"server.max_queue=8", "scheduler.max_sequences=4"})).all();
  CHECK(again.given_up == 0);
  CHECK(again.finished == 40);
  CHECK(again.sent == 40 + again.refused_queue);
}

TEST_CASE("a trace comes as it was written") {
  const TemporaryDirectory folder;
  std::ofstream{folder.path() / "t.jsonl"} << R"({"at": 100.5, "prompt": 7, "answer": 3, "tenant": 1}
{"at": 0.5, "prompt": 5, "answer": 2, "priority": 3, "prefix": 0}

)";
  std::ofstream{folder.path() / "s.toml"} << "[[load]]\nname = \"t\"\ntrace = \"t.jsonl\"\nprefix_groups = 2\nprefix_tokens = 11\n";
  const auto o = run(read_scenario((folder.path() / "s.toml").string()));
  CHECK(o.all().finished == 2);
  CHECK(o.all().prompt_tokens == 7 + 5 + 11);
  CHECK(o.all().generated_tokens == 5);
  CHECK(o.tenants.size() == 2);
  std::ofstream{folder.path() / "t.jsonl"} << "{\"at\": 1, \"prompt\": 7, \"answer\": 3}\n{\"at\": 1, \"promt\": 7}\n";
  try {
    read_scenario((folder.path() / "s.toml").string());
    FAIL("the trace was taken");
  } catch (const std::runtime_error& e) {
    CHECK_THAT(e.what(), Catch::Contains("t.jsonl:2: unknown key 'promt'"));
  }
}

TEST_CASE("percentiles are values that occurred") {
  CHECK(!simulate::percentile({}, 0.5));
  CHECK(*simulate::percentile({3}, 0.99) == 3);
  CHECK(*simulate::percentile({4, 1, 3, 2}, 0.5) == 2);
  CHECK(*simulate::percentile({4, 1, 3, 2}, 1) == 4);
  std::vector<double> hundred;
  for (int i = 1; i <= 100; ++i) hundred.push_back(i);
  CHECK(*simulate::percentile(hundred, 0.99) == 99);
}

TEST_CASE("costs are found again in steps that have them, and none is negative") {
  const simulate::Costs costs{3e6, 1e5, 4e5, 2.5, 5e4, 2e5};
  std::vector<simulate::Sample> samples;
  for (std::uint64_t i = 0; i < 400; ++i) {
    simulate::Sample s;
    s.shape.rows = 1 + static_cast<double>(simulate::mix(i) % 32);
    s.shape.tokens = s.shape.rows + (i % 3 == 0 ? static_cast<double>(simulate::mix(i, 1) % 500) : 0);
    s.shape.context = s.shape.tokens * static_cast<double>(simulate::mix(i, 2) % 1000);
    const double noise = 0.97 + 0.06 * simulate::unit(simulate::mix(i, 3)), stall = i % 17 == 0 ? 5 : 1;
    s.step_ns = simulate::step_ns(costs, s.shape) * noise * stall;
    s.host_ns = simulate::host_ns(costs, s.shape) * noise;
    samples.push_back(s);
  }
  const auto fit = simulate::fit(samples);
  REQUIRE(fit);
  CHECK(fit->costs.step == Approx(costs.step).epsilon(0.05));
  CHECK(fit->costs.token == Approx(costs.token).epsilon(0.05));
  CHECK(fit->costs.row == Approx(costs.row).epsilon(0.05));
  CHECK(fit->costs.context == Approx(costs.context).epsilon(0.3));  // least of what a step takes
  CHECK(fit->costs.host_row == Approx(costs.host_row).epsilon(0.05));
  CHECK(fit->median_error < 0.03);
  for (auto& s : samples) s.step_ns = 1e6 * (1 + 10 / s.shape.rows);  // rows that cost less than nothing
  const auto odd = simulate::fit(samples);
  REQUIRE(odd);
  CHECK(odd->costs.row == 0);
  CHECK(odd->costs.step > 0);
  CHECK(!simulate::fit({}));
}
