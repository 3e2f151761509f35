// What a code point is, in the versions of Unicode that Hugging Face's `tokenizers` follows (each of its parts another one).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mekik::text::hf {

enum class UnicodeSet : std::uint8_t {
  punctuation,      // and ASCII's symbols: Punctuation, BertPreTokenizer
  numeric,          // N: Digits
  word,             // \w: Whitespace, and added tokens that are single words
  mark_nonspacing,  // Mn: BertNormalizer
  combining_mark,   // M: StripAccents
  control,          // what BertNormalizer removes: Cc, Cf and Co without \t \n \r; U+0000 and U+FFFD
  undecomposed,     // has a decomposition in newer versions at most
  class_0,          // has a combining class in newer versions at most
};

// Sorted begins and ends (exclusive) of the ranges of a set.
std::span<const char32_t> bounds(UnicodeSet set);
bool contains(UnicodeSet set, char32_t c);
bool is_space(char32_t c);  // White_Space

struct LowerPair {
  char32_t from, to;
};
std::span<const LowerPair> later_lower();  // lower case since Unicode 15, sorted
// Appends the lower case of `c` (two code points for U+0130).
void append_lower(std::string& out, char32_t c);

// The code points that joined a general category ("Lo") after Unicode 14: begins and ends, as above.
std::span<const char32_t> later_category(std::string_view category);

struct ScriptRun {
  char32_t begin;
  std::uint8_t script;
};
std::span<const ScriptRun> script_runs();  // sorted, the first begins at 0
// The script as UnicodeScripts sees it (Japanese counts as Han); 0: any.
std::uint8_t script_of(char32_t c);

struct NormalForm {
  bool compatible = false, composed = false;  // NFD, NFC, NFKD, NFKC
};
// A code point of the result, and the byte of the text it came from.
struct PlacedPoint {
  char32_t point;
  std::uint32_t from;
};
// Normalises valid UTF-8 in O(n log n).
std::vector<PlacedPoint> normal_form(std::string_view text, NormalForm form);

// Bytes of the extended grapheme cluster at `at` of valid UTF-8.
std::size_t grapheme_length(std::string_view text, std::size_t at);

}  // namespace mekik::text::hf
