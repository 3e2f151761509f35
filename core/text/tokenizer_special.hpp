// Finds tokens that are matched in the text before any merging: control tokens, and what the model's authors added.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer_hash.hpp"

namespace mekik::text {

// A trie over bytes. Immutable after the last add; any thread.
class SpecialMatcher {
 public:
  struct Match {
    std::int32_t id = -1;
    std::size_t length = 0;
  };

  // `bytes`: an upper bound for the bytes of all texts.
  explicit SpecialMatcher(std::size_t bytes);
  // `anywhere`: also in text that is not trusted. Empty texts are not added.
  void add(std::string_view text, std::int32_t id, bool anywhere);
  // The longest token at the start of `text`; tokens that need trust must end within the first `trusted` bytes.
  Match longest(std::string_view text, std::size_t trusted) const;
  bool may_start(char c) const { return roots_[static_cast<unsigned char>(c)] != 0; }

 private:
  struct Node {
    std::int32_t id = -1;
    bool anywhere = false;
  };
  std::array<std::uint32_t, 256> roots_{};
  std::vector<Node> nodes_{1};         // 0: none
  PairIndex<std::uint32_t> children_;  // (node, byte) -> node
};

}  // namespace mekik::text
