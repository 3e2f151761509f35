// The few fields of a SentencePiece model file that tokenizers are made of.
// Format: https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace mekik::convert {

struct SentencePiece {
  struct Piece {
    std::string text;
    float score = 0;
    std::int32_t type = 1;  // NORMAL 1, UNKNOWN 2, CONTROL 3, USER_DEFINED 4, UNUSED 5, BYTE 6: GGUF's numbers are the same
  };
  enum Model : std::uint32_t { kUnigram = 1, kBpe = 2 };
  std::vector<Piece> pieces;
  std::uint32_t model = kUnigram;
  bool byte_fallback = false, add_dummy_prefix = true, remove_extra_whitespaces = true;
  std::string precompiled_charsmap;
};

Result<SentencePiece> read_sentencepiece(std::string_view bytes);
std::string write_sentencepiece(const SentencePiece& model);
Result<std::string> from_base64(std::string_view text);

}  // namespace mekik::convert
