// What happened to a text, for people: its tokens with everything visible.
#pragma once
#include <span>
#include <string>

#include "text/tokenizer.hpp"

namespace mekik::text {

// A piece with its spaces as a middle dot, line ends, tabs and other invisible characters named, and bytes that are no whole
// character as ‹E2›.
std::string visible_piece(std::string_view piece);

// The text cut at its tokens, then one line for each: its id, its piece and what is special about it. `colour`: with ANSI colours.
std::string token_view(const Tokenizer& tokenizer, std::span<const std::int32_t> ids, bool colour);

}  // namespace mekik::text
