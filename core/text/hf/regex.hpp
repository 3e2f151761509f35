// Patterns of tokenizer files. They are written for Oniguruma (Ruby's syntax over Unicode); here PCRE2 runs them, after a
// translation that keeps their meaning (regex_syntax.cpp).
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/status.hpp"

namespace mekik::text::hf {

// The same pattern for PCRE2 with UTF, UCP and MULTILINE. What has no counterpart is an error that shows where it is.
Result<std::string> translate_pattern(std::string_view oniguruma);

// Working memory of one caller for any number of patterns.
class MatchScratch {
 public:
  MatchScratch();
  ~MatchScratch();
  MatchScratch(const MatchScratch&) = delete;
  MatchScratch& operator=(const MatchScratch&) = delete;

 private:
  friend class Regex;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Immutable; any thread.
class Regex {
 public:
  // `where` names the pattern's place for the error.
  static Result<Regex> compile(std::string_view oniguruma, std::string_view where);
  static Regex literal(std::string text);
  std::string_view literal_text() const;  // empty: it is a pattern
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  struct Match {
    std::size_t begin = 0, end = 0;
    bool found = false;
  };
  // The first match at or after `from`; what comes before `from` is visible to look-behinds. Throws TextRefused when it would take too
  // long to find out.
  Match search(std::string_view text, std::size_t from, MatchScratch& scratch) const;

  // found(begin, end) for all matches in order. An empty match right after another match does not count.
  template <class Found>
  void each(std::string_view text, MatchScratch& scratch, const Found& found) const {
    std::size_t from = 0, last = text.size() + 1;
    while (from <= text.size()) {
      const Match match = search(text, from, scratch);
      if (!match.found) return;
      if (match.begin == match.end && match.end == last) {
        from = after_character(text, from);
        continue;
      }
      found(match.begin, match.end);
      from = last = match.end;
    }
  }

 private:
  struct Impl;
  explicit Regex(std::unique_ptr<Impl> impl);
  static std::size_t after_character(std::string_view text, std::size_t at);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mekik::text::hf
