#include "engine/stop.hpp"

#include "engine/answer_text.hpp"
#include "support/catch.hpp"
#include "support/engine_bench.hpp"

using namespace mekik;
using engine::StopMatcher;

namespace {

// The text that comes out when `text` goes in cut into pieces of `size` bytes; no early piece may be part of a stop string.
std::pair<std::string, bool> through(const std::vector<std::string>& stops, const std::string& text, std::size_t size) {
  StopMatcher matcher{stops};
  std::string out;
  for (std::size_t at = 0; at < text.size() && !matcher.stopped(); at += size) out += matcher.push(text.substr(at, size), true);
  if (!matcher.stopped()) out += matcher.finish();
  return {out, matcher.stopped()};
}

}  // namespace

TEST_CASE("stop strings over token borders (B49)") {
  const std::string text = "one two STOP four";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    CHECK(through({"STOP"}, text, size) == std::pair{std::string{"one two "}, true});
    CHECK(through({"two ST"}, text, size) == std::pair{std::string{"one "}, true});
    CHECK(through({"four", "two"}, text, size) == std::pair{std::string{"one "}, true});
    CHECK(through({"a stop that is much longer than the text itself"}, text, size) == std::pair{text, false});
    CHECK(through({"four!"}, text, size) == std::pair{text, false});
    CHECK(through({"aab"}, "aaab", size) == std::pair{std::string{"a"}, true});
    CHECK(through({"abcd", "bc"}, "xabcd", size) == std::pair{std::string{"xa"}, true});
    CHECK(through({"bc", "abc"}, "xabcd", size) == std::pair{std::string{"x"}, true});
  }
}

TEST_CASE("nothing that may become a stop string is shown") {
  StopMatcher matcher{{"STOP"}};
  CHECK(matcher.push("a S", true) == "a ");
  CHECK(matcher.push("T", true) == "");
  CHECK(matcher.push("ST", true) == "ST");  // the first two letters were no stop after all
  CHECK(matcher.push("OP", true) == "");
  CHECK(matcher.stopped());
}

TEST_CASE("a hidden special token can be a stop string (B66)") {
  const test::FakeTokenizer tokenizer{{"<end>", "<|im_start|>", "a", "b"}};
  engine::AnswerText with{&tokenizer, {"<|im_start|>"}, false};
  CHECK(with.push(2) == "a");
  CHECK(with.push(1) == "");
  CHECK(with.stopped());
  engine::AnswerText without{&tokenizer, {}, false};
  CHECK(without.push(1) + without.push(2) + without.finish() == "a");
  engine::AnswerText shown{&tokenizer, {}, true};
  CHECK(shown.push(1) + shown.push(2) + shown.finish() == "<|im_start|>a");
}

TEST_CASE("characters split over tokens come whole (B51)") {
  const test::FakeTokenizer tokenizer{{"\xF0\x9F", "\xA6", "\x80", "x"}};
  engine::AnswerText text{&tokenizer, {}, false};
  CHECK(text.push(0) == "");
  CHECK(text.push(1) == "");
  CHECK(text.push(2) == "🦀");
  CHECK(text.push(3) == "x");
  engine::AnswerText broken{&tokenizer, {}, false};
  std::string out;
  for (int i = 0; i < 3; ++i) out += broken.push(0);
  out += broken.finish();
  CHECK(out == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_CASE("a token is said when its text has come out") {
  const test::FakeTokenizer tokenizer{{"one ", "ST", "OP", "x STOP y", "\xF0\x9F", "\xA6", "\x80", "x"}};
  const auto unsaid = [&](const std::vector<std::int32_t>& ids, std::vector<std::string> stops) {
    engine::AnswerText text{&tokenizer, std::move(stops), false};
    std::vector<std::uint32_t> out;
    for (const auto id : ids) {
      text.push(id);
      out.push_back(text.unsaid());
    }
    text.finish();
    out.push_back(text.unsaid());
    CHECK(text.pushed() == ids.size());
    return out;
  };
  using Counts = std::vector<std::uint32_t>;
  CHECK(unsaid({0, 1, 7}, {"STOP"}) == Counts{0, 1, 0, 0});  // held back until the third token says that it is no stop
  CHECK(unsaid({0, 1, 2}, {"STOP"}) == Counts{0, 1, 2, 2});  // a stop string, of two tokens
  CHECK(unsaid({0, 1}, {"STOP"}) == Counts{0, 1, 0});        // the answer ends before it is one
  CHECK(unsaid({0, 3}, {"STOP"}) == Counts{0, 1, 0});        // begins inside a token, which the text has in part
  CHECK(unsaid({0, 4, 5, 6}, {}) == Counts{0, 1, 2, 0, 0});  // parts of a character
  CHECK(unsaid({4, 5}, {}) == Counts{1, 2, 0});              // cut off: U+FFFD
  CHECK(unsaid({0, 4, 5, 6}, {"🦀"}) == Counts{0, 1, 2, 3, 3});
}
