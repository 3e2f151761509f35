// The tokens of an answer that its text shows.
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "engine/engine.hpp"

namespace mekik::engine {

// Keeps tokens back until their text has come out, so that a list of tokens has none more than the text.
class SaidTokens {
 public:
  // Those whose text is in the events so far, this one included, and that were not taken yet.
  std::vector<TokenInfo> take(const Event& event) {
    waiting_.insert(waiting_.end(), event.tokens.begin(), event.tokens.end());
    const auto end = waiting_.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(event.unsaid, waiting_.size()));
    std::vector<TokenInfo> out{std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end)};
    waiting_.erase(waiting_.begin(), end);
    return out;
  }

 private:
  std::vector<TokenInfo> waiting_;
};

}  // namespace mekik::engine
