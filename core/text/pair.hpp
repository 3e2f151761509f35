// A query and a document as one prompt, for models that score pairs.
#pragma once
#include <string_view>

#include "base/status.hpp"
#include "text/tokenizer.hpp"

namespace mekik::text {

// `pair_template`: text with {query} and {document}, whose own special tokens are recognised; those in the two texts are not. Empty: as
// the tokenizer joins pairs. No types: all are 0.
TypedTokens encode_pair(const Tokenizer& tokenizer, std::string_view pair_template, std::string_view query, std::string_view document);
// Whether a template names both; the message says what is missing.
Status check_pair_template(std::string_view pair_template);

}  // namespace mekik::text
