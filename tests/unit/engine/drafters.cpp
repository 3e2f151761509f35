// The drafters as functions of what they are asked.
#include "support/catch.hpp"
#include "support/engine_bench.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

using Tokens = std::vector<std::int32_t>;

class Drafter {
 public:
  explicit Drafter(const std::string& name, const std::string& options = "") : use_{use("drafter", name, options)} {
    auto made = engine::make_drafter(shared_plugins().registry, use_, engine::vocab_view(nullptr, 1000));
    if (!made) throw std::runtime_error{made.status().text};
    drafter_ = std::move(*made);
  }
  Tokens propose(const Tokens& tokens, std::uint64_t seq = 1, std::uint32_t room = 4, std::uint64_t tenant = 0) {
    Tokens out(room, -7);
    probs.assign(room, -7);
    mekik_draft_ask ask{};
    ask.seq = seq;
    ask.tenant = tenant;
    ask.tokens = tokens.data();
    ask.n_tokens = static_cast<std::uint32_t>(tokens.size());
    ask.n_prompt = 1;
    ask.room = room;
    ask.vocab = 1000;
    mekik_draft_out answer{out.data(), probs.data(), 0, 0};
    REQUIRE(drafter_->propose(drafter_.get(), &ask, 1, sizeof ask, &answer, sizeof answer) == MEKIK_OK);
    REQUIRE(answer.n <= room);
    out.resize(answer.n);
    for (std::uint32_t i = 0; i < answer.n; ++i) CHECK((probs[i] > 0 && probs[i] < 1));
    return out;
  }
  void forget(const Tokens& tokens, std::uint64_t seq = 1, std::uint64_t tenant = 0) {
    drafter_->forget(drafter_.get(), seq, tenant, tokens.data(), static_cast<std::uint32_t>(tokens.size()), 1);
  }
  std::vector<float> probs;

 private:
  config::Use use_;
  engine::Instance<mekik_drafter, mekik_draft> drafter_;
};

Tokens plus(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("ngram proposes what followed the longest last tokens where they were last") {
  Drafter drafter{"ngram"};
  CHECK(drafter.propose({1, 2, 3}).empty());
  CHECK(drafter.propose({1, 2, 3, 1}).empty());                   // one token is too little
  CHECK(drafter.propose({1, 2, 3, 1, 2}) == Tokens{3, 1, 2, 3});  // goes on behind the end as it repeats
  CHECK(drafter.propose({1, 2, 3, 1, 2, 9, 1, 2}) == Tokens{9, 1, 2, 9});
  // Two tokens were last followed by 9, three of them by 3.
  CHECK(drafter.propose({5, 1, 2, 3, 9, 9, 1, 2, 9, 5, 1, 2}, 2) == Tokens{3, 9, 9, 1});
  CHECK(drafter.propose({5, 1, 2, 3, 9, 9, 1, 2, 9, 5, 1, 2, 3}, 2, 2) == Tokens{9, 9});
  const float longer = drafter.probs[0];
  drafter.propose({1, 2, 3, 1, 2}, 3);
  CHECK(longer > drafter.probs[0]);
  CHECK(drafter.probs[1] > drafter.probs[0]);
  Drafter one{"ngram", "min = 1\nmax = 1"};
  CHECK(one.propose({4, 5, 4}) == Tokens{5, 4, 5, 4});
  CHECK_THROWS_WITH((Drafter{"ngram", "min = 5\nmax = 2"}), Catch::Contains("'max' in [drafter]: is less than min"));
}

TEST_CASE("ngram finds every repetition of a long text, however it grows") {
  Drafter drafter{"ngram"};
  const Tokens text = prompt_of(3000, 1, 1000);
  std::size_t found = 0;
  Tokens all = plus(text, {-1});
  drafter.propose(all);
  for (std::size_t i = 0; i < 1000; ++i) {
    all.push_back(text[i]);
    if (i > 3 && drafter.propose(all, 1, 1) == Tokens{text[i + 1]}) ++found;
  }
  CHECK(found == 996);
  drafter.forget(all);
  CHECK(drafter.propose({text[0], text[1]}).empty());
}

TEST_CASE("suffix proposes what most often followed, in all requests of a tenant") {
  Drafter drafter{"suffix", "memory = \"1MiB\""};
  const Tokens often{1, 2, 3, 4, 5, 6}, once{1, 2, 3, 9, 9, 9};
  CHECK(drafter.propose({1, 2}, 1).empty());
  drafter.forget(once, 1);
  CHECK(drafter.propose({1, 2}, 2) == Tokens{3, 9, 9, 9});
  drafter.forget(often, 2);
  drafter.propose({1, 2}, 3);
  drafter.forget(often, 3);
  CHECK(drafter.propose({1, 2}, 4) == Tokens{3, 4, 5, 6});
  CHECK(drafter.probs[1] < drafter.probs[2]);  // 4 did not always follow
  CHECK(drafter.propose({7, 8, 1, 2, 3, 9}, 5, 2) == Tokens{9, 9});
  CHECK(drafter.propose({1, 2}, 6, 4, 77).empty());  // another tenant's
  // Of a sequence that still runs.
  drafter.propose({20, 21, 22, 23, 24}, 7);
  CHECK(drafter.propose({30, 20, 21}, 8) == Tokens{22, 23, 24});
}

TEST_CASE("suffix keeps to its memory, and what comes often in it") {
  Drafter drafter{"suffix", "memory = \"64KiB\""};
  const Tokens often = prompt_of(50, 3, 1000);
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Tokens other = prompt_of(100, 1000 + i, 1000);
    drafter.propose(other, 2 * i + 1);
    drafter.forget(other, 2 * i + 1);
    drafter.propose(often, 2 * i + 2);
    drafter.forget(often, 2 * i + 2);
  }
  std::size_t found = 0;
  for (std::size_t n = 10; n < 49; ++n)
    if (drafter.propose(Tokens(often.begin(), often.begin() + static_cast<std::ptrdiff_t>(n)), 5000 + n, 1) == Tokens{often[n]}) ++found;
  CHECK(found > 30);
}
