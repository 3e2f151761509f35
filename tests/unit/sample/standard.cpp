// The standard sampler through its table, as the engine uses it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>

#include "sample/chain.hpp"
#include "sample/draw.hpp"
#include "sample/random.hpp"
#include "support/catch.hpp"
#include "support/engine_bench.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

const config::Use& standard() {
  static const auto made = use("sampler", "standard");
  return made;
}
std::vector<sample::Link> links(const config::Use& of = standard()) {
  const auto component = *shared_plugins().registry.find(of);
  return {{component.raw, component.host, plugin::abi_config(*of.options)}};
}
Result<sample::Chain> chain(const std::string& request, std::uint32_t vocab = 4) {
  static mekik_vocab view;
  view = engine::vocab_view(nullptr, vocab);
  return sample::Chain::create(links(), view, request);
}
std::vector<float> shaped(const std::string& request, std::vector<float> logits, const std::vector<std::int32_t>& prompt = {},
                          const std::vector<std::int32_t>& answer = {}) {
  auto made = chain(request, static_cast<std::uint32_t>(logits.size()));
  REQUIRE(made);
  made->accept(prompt, true);
  for (const auto id : answer) made->accept({&id, 1}, false);
  REQUIRE(made->apply(logits, 0.5).ok());
  return logits;
}
std::vector<int> kept(const std::vector<float>& logits) {
  std::vector<int> out;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -std::numeric_limits<float>::infinity()) out.push_back(static_cast<int>(i));
  return out;
}
const std::vector<float> kLogits{2, 1, 0, -1};

// Sorting, as plainly as the definitions say it.
std::vector<int> plain_top_p(const std::vector<float>& logits, double p) {
  std::vector<int> ids(logits.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int>(i);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](int a, int b) { return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)]; });
  double total = 0, sum = 0;
  for (const float l : logits) total += std::exp(double{l});
  std::vector<int> out;
  for (const int id : ids) {
    out.push_back(id);
    sum += std::exp(double{logits[static_cast<std::size_t>(id)]}) / total;
    if (sum >= p) break;
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("temperatures of any size (B86)") {
  for (const float shift : {0.0f, 300.0f, -300.0f}) {
    auto logits = kLogits;
    for (auto& l : logits) l += shift;
    for (const auto* t : {"0", "0.0", "1e-12", "1e-45"})
      CHECK(kept(shaped(std::string{"{\"temperature\":"} + t + "}", logits)) == std::vector{0});
    const auto flat = shaped(R"({"temperature":1e9})", logits);
    for (const float l : flat) CHECK(std::abs(l) < 1e-8f);
  }
  CHECK(kept(shaped(R"({"temperature":0})", {1, 3, 3, 2})) == std::vector{1});  // ties to the lower id
}

TEST_CASE("penalties count what they should (B88)") {
  CHECK(shaped(R"({"frequency_penalty":0.5,"presence_penalty":0.25})", kLogits, {0}, {0, 0}) == std::vector<float>{0.75f, 1, 0, -1});
  CHECK(shaped(R"({"repetition_penalty":2})", kLogits, {3}, {0}) == std::vector<float>{1, 1, 0, -2});
}

TEST_CASE("the penalty window (B92)") {
  const std::string both = R"("frequency_penalty":1,"repetition_penalty":2,"repeat_last_n":)";
  CHECK(shaped("{" + both + "0}", kLogits, {0}, {1, 1}) == kLogits);
  CHECK(shaped("{" + both + "-1}", kLogits, {0}, {1, 1}) == std::vector<float>{1, -1.5f, 0, -1});
  CHECK(shaped("{" + both + "1000000}", kLogits, {0}, {1, 1}) == std::vector<float>{1, -1.5f, 0, -1});
  CHECK(shaped("{" + both + "2}", kLogits, {0}, {1, 1}) == std::vector<float>{2, -1.5f, 0, -1});
  CHECK(shaped("{" + both + "1}", kLogits, {0}, {1, 2}) == std::vector<float>{2, 1, -1, -1});
}

TEST_CASE("top_k and top_p keep what they say (B90)") {
  for (const auto* k : {"0", "-1", "1000000000", "4"}) CHECK(kept(shaped(std::string{"{\"top_k\":"} + k + "}", kLogits)).size() == 4);
  CHECK(kept(shaped(R"({"top_k":1})", {1, 2, 2, 0})) == std::vector{1});
  CHECK(kept(shaped(R"({"top_k":2})", {1, 2, 0, 1})) == std::vector{0, 1});
  CHECK(kept(shaped(R"({"top_p":0})", kLogits)) == std::vector{0});
  CHECK(kept(shaped(R"({"top_p":0.65})", kLogits)) == std::vector{0, 1});
  CHECK(kept(shaped(R"({"top_p":0.9})", kLogits)) == std::vector{0, 1, 2});
  CHECK(kept(shaped(R"({"top_p":0.97})", kLogits)).size() == 4);
  CHECK(kept(shaped(R"({"top_p":1.0})", kLogits)).size() == 4);
  CHECK(kept(shaped(R"({"min_p":0.3})", kLogits)) == std::vector{0, 1});
  CHECK(kept(shaped(R"({"min_p":1.0})", kLogits)) == std::vector{0});
  CHECK(kept(shaped(R"({"min_p":0.0})", kLogits)).size() == 4);
}

TEST_CASE("the fast selections equal the plain ones") {
  std::mt19937 random{1};
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 1 + random() % 6000;
    std::vector<float> logits(n);
    const float spread = round % 3 == 0 ? 0.5f : 8.0f;
    for (auto& l : logits) l = spread * (static_cast<float>(random() % 2001) / 1000.0f - 1);  // with ties
    const std::size_t k = 1 + random() % n;
    std::vector<int> ids(n);
    for (std::size_t i = 0; i < n; ++i) ids[i] = static_cast<int>(i);
    std::stable_sort(ids.begin(), ids.end(),
                     [&](int a, int b) { return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)]; });
    ids.resize(k);
    std::sort(ids.begin(), ids.end());
    CHECK(kept(shaped("{\"top_k\":" + std::to_string(k) + "}", logits)) == ids);
    const double p = static_cast<double>(random() % 9990 + 5) / 10007;
    CHECK(kept(shaped("{\"top_p\":" + std::to_string(p) + "}", logits)) == plain_top_p(logits, std::stod(std::to_string(p))));
  }
}

TEST_CASE("biases reach their tokens, and unknown ids are an error") {
  CHECK(shaped(R"({"logit_bias":"{\"2\": 100, \"0\": -1.5}"})", kLogits) == std::vector<float>{0.5f, 1, 100, -1});
  for (const auto* bad : {"{\\\"4\\\":1}", "{\\\"-1\\\":1}", "{\\\"x\\\":1}", "{\\\"1\\\":101}", "{\\\"1\\\":\\\"a\\\"}", "[1]", "{"}) {
    const auto made = chain(std::string{R"({"logit_bias":")"} + bad + "\"}");
    REQUIRE_FALSE(made);
    CHECK(made.status().code == Code::invalid);
    CHECK(made.status().text.find("logit_bias") != std::string::npos);
  }
}

TEST_CASE("the pipeline's values hold where the request is silent") {
  static const auto tuned = use("sampler", "standard", "temperature = 0.0\nlogit_bias = '{\"3\": 50}'");
  static const auto view = engine::vocab_view(nullptr, 4);
  auto made = sample::Chain::create(links(tuned), view, R"({"top_k":3})");
  REQUIRE(made);
  auto logits = kLogits;
  REQUIRE(made->apply(logits, 0).ok());
  CHECK(kept(logits) == std::vector{3});
}

TEST_CASE("fields of a request go to who declares them, checked") {
  const auto* component = shared_plugins().registry.find(standard())->raw;
  std::vector<std::string> unknown;
  const auto ask = [&](const char* body) { return sample::sampler_request({component}, json::parse(body)->as_object(), unknown); };
  const auto good = ask(R"({"temperature":0.5,"top_p":null,"logit_bias":{"1":5},"frobnicate":1})");
  REQUIRE(good);
  CHECK(*good == R"({"temperature":5E-1,"logit_bias":"{\"1\":5}"})");
  CHECK(unknown == std::vector<std::string>{"frobnicate"});
  for (const auto* bad :
       {R"({"temperature":-1})", R"({"top_p":1.5})", R"({"top_k":"many"})", R"({"top_k":-2})", R"({"temperature":true})"}) {
    const auto refused = ask(bad);
    REQUIRE_FALSE(refused);
    CHECK(refused.status().code == Code::invalid);
  }
  CHECK(ask(R"({"temperature":-1})").status().text.find("temperature") != std::string::npos);
}

TEST_CASE("Philox gives the published numbers") {  // Random123, kat_vectors, philox4x32 10
  CHECK(sample::philox({0, 0, 0, 0}, {0, 0}) == std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(sample::philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(sample::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("the uniform is even, and differs by seed, answer and position") {
  double sum = 0;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const double u = sample::uniform(1, 0, i);
    REQUIRE((u >= 0 && u < 1));
    sum += u;
  }
  CHECK(std::abs(sum / 10000 - 0.5) < 0.01);
  CHECK(sample::uniform(1, 0, 0) == sample::uniform(1, 0, 0));
  CHECK(sample::uniform(1, 0, 0) != sample::uniform(2, 0, 0));
  CHECK(sample::uniform(1, 0, 0) != sample::uniform(1, 1, 0));
  CHECK(sample::uniform(1, 0, 0) != sample::uniform(std::uint64_t{1} << 32 | 1, 0, 0));
}

TEST_CASE("the draw follows the probabilities") {
  std::vector<double> scratch;
  const double expected[] = {0.6439, 0.2369, 0.0871, 0.0321};
  int counts[4] = {};
  for (int i = 0; i < 100000; ++i) ++counts[*sample::draw(kLogits, (i + 0.5) / 100000, scratch)];
  for (int i = 0; i < 4; ++i) CHECK(std::abs(counts[i] / 100000.0 - expected[i]) < 1e-4);
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(*sample::draw(std::vector<float>{-inf, 5, -inf}, 0.0, scratch) == 1);
  CHECK(*sample::draw(std::vector<float>{-inf, 5, -inf}, 0x1.fffffffffffffp-1, scratch) == 1);
  CHECK_FALSE(sample::draw(std::vector<float>{-inf, -inf}, 0.5, scratch));
  CHECK(sample::check_logits(std::vector<float>{1, -inf}).ok());
  CHECK(sample::check_logits(std::vector<float>{1, std::nanf("")}).text.find("NaN") != std::string::npos);
  CHECK_FALSE(sample::check_logits(std::vector<float>{inf, 1}).ok());
}

TEST_CASE("log-probabilities add up to one") {
  const sample::LogSoftmax raw{kLogits};
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += std::exp(double{raw.logprob(i)});
  CHECK(std::abs(sum - 1) < 1e-6);
  const std::vector<float> ties{1, 3, 3, 2};
  const auto top = sample::LogSoftmax{ties}.top(3);
  REQUIRE(top.size() == 3);
  CHECK(top[0].first == 1);
  CHECK(top[1].first == 2);
  CHECK(top[2].first == 3);
  CHECK(sample::LogSoftmax{ties}.top(100).size() == 4);
  CHECK(sample::LogSoftmax{ties}.top(0).empty());
}

TEST_CASE("sampling a vocabulary of 49152 is quick") {
  std::mt19937 random{2};
  std::normal_distribution<float> normal{0, 3};
  std::vector<float> logits(49152), copy;
  for (auto& l : logits) l = normal(random);
  std::vector<double> scratch;
  for (const auto* request : {"{}", R"({"temperature":0})", R"({"top_p":0.95})", R"({"top_k":40,"top_p":0.95})", R"({"top_p":0.999})"}) {
    auto made = chain(request, 49152);
    REQUIRE(made);
    double best = 1e9;
    for (int i = 0; i < 20; ++i) {
      copy = logits;
      const auto began = std::chrono::steady_clock::now();
      REQUIRE(made->apply(copy, 0.3).ok());
      REQUIRE(sample::draw(copy, 0.3, scratch));
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    }
    WARN(request << ": " << best * 1e6 << " us");
    CHECK(best < 0.02);  // far above what it takes, since test machines are slow and sanitizers slower
  }
}
