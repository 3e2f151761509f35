// Storms of requests over a bench: what is sent, what each gives alone, and that the answers are those.
#pragma once
#include <random>

#include "support/catch.hpp"
#include "support/drafters.hpp"

namespace mekik::test {

using Random = std::mt19937;

// A few requests that come again and again.
inline std::vector<engine::Request> few_requests() {
  std::vector<engine::Request> out;
  for (std::uint64_t i = 0; i < 10; ++i) {
    auto request = request_of(prompt_of(1 + i * 4, 900 + i), 1 + static_cast<std::uint32_t>(i * 7 % 40),
                              i % 3 == 0 ? R"({"temperature":0})" : R"({"temperature":0.9,"top_k":20,"repetition_penalty":1.2})");
    request.seed = i;
    request.n = i % 4 == 1 ? 3 : 1;
    request.logprobs = i % 5 == 2 ? 2 : -1;
    request.priority = static_cast<std::int32_t>(i % 3);
    request.tenant = i % 4 == 3 ? 1 : 0;
    out.push_back(std::move(request));
  }
  return out;
}

// Prompts that have beginnings in common, so that caches and drafters have something to find; tenants that may not share them.
inline std::vector<engine::Request> requests_with_common_beginnings() {
  std::vector<engine::Request> out;
  for (std::uint64_t i = 0; i < 60; ++i) {
    auto prompt = prompt_of(8 + i % 5 * 12, 40 + i % 5);
    const auto own = prompt_of(1 + i % 7 * 5, 700 + i);
    prompt.insert(prompt.end(), own.begin(), own.end());
    auto request = request_of(prompt, 1 + static_cast<std::uint32_t>(i * 7 % 40),
                              i % 3 != 0 ? R"({"temperature":0})" : R"({"temperature":0.9,"top_k":20,"repetition_penalty":1.2})");
    request.seed = i;
    request.n = i % 11 == 1 ? 3 : 1;
    request.logprobs = i % 6 == 2 ? 2 : -1;
    request.priority = static_cast<std::int32_t>(i % 3);
    request.tenant = i % 4;
    request.salt = i % 4 == 3 ? 3 : 0;
    out.push_back(std::move(request));
  }
  return out;
}

// Requests with their answers alone. Only setups that change an answer (windows, slots) need their own.
class Expected {
 public:
  explicit Expected(const Setup& setup, std::vector<engine::Request> requests = few_requests()) : requests_{std::move(requests)} {
    for (const auto& request : requests_) answers_.push_back(alone(request, setup));
  }
  std::size_t size() const { return requests_.size(); }
  const engine::Request& request(std::size_t i) const { return requests_[i]; }
  const Answer& answer(std::size_t i, std::uint32_t index) const { return answers_[i][index]; }

 private:
  std::vector<engine::Request> requests_;
  std::vector<std::vector<Answer>> answers_;
};

struct Sent {
  engine::RequestId id;
  std::size_t which;
  bool cancelled = false;
};

inline void check_answers(const Bench& bench, const Expected& expected, const std::vector<Sent>& sent) {
  for (const Sent& s : sent)
    for (std::uint32_t k = 0; k < expected.request(s.which).n; ++k) {
      const Answer& got = bench.answer(s.id, k);
      const Answer& wanted = expected.answer(s.which, k);
      CAPTURE(s.id, s.which, k, got.error.text);
      CHECK(got.events_after_finish == 0);
      if (s.cancelled && got.finish == engine::Finish::cancelled) {
        CHECK(std::equal(got.tokens.begin(), got.tokens.end(), wanted.tokens.begin(),
                         wanted.tokens.begin() + static_cast<std::ptrdiff_t>(std::min(got.tokens.size(), wanted.tokens.size()))));
        continue;
      }
      CHECK(got.finish == wanted.finish);
      CHECK(got.tokens == wanted.tokens);
    }
}

inline void check_balance(Bench& bench, bool keeping_cache) {
  const auto stats = bench.loop->stats();
  CHECK(stats.running == 0);
  CHECK(stats.waiting == 0);
  CHECK(stats.blocks_leaked == 0);
  if (!keeping_cache) CHECK(stats.blocks_free == stats.blocks_total);
}

}  // namespace mekik::test
