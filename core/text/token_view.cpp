#include "text/token_view.hpp"

#include <cstdio>

#include "base/text.hpp"
#include "text/tokenizer_base.hpp"

namespace mekik::text {

namespace {

std::string named(std::string_view digits) { return "\xE2\x80\xB9" + std::string{digits} + "\xE2\x80\xBA"; }

// Control characters and those that take no room: U+00AD, zero width, directions, U+FEFF, tags.
bool invisible(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c >= 0xFE00 && c <= 0xFE0F) || (c >= 0xE0000 && c <= 0xE01EF);
}

std::string visible_character(std::string_view bytes, char32_t c) {
  char digits[16];
  switch (c) {
    case ' ':
      return "\xC2\xB7";
    case '\n':
      return "\xE2\x8F\x8E";
    case '\t':
      return "\xE2\x87\xA5";
    case '\r':
      return "\xE2\x90\x8D";
    default:
      break;
  }
  if (!invisible(c) && c != 0xA0 && c != 0x3000) return std::string{bytes};
  std::snprintf(digits, sizeof digits, "U+%04X", static_cast<unsigned>(c));
  return named(digits);
}

// What a token is: colours by kind, and the words at the end of its line.
struct Look {
  const char* colour;
  std::string words;
};

Look look_of(const Tokenizer& tokenizer, std::int32_t id, std::size_t index) {
  const std::uint32_t flags = tokenizer.flags(id);
  Look look{index % 2 == 0 ? "\x1B[36m" : "\x1B[33m", ""};
  const auto add = [&](std::string_view word) { look.words += (look.words.empty() ? "" : ", ") + std::string{word}; };
  if ((flags & kTokenSpecial) != 0) {
    look.colour = "\x1B[1;35m";
    add("special");
  }
  if ((flags & kTokenEnd) != 0) add("ends");
  if ((flags & kTokenUnused) != 0) add("unused");
  const std::string_view piece = tokenizer.piece(id);
  if ((flags & kTokenSpecial) == 0 && !is_utf8(piece)) {
    look.colour = "\x1B[31m";
    add("part of a character");
  }
  return look;
}

std::string text_of(const Tokenizer& tokenizer, std::int32_t id) {
  const bool special = (tokenizer.flags(id) & kTokenSpecial) != 0;
  return visible_piece(special ? tokenizer.token(id) : tokenizer.piece(id));
}

}  // namespace

std::string visible_piece(std::string_view piece) {
  std::string out;
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t length = character_length(piece, at);
    const unsigned char first = static_cast<unsigned char>(piece[at]);
    if (length == 1 && first >= 0x80) {
      char digits[4];
      std::snprintf(digits, sizeof digits, "%02X", first);
      out += named(digits);
      ++at;
      continue;
    }
    std::size_t next = at;
    const char32_t c = next_code_point(piece, next);
    out += visible_character(piece.substr(at, length), c);
    at = next;
  }
  return out;
}

std::string token_view(const Tokenizer& tokenizer, std::span<const std::int32_t> ids, bool colour) {
  const auto painted = [&](const std::string& text, const char* with) { return colour ? with + text + "\x1B[0m" : text; };
  std::string line, rows;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Look look = look_of(tokenizer, ids[i], i);
    const std::string text = text_of(tokenizer, ids[i]);
    if (i > 0 && !colour) line += '|';
    line += painted(text, look.colour);
    char id[16];
    std::snprintf(id, sizeof id, "%8d  ", ids[i]);
    rows += id + painted(text, look.colour) + (look.words.empty() ? "" : "  (" + look.words + ")") + '\n';
  }
  return std::to_string(ids.size()) + (ids.size() == 1 ? " token\n" : " tokens\n") + (ids.empty() ? "" : line + "\n" + rows);
}

}  // namespace mekik::text
