// SentencePiece's precompiled normalisation table: a double array of prefixes, and what replaces each.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace mekik::text::hf {

// Immutable; any thread.
class Charsmap {
 public:
  // `blob`: the size of the double array in bytes (4 bytes, little-endian), the array, and zero-terminated replacements.
  static Result<Charsmap> read(std::string_view blob);

  struct Match {
    std::size_t length;
    std::string_view replacement;  // lives as long as this
  };
  std::optional<Match> longest(std::string_view text) const;
  std::optional<Match> shortest(std::string_view text) const;  // as Hugging Face's library does

 private:
  // found(length, value) for every entry that begins the text; false stops.
  template <class Found>
  void prefixes(std::string_view text, const Found& found) const;
  std::string_view replacement(std::uint32_t value) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

// Standard base64, padded or not. Errors name the first wrong byte.
Result<std::string> decode_base64(std::string_view text);

}  // namespace mekik::text::hf
