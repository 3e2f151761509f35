// A query and a document as one prompt, for models that score pairs.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "text/tokenizer.hpp"

namespace mekik::text {

struct PairPrompt {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> types;  // of the tokens, which of the two they are of; empty: all 0
};

// `pair_template`: text with {query} and {document}, whose own special tokens are recognised; those in the two texts are not. Empty: as
// the tokenizer joins pairs; Code::unsupported where it has no way to.
Result<PairPrompt> encode_pair(const Tokenizer& tokenizer, std::string_view pair_template, std::string_view query,
                               std::string_view document);
// Whether a template names both; the message says what is missing.
Status check_pair_template(std::string_view pair_template);

}  // namespace mekik::text
