// Tokens that are found in the text as they are, before the model sees it: the "added_tokens" of a tokenizer.json.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/hf/text.hpp"
#include "text/hf/trie.hpp"

namespace mekik::text::hf {

struct AddedToken {
  std::string content;
  std::int32_t id = -1;
  bool single_word = false, lstrip = false, rstrip = false, normalized = true, special = false;
  std::string pattern;  // `content` after normalisation, where it is `normalized`
};

// A part of the original text up to `end`; special tokens are recognised in trusted ones only.
struct Stretch {
  std::size_t end;
  bool trusted;
};

// Finds the tokens of one pass: those that are normalised, or those that are not. Immutable; any thread.
class AddedMatcher {
 public:
  AddedMatcher(std::span<const AddedToken> tokens, bool normalized);
  bool empty() const { return count_ == 0; }

  struct Found {
    std::size_t begin, end;
    std::int32_t id;  // -1: the text between tokens
  };
  // All of the text as tokens and what is between them. Leftmost tokens first, of those the longest; matches of special tokens in
  // text that is not trusted stay text, but hide shorter ones, as with the library's encode_special_tokens. Tokens may overlap
  // where one takes the spaces after it. Linear in the text (times the longest token).
  void find(const Text& text, std::span<const AddedToken> tokens, std::span<const Stretch> stretches, std::vector<Found>& found) const;

 private:
  struct Match {
    std::int32_t token = -1;
    std::size_t length = 0;
  };
  PrefixTrie trie_;  // of indices into the tokens
  std::array<bool, 256> starts_{};
  std::size_t count_ = 0;
};

}  // namespace mekik::text::hf
