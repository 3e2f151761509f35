// What decides how much is drafted: measured acceptance and measured steps.
#include "engine/acceptance.hpp"
#include "engine/step_costs.hpp"
#include "support/catch.hpp"
#include "support/drafters.hpp"

using namespace mekik;
using namespace mekik::test;
using engine::Acceptance;
using engine::StepCosts;

TEST_CASE("times of steps: medians, what lies between, and what is forgotten") {
  StepCosts costs;
  CHECK_FALSE(costs.of(1));
  costs.measured(2, 100);
  CHECK_FALSE(costs.of(1));
  CHECK(*costs.of(2) == 100);
  CHECK(*costs.of(3) > 101);  // unknown: rather dear
  for (const std::uint64_t ns : {110u, 9000u, 120u, 105u}) costs.measured(2, ns);
  CHECK(*costs.of(2) == 110);  // one slow step is nothing
  costs.measured(6, 9000);
  CHECK(*costs.of(6) < 1000);  // once is not enough to know
  costs.measured(6, 150);
  costs.measured(6, 150);
  CHECK(*costs.of(6) == 150);
  CHECK(*costs.of(4) == 130);
  CHECK(*costs.of(7) > 155);
  CHECK(costs.age(6) == 0);
  CHECK(costs.age(2) == 3);
  for (int i = 0; i < 5000; ++i) costs.measured(1, 50);
  CHECK(*costs.of(6) == 137.5);  // forgotten
  costs.measured(100000, 1);     // too long to be kept
  CHECK(*costs.of(1) == 50);
}

TEST_CASE("acceptance is counted by confidence, and old counts fade") {
  Acceptance acceptance{0.9F};
  CHECK(acceptance.of(0.5F, 0.3) == 0.3);
  for (int i = 0; i < 100; ++i) acceptance.seen(0.5F, true), acceptance.seen(0.9F, false);
  CHECK(acceptance.of(0.5F, 0.3) > 0.75);
  CHECK(acceptance.of(0.9F, 0.3) < 0.1);
  CHECK(acceptance.of(0.1F, 0.3) == 0.3);
  for (int i = 0; i < 100; ++i) acceptance.seen(0.5F, false);
  CHECK(acceptance.of(0.5F, 0.3) < 0.1);
  for (const float odd : {0.0F, 1.0F, -3.0F, 7.0F}) acceptance.seen(odd, true);
}

TEST_CASE("a few tokens tell how much a sequence leans") {
  engine::Leaning prose, copy;
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(prose.known());
    prose.seen(0.9, false);
    copy.seen(0.9, true);
  }
  CHECK(prose.known());
  CHECK(prose.of(0.9) < 0.35);
  CHECK(copy.of(0.9) > 0.85);
  for (int i = 0; i < 12; ++i) prose.seen(0.9, true);
  CHECK(prose.of(0.9) > 0.8);  // it copies now
  for (int i = 0; i < 1000; ++i) prose.seen(0.5, i % 2 == 0);
  CHECK(prose.of(0.5) == Approx(0.5).margin(0.15));
}

namespace {

// Loops that take time: a step of so many tokens costs `first` for the first and `more` for each further one.
struct Timed {
  Timed(Setup setup, double first, double more) : bench{setup} {
    bench.backend.hook = [this, first, more](std::span<const std::int32_t>, std::span<float>) {
      // Rows are asked for one by one, within the submit.
      if (bench.backend.submits != seen) ns = first, seen = bench.backend.submits;
      else ns = more;
      bench.clock.now += static_cast<std::uint64_t>(ns);
      spent += ns;
    };
  }
  Bench bench;
  std::uint64_t seen = 0;
  double ns = 0, spent = 0;
};

// Time of `users` answers with drafts of this truth over the time without.
double slower(double truth, double more, std::uint64_t users, OwnDrafter** out = nullptr) {
  std::vector<engine::Request> requests;
  Oracle oracle{truth};
  Setup setup;
  setup.max_seqs = 16;
  setup.max_rows = 48;
  setup.max_tokens = 64;
  setup.context = 512;
  setup.blocks = {4096};
  setup.max_drafts = 8;
  setup.adaptive_drafts = true;
  for (std::uint64_t i = 0; i < users; ++i) {
    requests.push_back(request_of(prompt_of(4, 500 + i), 400));
    oracle.learn(requests.back().prompt, alone(requests.back(), setup)[0]);
  }
  double spent[2]{};
  static std::unique_ptr<OwnDrafter> drafter;
  drafter = std::make_unique<OwnDrafter>(oracle);
  for (const int drafting : {0, 1}) {
    Setup own = setup;
    if (drafting == 1) drafter->use_in(own);
    Timed timed{own, 1e6, more * 1e6};
    for (const auto& request : requests) REQUIRE(timed.bench.submit(request));
    timed.bench.run();
    spent[drafting] = timed.spent;
  }
  if (out != nullptr) *out = drafter.get();
  return spent[1] / spent[0];
}

}  // namespace

TEST_CASE("drafts are run as far as they pay, and not at all where they do not") {
  OwnDrafter* drafter = nullptr;
  CHECK(slower(1, 0.05, 1, &drafter) < 0.25);
  CHECK(slower(0.8, 0.1, 1) < 0.6);
  CHECK(slower(0, 0.5, 1, &drafter) < 1.03);
  CHECK(drafter->run < 20);
  CHECK(drafter->guesses > 300);  // they are looked at all the same
  CHECK(slower(0.3, 0.5, 1) < 1.03);
  CHECK(slower(0.3, 0.02, 1) < 0.9);
  // Sixteen at once, where a further token costs as much as any other.
  CHECK(slower(0.3, 1, 16, &drafter) < 1.03);
  CHECK(slower(0.9, 1, 16) < 1.03);
  CHECK(slower(0.9, 0.1, 16) < 0.93);
}
