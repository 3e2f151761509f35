// What a request may ask for, how it ends, and what can go wrong with it.
#include <cmath>

#include "support/catch.hpp"
#include "support/engine_bench.hpp"

using namespace mekik;
using namespace mekik::test;
using engine::Finish;

namespace {

// Makes the backend say the given tokens, whatever the prompt of `prompt` tokens was.
FakeBackend::Hook force(std::size_t prompt, std::vector<std::int32_t> script) {
  return [prompt, script = std::move(script)](std::span<const std::int32_t> tokens, std::span<float> logits) {
    const auto at = tokens.size() - prompt;
    if (tokens.size() >= prompt && at < script.size()) logits[static_cast<std::size_t>(script[at])] = 50;
  };
}

const FakeTokenizer& letters() {
  static const FakeTokenizer tokenizer{[] {
    std::vector<std::string> pieces{"<end>", "<|im_start|>", " one", " two", " S", "TO", "P", "x"};
    while (pieces.size() < 64) pieces.push_back("." + std::to_string(pieces.size()));
    return pieces;
  }()};
  return tokenizer;
}

Status refusal(Bench& bench, const engine::Request& request) { return bench.submit(request).status(); }

}  // namespace

TEST_CASE("requests that cannot be are refused with both numbers (B57, B63, B101)") {
  Setup setup;
  setup.context = 64;
  setup.blocks = {10};  // 40 tokens
  Bench bench{setup};
  auto status = refusal(bench, request_of(prompt_of(65, 1), 4));
  CHECK(status.code == Code::invalid);
  CHECK(status.text.find("context") != std::string::npos);
  CHECK(status.text.find("65") != std::string::npos);
  CHECK(status.text.find("64") != std::string::npos);
  status = refusal(bench, request_of(prompt_of(41, 1), 4));
  CHECK(status.code == Code::invalid);
  CHECK(status.text.find("41") != std::string::npos);
  CHECK(status.text.find("40") != std::string::npos);
  CHECK_FALSE(refusal(bench, request_of({}, 4)).ok());
  CHECK_FALSE(refusal(bench, request_of({64}, 4)).ok());
  CHECK_FALSE(refusal(bench, request_of({-1}, 4)).ok());
  CHECK_FALSE(refusal(bench, request_of({1}, 0)).ok());
  for (const auto n : {0u, 129u, 1000000u}) {
    auto many = request_of({1}, 4);
    many.n = n;
    CHECK(refusal(bench, many).code == Code::invalid);
  }
  auto stops = request_of({1}, 4);
  stops.stop = {"x"};
  CHECK(refusal(bench, stops).code == Code::unsupported);  // no tokenizer
  CHECK(refusal(bench, request_of({1}, 4, R"({"logit_bias":"{\"64\": 1}"})")).code == Code::invalid);
  CHECK(bench.metric("mekik_requests_refused_total") > 0);
  CHECK(bench.step() == engine::Loop::Turn::idle);
}

TEST_CASE("the context is filled to its last token (B63)") {
  Setup setup;
  setup.context = 32;
  Bench bench{setup};
  CHECK_FALSE(bench.submit(request_of(prompt_of(32, 1), 5)));
  const auto one = bench.submit(request_of(prompt_of(31, 1), 5));
  const auto some = bench.submit(request_of(prompt_of(20, 1), 500));
  bench.run();
  CHECK(bench.answer(*one).tokens.size() == 1);
  CHECK(bench.answer(*some).tokens.size() == 12);
  CHECK(bench.answer(*some).finish == Finish::length);
}

TEST_CASE("the queue is bounded") {
  Setup setup;
  setup.max_queue = 2;
  Bench bench{setup};
  REQUIRE(bench.submit(request_of({1}, 4)));
  REQUIRE(bench.submit(request_of({2}, 4)));
  CHECK(refusal(bench, request_of({3}, 4)).code == Code::busy);
  bench.run();
  CHECK(bench.submit(request_of({3}, 4)).ok());
}

TEST_CASE("stop strings, stop tokens and end tokens") {
  Setup setup;
  setup.tokenizer = &letters();
  const auto run = [&](engine::Request request, std::vector<std::int32_t> script) {
    Bench bench{setup};
    bench.backend.hook = force(request.prompt.size(), std::move(script));
    bool leaked = false;
    bench.on_event = [&](const engine::Event& e) { leaked |= e.text.find('S') != std::string::npos; };
    const auto id = bench.submit(request);
    REQUIRE(id);
    bench.run();
    CHECK_FALSE(leaked);
    return bench.answer(*id);
  };
  auto request = request_of({9, 9}, 6);
  request.stop = {"STOP"};
  auto a = run(request, {2, 3, 4, 5, 6, 7});
  CHECK(a.text == " one two ");
  CHECK(a.finish == Finish::stop);
  CHECK(a.tokens.size() == 5);
  request.stop.clear();
  a = run(request, {2, 0, 3});
  CHECK(a.text == " one");
  CHECK(a.finish == Finish::stop);
  CHECK(a.usage.completion_tokens == 2);
  request.ignore_eos = true;
  a = run(request, {2, 0, 3, 0, 3, 2});
  CHECK(a.text == " one two two one");
  CHECK(a.finish == Finish::length);
  request.stop_tokens = {3};
  a = run(request, {2, 0, 3});
  CHECK(a.finish == Finish::stop);
  CHECK(a.text == " one");
  request = request_of({9}, 5);
  request.stop = {"<|im_start|>"};
  a = run(request, {1, 1, 1, 1, 1});  // B66
  CHECK(a.text.empty());
  CHECK(a.finish == Finish::stop);
  CHECK(a.usage.completion_tokens == 1);
  request.stop.clear();
  a = run(request, {1, 1, 1, 1, 1});
  CHECK(a.text.empty());
  CHECK(a.finish == Finish::length);
  CHECK(a.usage.completion_tokens == 5);
}

TEST_CASE("logprobs of answers and prompts (B54, B56)") {
  for (const std::uint32_t max_rows : {4u, 64u}) {
    Setup setup;
    setup.max_rows = max_rows;
    Bench bench{setup};
    auto request = request_of(prompt_of(11, 2), 3);
    request.logprobs = 5;
    request.score_prompt = true;
    const auto id = bench.submit(request);
    request.max_tokens = 0;
    request.n = 2;
    const auto only = bench.submit(request);
    bench.run();
    const auto& a = bench.answer(*id);
    REQUIRE(a.prompt.size() == 11);
    CHECK(std::isnan(a.prompt[0].logprob));
    for (std::size_t i = 1; i < 11; ++i) {
      CHECK(a.prompt[i].id == request.prompt[i]);
      CHECK(a.prompt[i].logprob < 0);
      CHECK(a.prompt[i].top.size() == 5);
    }
    REQUIRE(a.infos.size() == 3);
    for (const auto& t : a.infos) {
      REQUIRE(t.top.size() == 5);
      CHECK(t.top[0].id == t.id);  // greedy
      CHECK(t.top[0].logprob == t.logprob);
      CHECK(t.top[4].logprob <= t.top[3].logprob);
    }
    for (std::uint32_t i = 0; i < 2; ++i) {
      CHECK(bench.answer(*only, i).prompt.size() == 11);
      CHECK(bench.answer(*only, i).prompt[5].logprob == a.prompt[5].logprob);
      CHECK(bench.answer(*only, i).tokens.empty());
      CHECK(bench.answer(*only, i).finish == Finish::length);
    }
  }
}

TEST_CASE("NaN ends the request that it met, and no other") {
  Bench bench;
  bench.backend.hook = [](std::span<const std::int32_t> tokens, std::span<float> logits) {
    if (tokens.size() == 8 && tokens[0] == 1) logits[3] = std::nanf("");
  };
  const auto bad = bench.submit(request_of({1, 2, 3}, 20));
  const auto good = bench.submit(request_of({2, 2, 3}, 20));
  bench.run();
  CHECK(bench.answer(*bad).finish == Finish::error);
  CHECK(bench.answer(*bad).error.text.find("NaN") != std::string::npos);
  CHECK(bench.answer(*bad).tokens.size() == 5);
  CHECK(bench.answer(*good).finish == Finish::length);
}

TEST_CASE("a backend's failure ends the requests of its step") {
  Bench bench;
  const auto first = bench.submit(request_of({1, 2, 3}, 20));
  bench.step();
  SECTION("when submitting") { bench.backend.fail_submit = MEKIK_E_NO_MEMORY; }
  SECTION("when waiting") { bench.backend.fail_wait = MEKIK_E_INTERNAL; }
  bench.step();
  CHECK(bench.answer(*first).finish == Finish::error);
  const auto second = bench.submit(request_of({1, 2, 3}, 20));
  REQUIRE(second);
  bench.run();
  CHECK(bench.answer(*second).finish == Finish::length);
}

TEST_CASE("a lost device ends everything and takes nothing more") {
  Bench bench;
  auto many = request_of({1, 2, 3}, 20);
  many.n = 3;
  const auto running = bench.submit(many);
  bench.step();
  const auto queued = bench.submit(request_of({5}, 20));
  bench.backend.fail_wait = MEKIK_E_DEVICE_LOST;
  bench.step();
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(bench.answer(*running, i).finish == Finish::error);
  CHECK(bench.answer(*queued).finish == Finish::error);
  CHECK(refusal(bench, request_of({1}, 1)).code == Code::device_lost);
  CHECK(bench.loop->stats().device_lost);
  bench.run();
}

TEST_CASE("a receiver that throws is cut off and harms nobody") {
  Bench bench;
  int calls = 0;
  REQUIRE(bench.loop->submit(request_of({1}, 50), [&](const engine::Event&) {
    ++calls;
    throw std::runtime_error{"gone"};
  }));
  const auto other = bench.submit(request_of({2}, 10));
  bench.run();
  CHECK(calls == 1);
  CHECK(bench.answer(*other).finish == Finish::length);
  CHECK(bench.backend.submits < 30);
}

TEST_CASE("a cancel takes effect within a step, whatever the request is doing (B62)") {
  Setup setup;
  setup.max_seqs = 2;
  for (const int after : {0, 1, 3, 12}) {  // queued, in prefill, in prefill, decoding
    Bench bench{setup};
    auto request = request_of(prompt_of(60, 1), 100);
    request.n = 2;
    const auto id = bench.submit(request);
    for (int i = 0; i < after; ++i) bench.step();
    bench.loop->cancel(*id);
    bench.step();
    CHECK(bench.answer(*id, 0).finish == Finish::cancelled);
    CHECK(bench.answer(*id, 1).finish == Finish::cancelled);
    const auto stats = bench.loop->stats();
    CHECK(stats.running == 0);
    CHECK(stats.blocks_free == stats.blocks_total);
    CHECK(bench.metric("mekik_requests_finished_total", "cancelled") == 2);
    bench.loop->cancel(*id);
    bench.loop->cancel(999);
    CHECK(bench.step() == engine::Loop::Turn::idle);
  }
}

TEST_CASE("a deadline is kept, in the queue as well") {
  Setup setup;
  setup.max_seqs = 1;
  Bench bench{setup};
  auto request = request_of({1}, 200);
  request.deadline_ns = bench.clock.now + 10'500'000;
  const auto running = bench.submit(request);
  const auto waiting = bench.submit(request);
  bench.run();
  CHECK(bench.answer(*running).finish == Finish::error);
  CHECK(bench.answer(*running).error.text.find("deadline") != std::string::npos);
  CHECK(bench.answer(*running).tokens.size() == 10);
  CHECK(bench.answer(*waiting).tokens.empty());
  CHECK(bench.answer(*waiting).finish == Finish::error);
}

TEST_CASE("metrics count what happened (B152, B154)") {
  Bench bench;
  for (int round = 1; round <= 3; ++round) {
    REQUIRE(bench.submit(request_of({1, 2}, 10)));
    bench.run();
    CHECK(bench.metric("mekik_generation_tokens_total") == 10 * round);
  }
  auto twice = request_of({1, 2}, 5);
  twice.n = 2;
  REQUIRE(bench.submit(twice));
  const auto cancelled = bench.submit(request_of({1}, 5));
  bench.loop->cancel(*cancelled);
  bench.run();
  CHECK(bench.metric("mekik_time_to_first_token_seconds") == 4);  // once a request that produced a token
  CHECK(bench.metric("mekik_e2e_request_latency_seconds") == 5);
}

TEST_CASE("the watchdog sees a step that does not end") {
  Bench bench;
  REQUIRE(bench.submit(request_of({1}, 5)));
  CHECK_FALSE(bench.loop->stats().stuck);
  bool seen = false;
  bench.backend.hook = [&](std::span<const std::int32_t>, std::span<float>) {
    bench.clock.now += 31'000'000'000;
    seen = bench.loop->stats().stuck;  // as another thread would ask meanwhile
  };
  bench.step();
  CHECK(seen);
  bench.backend.hook = nullptr;
  bench.step();
  CHECK_FALSE(bench.loop->stats().stuck);
}
