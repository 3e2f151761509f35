// The tables of a tokenizer as GGUF metadata gives them, checked once so that nothing later needs to be.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/status.hpp"
#include "text/tokenizer_hash.hpp"

namespace mekik::text {

enum class TokenType : std::uint8_t { undefined = 0, normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct Vocabulary {
  StringTable tokens;  // as spelled in the file
  TextIndex by_token;
  std::vector<TokenType> types;
  std::vector<float> scores;  // empty when the file has none
  std::int32_t bos = -1, eos = -1, eot = -1, eom = -1, unknown = -1, sep = -1;
  bool add_bos = false, add_eos = false, add_sep = false, add_space_prefix = false;

  std::vector<std::int32_t> more_ends;  // ids of other files that end generation

  std::uint32_t size() const { return static_cast<std::uint32_t>(types.size()); }
  TokenType type(std::int32_t id) const { return types[static_cast<std::size_t>(id)]; }
};

// What the file leaves to the kind of tokenizer when it has no such key.
struct VocabularyDefaults {
  bool add_bos = false, add_eos = false, add_sep = false, add_space_prefix = false, needs_scores = false;
};

// Errors name the key, the index and the value. Tokens are distinct, of at most 64 KiB, and at most 4 Mi of them.
Result<Vocabulary> read_vocabulary(const json::object& metadata, const VocabularyDefaults& defaults);

// The string at `key`, or an empty one when there is none; another type is an error.
Result<std::string> optional_text(const json::object& metadata, std::string_view key);

// The byte that "<0x0A>" spells, or -1.
int spelled_byte(std::string_view token);

// Every token that ends generation: the eos, eot and eom ids of the metadata, and control tokens with a well-known name
// (kEndTokens in the .cpp). Sorted.
std::vector<std::int32_t> end_tokens(const Vocabulary& vocabulary);

}  // namespace mekik::text
