// mekik/text.hpp - text of files: is it UTF-8, how is it written as JSON, how is it shown in a message.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {  // each plugin has its own
#endif
namespace loaders {

namespace text_detail {

using Byte = unsigned char;

inline bool continues(Byte b) { return (b & 0xC0u) == 0x80u; }

// Length of the sequence at `p` of `left` bytes, 0: not valid. Table 3-7 of the Unicode standard.
inline std::size_t sequence(const Byte* p, std::size_t left) {
  const Byte lead = p[0];
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return left > 1 && continues(p[1]) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const Byte low = lead == 0xE0 ? 0xA0 : 0x80, high = lead == 0xED ? 0x9F : 0xBF;
    return left > 2 && p[1] >= low && p[1] <= high && continues(p[2]) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const Byte low = lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xF4 ? 0x8F : 0xBF;
    return left > 3 && p[1] >= low && p[1] <= high && continues(p[2]) && continues(p[3]) ? 4 : 0;
  }
  return 0;
}

inline void append_escape(std::string& out, Byte c) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '\\';
  switch (c) {
    case '"':
      out += '"';
      return;
    case '\\':
      out += '\\';
      return;
    case '\n':
      out += 'n';
      return;
    case '\r':
      out += 'r';
      return;
    case '\t':
      out += 't';
      return;
    default:
      break;
  }
  out += "u00";
  out += kHex[c >> 4];
  out += kHex[c & 15];
}

}  // namespace text_detail

// Length of the longest valid UTF-8 prefix (RFC 3629); text.size() when all of it is valid.
inline std::size_t valid_utf8_prefix(std::string_view text) {
  const auto* p = reinterpret_cast<const text_detail::Byte*>(text.data());
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t length = text_detail::sequence(p + i, text.size() - i);
    if (length == 0) break;
    i += length;
  }
  return i;
}

// "text", quoted and escaped. It must be valid UTF-8.
inline void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<text_detail::Byte>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, plain, i - plain);
    text_detail::append_escape(out, c);
    plain = i + 1;
  }
  out.append(text, plain);
  out += '"';
}

namespace text_detail {

// Characters of several bytes that a terminal obeys instead of showing: C1 controls, marks and overrides of direction, line ends, BOM.
inline bool is_unseen(std::string_view character) {
  if (character.size() == 2) return character[0] == '\xC2' && static_cast<Byte>(character[1]) < 0xA0;
  if (character == "\xEF\xBB\xBF") return true;
  if (character.size() != 3 || character[0] != '\xE2') return false;
  const auto second = static_cast<Byte>(character[1]), third = static_cast<Byte>(character[2]);
  return (second == 0x80 && ((third >= 0x8B && third <= 0x8F) || (third >= 0xA8 && third <= 0xAE))) ||
         (second == 0x81 && third >= 0xA0 && third <= 0xAF);
}

}  // namespace text_detail

// For messages: at most 80 bytes, with what is no visible character escaped byte by byte.
inline std::string shown(std::string_view text) {
  std::string out = "\"";
  std::size_t at = 0;
  while (at < text.size()) {
    const auto* p = reinterpret_cast<const text_detail::Byte*>(text.data()) + at;
    const std::size_t whole = text_detail::sequence(p, text.size() - at), length = whole == 0 ? 1 : whole;
    if (at + length > 80) break;
    const std::string_view character = text.substr(at, length);
    const bool plain = length > 1 ? !text_detail::is_unseen(character) : *p >= 0x20 && *p < 0x7F && *p != '"' && *p != '\\';
    if (plain) out += character;
    else
      for (const char byte : character) text_detail::append_escape(out, static_cast<text_detail::Byte>(byte));
    at += length;
  }
  out += at < text.size() ? "...\"" : "\"";
  return out;
}

}  // namespace loaders
#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
