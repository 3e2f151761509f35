// Speculation changes no bit of any answer, whatever a drafter says, and drafts are run where they pay.
#include <cmath>

#include "support/catch.hpp"
#include "support/drafters.hpp"

using namespace mekik;
using namespace mekik::test;
using engine::Finish;

namespace {

constexpr const char* kSampled = R"({"temperature":0.8,"repetition_penalty":1.1,"presence_penalty":0.2})";

void same(const Answer& got, const Answer& wanted) {
  CHECK(got.tokens == wanted.tokens);
  CHECK(got.text == wanted.text);
  CHECK(got.finish == wanted.finish);
  CHECK(got.events_after_finish == 0);
  REQUIRE(got.infos.size() == wanted.infos.size());
  for (std::size_t i = 0; i < got.infos.size(); ++i) {
    CHECK(got.infos[i].logprob == wanted.infos[i].logprob);
    REQUIRE(got.infos[i].top.size() == wanted.infos[i].top.size());
    for (std::size_t k = 0; k < got.infos[i].top.size(); ++k) {
      CHECK(got.infos[i].top[k].id == wanted.infos[i].top[k].id);
      CHECK(got.infos[i].top[k].logprob == wanted.infos[i].top[k].logprob);
    }
  }
}

}  // namespace

TEST_CASE("a drafter that knows the answer saves steps and changes nothing") {
  for (const char* sampler : {R"({"temperature":0})", kSampled}) {
    for (const double truth : {1.0, 0.8, 0.0}) {
      auto request = request_of(prompt_of(11, 1), 41, sampler);
      request.logprobs = 3;
      const auto expected = alone(request)[0];
      Oracle oracle{truth};
      oracle.learn(request.prompt, expected);
      OwnDrafter knowing{oracle};
      Setup setup;
      knowing.use_in(setup);
      Bench bench{setup};
      const auto id = bench.submit(request);
      REQUIRE(id);
      bench.run();
      CAPTURE(sampler, truth);
      same(bench.answer(*id), expected);
      CHECK(knowing.faults == std::vector<std::string>{});
      CHECK(knowing.forgotten == 1);
      const auto& usage = bench.answer(*id).usage;
      CHECK(usage.accepted_drafts == knowing.accepted);
      CHECK(usage.rejected_drafts == knowing.run - knowing.accepted);
      CHECK(bench.metric("mekik_spec_decode_num_draft_tokens_total") == static_cast<double>(knowing.run));
      CHECK(bench.metric("mekik_spec_decode_num_accepted_tokens_total") == static_cast<double>(knowing.accepted));
      if (truth == 1.0) {
        CHECK(bench.backend.submits == 1 + 8);  // the prompt and a token, then five each
        CHECK(usage.rejected_drafts == 0);
        CHECK(bench.metric("mekik_inter_token_latency_seconds") == 8);  // tokens of a step come together
      }
      if (truth == 0.0) CHECK(bench.backend.submits == 41);
    }
  }
}

TEST_CASE("drafts beside recurrent states, windows, blocks of every size and the cache change nothing") {
  Setup states, windows, tight;
  states.slots = 6;
  windows.windows = {0, 9};
  windows.blocks = {60, 40};
  tight.blocks = {30};
  for (Setup setup : {Setup{}, states, windows, tight})
    for (const std::uint32_t block_tokens : {1u, 3u, 4u, 16u})
      for (const double truth : {1.0, 0.6}) {
        setup.block_tokens = block_tokens;
        for (auto& blocks : setup.blocks) blocks = std::max(blocks, 200 / block_tokens);
        setup.keeping_cache = truth == 1.0;
        Oracle oracle{truth};
        std::vector<engine::Request> requests;
        std::vector<std::vector<Answer>> expected;
        for (std::uint64_t i = 0; i < 4; ++i) {
          requests.push_back(request_of(prompt_of(5 + 3 * i, 70 + i / 2), 30, i % 2 == 0 ? R"({"temperature":0})" : kSampled));
          requests.back().n = i == 3 ? 3 : 1;
          expected.push_back(alone(requests.back(), setup));
          for (const auto& answer : expected.back()) oracle.learn(requests.back().prompt, answer);
        }
        OwnDrafter drafter{oracle};
        drafter.use_in(setup);
        Bench bench{setup};
        std::vector<engine::RequestId> ids;
        for (const auto& request : requests) ids.push_back(*bench.submit(request));
        bench.run();
        CAPTURE(setup.slots, setup.windows.size(), block_tokens, truth);
        for (std::size_t i = 0; i < ids.size(); ++i)
          for (std::uint32_t k = 0; k < requests[i].n; ++k) same(bench.answer(ids[i], k), expected[i][k]);
        CHECK(drafter.accepted > 15);
        CHECK(drafter.faults == std::vector<std::string>{});
        CHECK(bench.loop->stats().blocks_leaked == 0);
      }
}

TEST_CASE("a drafter that proposes garbage, too much or nothing, or fails, harms no answer (B106)") {
  const Setup plain;
  for (unsigned seed = 1; seed < 12; ++seed) {
    OwnDrafter drafter{Liar{seed}};
    if (seed % 4 == 0) drafter.fail = MEKIK_E_INTERNAL;
    Setup setup = plain;
    setup.adaptive_drafts = seed % 3 == 0;
    drafter.use_in(setup);
    Bench bench{setup};
    std::vector<engine::Request> requests;
    std::vector<engine::RequestId> ids;
    for (std::uint64_t i = 0; i < 5; ++i) {
      requests.push_back(request_of(prompt_of(4 + i, 80 + i), 25, i % 2 == 0 ? R"({"temperature":0})" : kSampled));
      requests.back().logprobs = 1;
      ids.push_back(*bench.submit(requests.back()));
    }
    bench.run();
    CAPTURE(seed);
    for (std::size_t i = 0; i < ids.size(); ++i) same(bench.answer(ids[i]), alone(requests[i])[0]);
    CHECK(drafter.forgotten == 5);
    CHECK(drafter.faults == std::vector<std::string>{});
    if (drafter.fail != MEKIK_OK) CHECK(drafter.run == 0);
  }
}

TEST_CASE("an answer ends where it would without drafts: stop texts, end tokens, lengths (B110)") {
  std::vector<std::string> pieces;
  for (int i = 0; i < 64; ++i)
    pieces.push_back(i == 63 ? "<end>" : std::string{static_cast<char>('0' + i)} + static_cast<char>('a' + i % 26));
  const FakeTokenizer tokenizer{pieces};
  Setup setup;
  setup.tokenizer = &tokenizer;
  for (std::uint64_t salt = 0; salt < 30; ++salt) {
    auto request = request_of(prompt_of(6, 300 + salt), 40, R"({"temperature":1})");
    request.ignore_eos = salt % 3 != 0;
    const auto whole = alone(request, setup)[0];
    // A stop text inside of what will be drafted, over the border of two tokens; a stop token; or the length.
    if (salt % 3 == 1 && whole.tokens.size() > 9) {
      const std::string a = pieces[static_cast<std::size_t>(whole.tokens[7])], b = pieces[static_cast<std::size_t>(whole.tokens[8])];
      request.stop = {a.substr(1) + b.substr(0, 1)};
    } else if (salt % 3 == 2) {
      request.stop_tokens = {whole.tokens[whole.tokens.size() / 2]};
      request.max_tokens = 7 + static_cast<std::uint32_t>(salt % 5);
    }
    const auto expected = alone(request, setup)[0];
    Oracle oracle{1};
    oracle.learn(request.prompt, whole);
    OwnDrafter drafter{oracle};
    Setup drafting = setup;
    drafter.use_in(drafting);
    Bench bench{drafting};
    const auto id = bench.submit(request);
    bench.run();
    CAPTURE(salt);
    same(bench.answer(*id), expected);
    const auto& usage = bench.answer(*id).usage;
    CHECK(usage.completion_tokens == expected.tokens.size());
    CHECK(usage.accepted_drafts < expected.tokens.size());
  }
}

TEST_CASE("what is kept of a drafting sequence is what was verified") {
  Setup setup;
  setup.keeping_cache = true;
  setup.block_tokens = 4;
  auto request = request_of(prompt_of(9, 5), 30);
  const auto expected = alone(request, setup)[0];
  Oracle oracle{0.5};
  oracle.learn(request.prompt, expected);
  OwnDrafter drafter{oracle};
  drafter.use_in(setup);
  Bench bench{setup};
  const auto first = bench.submit(request);
  bench.run();
  same(bench.answer(*first), expected);
  CHECK(drafter.run > drafter.accepted);
  auto next = request;
  next.prompt.insert(next.prompt.end(), expected.tokens.begin(), expected.tokens.end());
  const auto second = bench.submit(next);
  bench.run();
  CHECK(bench.answer(*second).usage.cached_tokens == 9 + 29);
  same(bench.answer(*second), alone(next, setup)[0]);
}

TEST_CASE("draws among drafts follow the distribution") {
  // Of eight tokens with known probabilities, over many seeds, with a drafter that always proposes the likeliest.
  constexpr std::uint32_t kVocab = 8, kTokens = 5;
  const std::array<double, kVocab> weights{0.35, 0.2, 0.15, 0.1, 0.08, 0.06, 0.04, 0.02};
  OwnDrafter drafter{[](const mekik_draft_ask& ask, mekik_draft_out& out) {
    for (; out.n < ask.room; ++out.n) out.tokens[out.n] = 0, out.probs[out.n] = 0.5F;
  }};
  Setup setup;
  setup.vocab = kVocab;
  drafter.use_in(setup);
  Bench bench{setup};
  bench.backend.hook = [&](std::span<const std::int32_t>, std::span<float> logits) {
    for (std::uint32_t v = 0; v < kVocab; ++v) logits[v] = static_cast<float>(std::log(weights[v]));
  };
  std::array<std::array<double, kVocab>, kTokens> counts{};
  constexpr int kRuns = 2000;
  for (int run = 0; run < kRuns; ++run) {
    auto request = request_of({1, 2}, kTokens, R"({"temperature":1})");
    request.seed = static_cast<std::uint64_t>(run);
    const auto id = bench.submit(request);
    bench.run();
    for (std::uint32_t i = 0; i < kTokens; ++i) ++counts[i][static_cast<std::size_t>(bench.answer(*id).tokens[i])];
  }
  CHECK(drafter.accepted > 1000);
  for (const auto& position : counts) {
    double chi = 0;
    for (std::uint32_t v = 0; v < kVocab; ++v) chi += std::pow(position[v] - kRuns * weights[v], 2) / (kRuns * weights[v]);
    CHECK(chi < 29.9);  // seven degrees of freedom: one in ten thousand is above
  }
}
