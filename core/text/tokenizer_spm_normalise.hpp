// What SentencePiece does to text before it looks for pieces: its table of replacements, and its rules for spaces.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/hf/charsmap.hpp"
#include "text/hf/trie.hpp"

namespace mekik::text {

struct SpmRules {
  bool dummy_prefix = false;  // a space before the first word (after the last one with `suffix`)
  bool suffix = false;
  bool remove_extra_spaces = false;  // at both ends, and all but one between words
  std::optional<hf::Charsmap> charsmap;
};

// Immutable; any thread. Spaces stay spaces in the result, and U+2581 becomes one: pieces are compared in that spelling.
class SpmNormalizer {
 public:
  // `kept`: texts that are taken over as they are (user-defined pieces).
  SpmNormalizer(SpmRules rules, std::vector<hf::PrefixTrie::Entry> kept) : rules_(std::move(rules)), kept_(std::move(kept)) {}
  // `prefix`: this text may get the dummy prefix. Bytes that are not UTF-8 become U+FFFD.
  std::string run(std::string_view text, bool prefix) const;

 private:
  struct Step {
    std::string_view text;
    std::size_t consumed;
  };
  Step step(std::string_view text) const;

  SpmRules rules_;
  hf::PrefixTrie kept_;
};

}  // namespace mekik::text
