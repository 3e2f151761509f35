// Stop strings over token borders.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace mekik::engine {

// Text goes in as tokens give it and comes out once it can no longer be part of a stop string. The occurrence that is complete first
// ends the answer (of several that end at the same byte, the one that starts first), so the result does not depend on how the text was cut
// into tokens. Hidden text (special tokens that the reader does not see) takes part in the search and never comes out.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);  // none of them empty
  // The text that is certain now. After a match stopped() is true, and no more text may be pushed.
  std::string push(std::string_view text, bool visible);
  std::string finish();  // what was held back
  bool stopped() const { return stopped_; }

 private:
  std::string take(std::size_t bytes);  // the visible part of the first bytes held, which are dropped
  std::size_t searched_ = 0;            // no stop string ends in the first bytes held
  std::vector<std::string> stops_;
  std::string held_;
  std::vector<bool> visible_;  // per byte of held_
  bool stopped_ = false;
};

}  // namespace mekik::engine
