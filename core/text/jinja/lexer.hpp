// Template source to tokens, with the whitespace rules of trim_blocks and lstrip_blocks.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.hpp"

namespace mekik::text::jinja {

enum class TokenKind { data, block_begin, block_end, variable_begin, variable_end, name, text, integer, real, op, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  // data, names, operators and numbers as written; texts with their escapes resolved
  Place place;
};

// The whole template. Throws TemplateError with its place.
std::vector<Token> tokenize(std::string_view source);

}  // namespace mekik::text::jinja
