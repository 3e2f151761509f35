// A drafter with a model: its state follows texts, what was wrong is taken back, and no answer changes.
#include "support/catch.hpp"
#include "support/engine_bench.hpp"

using namespace mekik;
using namespace mekik::test;
using engine::Finish;

namespace {

constexpr const char* kSampled = R"({"temperature":0.8,"repetition_penalty":1.1,"presence_penalty":0.2})";

Setup with_model() {
  Setup setup;
  setup.drafter_name = "model";
  setup.drafter_options = "model = \"draft.gguf\"\nleast = 0.0";
  setup.draft_model = true;
  return setup;
}

// Another opinion on one text in so many.
FakeBackend::Hook wrong_in(std::uint64_t times) {
  return [times](std::span<const std::int32_t> tokens, std::span<float> logits) {
    std::uint64_t h = 7;
    for (const auto t : tokens) h = mix(h ^ static_cast<std::uint64_t>(t));
    if (h % times == 0) std::rotate(logits.begin(), logits.begin() + 5, logits.end());
  };
}

void check_answers(Bench& bench, const std::vector<engine::Request>& requests, const Setup& setup) {
  std::vector<engine::RequestId> ids;
  for (const auto& request : requests) ids.push_back(*bench.submit(request));
  bench.run();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto expected = alone(requests[i], setup);
    for (std::uint32_t k = 0; k < requests[i].n; ++k) {
      CAPTURE(i, k);
      CHECK(bench.answer(ids[i], k).tokens == expected[k].tokens);
      CHECK(bench.answer(ids[i], k).finish == expected[k].finish);
    }
  }
}

}  // namespace

TEST_CASE("a draft model that is as good as the model is always right, drawn tokens included (B106)") {
  for (const char* sampler : {R"({"temperature":0})", kSampled}) {
    Setup setup = with_model();
    setup.max_tokens = 64;
    Bench bench{setup};
    const auto request = request_of(prompt_of(9, 1), 41, sampler);
    const auto id = bench.submit(request);
    bench.run();
    CAPTURE(sampler);
    CHECK(bench.answer(*id).tokens == alone(request)[0].tokens);
    const auto& usage = bench.answer(*id).usage;
    CHECK(usage.rejected_drafts == 0);
    CHECK(usage.accepted_drafts == 32);
    CHECK(bench.backend.submits == 1 + 8);
    CHECK(bench.draft_backend->submits == 8 * 4);
    CHECK(bench.draft_backend->tokens_run == 9 + 40 - 1);  // nothing twice: the last proposal is not run
  }
}

TEST_CASE("what a draft model got wrong is taken back, with windows, short of blocks and among others") {
  for (const std::uint64_t times : {1u, 2u, 5u})
    for (const int kind : {0, 1, 2}) {
      Setup setup = with_model();
      setup.max_seqs = 4;
      setup.max_rows = 16;
      if (kind == 1) setup.windows = {0, 9}, setup.blocks = {60, 40};
      if (kind == 2) setup.blocks = {26};
      Bench bench{setup};
      bench.draft_backend->hook = wrong_in(times);
      std::vector<engine::Request> requests;
      for (std::uint64_t i = 0; i < 6; ++i) {
        requests.push_back(request_of(prompt_of(4 + 7 * i, 40 + i), 40, i % 2 == 0 ? R"({"temperature":0})" : kSampled));
        requests.back().n = i == 1 ? 2 : 1;
      }
      CAPTURE(times, kind);
      check_answers(bench, requests, setup);
      const double run = bench.metric("mekik_spec_decode_num_draft_tokens_total"),
                   accepted = bench.metric("mekik_spec_decode_num_accepted_tokens_total");
      CHECK(run > 100);
      if (times == 1) CHECK(accepted < run / 4);
      if (times == 5) CHECK(accepted > run / 3);
    }
}

TEST_CASE("a long prompt reaches a draft model piece by piece") {
  Setup setup = with_model();
  setup.max_tokens = 16;
  Bench bench{setup};
  const std::vector<engine::Request> requests{request_of(prompt_of(150, 3), 80), request_of(prompt_of(5, 4), 80)};
  check_answers(bench, requests, setup);
  for (const auto n : bench.draft_backend->batch_tokens) CHECK(n <= 2 * 4 + 4);
  CHECK(bench.metric("mekik_spec_decode_num_accepted_tokens_total") > 25);
}

TEST_CASE("a draft model may have more tokens than the model, or fewer (B108)") {
  for (const std::uint32_t vocab : {48u, 80u}) {
    Setup setup = with_model();
    setup.draft_vocab = vocab;
    Bench bench{setup};
    std::vector<engine::Request> requests;
    for (std::uint64_t i = 0; i < 6; ++i)
      requests.push_back(request_of(prompt_of(3, i, i == 0 ? 64 : 48), 40, i < 3 ? R"({"temperature":0})" : kSampled));
    CAPTURE(vocab);
    check_answers(bench, requests, setup);  // and the backend of the draft model saw no token that it does not have
    const double run = bench.metric("mekik_spec_decode_num_draft_tokens_total"),
                 accepted = bench.metric("mekik_spec_decode_num_accepted_tokens_total");
    CHECK(accepted > 0);
    if (vocab > 64) CHECK(accepted == run);
  }
}

TEST_CASE("a draft model that fails harms no answer, and is asked again") {
  Setup setup = with_model();
  Bench bench{setup};
  const auto request = request_of(prompt_of(9, 1), 60);
  const auto id = bench.submit(request);
  for (int i = 0; i < 4; ++i) bench.step();
  bench.draft_backend->fail_submit = MEKIK_E_INTERNAL;
  bench.step();
  bench.draft_backend->fail_wait = MEKIK_E_INTERNAL;
  bench.run();
  CHECK(bench.answer(*id).tokens == alone(request)[0].tokens);
  CHECK(bench.answer(*id).usage.accepted_drafts > 30);
}

TEST_CASE("drafts by a model are made where they pay") {
  const auto slower = [](std::uint64_t times, double draft_cost, double more) {
    double spent[2]{};
    for (const int drafting : {0, 1}) {
      Setup setup = with_model();
      setup.context = 2048;
      setup.blocks = {1024};
      setup.adaptive_drafts = true;
      if (drafting == 0) setup.draft_model = false, setup.drafter_name.clear();
      Bench bench{setup};
      std::uint64_t seen = 0;
      bench.backend.hook = [&](std::span<const std::int32_t>, std::span<float>) {
        const double ms = bench.backend.submits != seen ? 1.0 : more;
        seen = bench.backend.submits;
        bench.clock.now += static_cast<std::uint64_t>(1e6 * ms);
        spent[drafting] += ms;
      };
      if (drafting == 1)
        bench.draft_backend->hook = [&, wrong = wrong_in(times)](std::span<const std::int32_t> tokens, std::span<float> logits) {
          wrong(tokens, logits);
          bench.clock.now += static_cast<std::uint64_t>(1e6 * draft_cost);
          spent[1] += draft_cost;
        };
      REQUIRE(bench.submit(request_of(prompt_of(9, 1), 1500)));
      bench.run();
    }
    return spent[1] / spent[0];
  };
  CHECK(slower(50, 0.1, 0.1) < 0.6);
  CHECK(slower(50, 0.9, 0.3) < 1.02);
  CHECK(slower(1, 0.1, 0.1) < 1.03);
  CHECK(slower(2, 0.4, 0.4) < 1.03);
}
