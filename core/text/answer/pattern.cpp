#include "text/answer/pattern.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"

namespace mekik::text {

namespace {

constexpr std::array<std::pair<std::string_view, Slot>, 13> kSlots{{{"name", Slot::name},
                                                                    {"id", Slot::id},
                                                                    {"key", Slot::key},
                                                                    {"type", Slot::type},
                                                                    {"skip", Slot::skip},
                                                                    {"value", Slot::value},
                                                                    {"text", Slot::text},
                                                                    {"json", Slot::json},
                                                                    {"call", Slot::call},
                                                                    {"fields", Slot::fields},
                                                                    {"python", Slot::python},
                                                                    {"dict", Slot::dict},
                                                                    {"calls", Slot::calls}}};
constexpr std::size_t kMaxSkip = 160, kMaxName = 128;

std::optional<Slot> slot_of(std::string_view word) {
  for (const auto& [name, slot] : kSlots)
    if (name == word) return slot;
  return std::nullopt;
}

bool is_name_character(char c, Slot slot) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' ||
         (slot == Slot::id && c == ':');
}

Match::State match_word(Slot slot, std::string_view text, std::size_t& at, bool final, std::string& out) {
  at = skip_space(text, at);
  std::size_t end = at;
  while (end < text.size() && end - at <= kMaxName && is_name_character(text[end], slot)) ++end;
  if (end == text.size() && !final) return Match::maybe;
  if (end == at || end - at > kMaxName) return Match::no;
  out = text.substr(at, end - at);
  at = end;
  return Match::yes;
}

std::string_view first_word(std::string_view literal) {
  literal.remove_prefix(skip_space(literal, 0));
  return literal.substr(0, literal.find_first_of(" \n"));
}

// Up to the literal of rest[0], which is left to be matched; no later literal may stand before it.
Match::State match_until(std::span<const Piece> rest, std::string_view text, std::size_t& at, bool final, std::string& out) {
  const std::string_view next = first_word(rest.empty() ? std::string_view{} : rest[0].text);
  const std::size_t found = text.find(next, at);
  std::size_t stop = text.find('\n', at);
  for (std::size_t i = 1; i < rest.size(); ++i)
    if (rest[i].slot == Slot::literal) stop = std::min(stop, text.find(first_word(rest[i].text), at));
  if (found == std::string_view::npos) {
    if (final || stop != std::string_view::npos || text.size() - at > kMaxSkip + next.size()) return Match::no;
    return Match::maybe;
  }
  if (stop < found || found - at > kMaxSkip) return Match::no;
  out = text.substr(at, found - at);
  at = found;
  return Match::yes;
}

Status misplaced(std::string_view what) { return invalid("the pattern " + std::string{what}); }

}  // namespace

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

bool is_body(Slot slot) { return slot >= Slot::value; }

Result<Pattern> parse_pattern(std::string_view text) {
  Pattern out;
  bool behind = false;  // the body
  std::string literal;
  const auto flush = [&] {
    if (!literal.empty()) (behind ? out.tail : out.head).push_back({Slot::literal, literal});
    literal.clear();
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t end = text[at] == '{' ? text.find('}', at) : std::string_view::npos;
    const auto slot = end == std::string_view::npos ? std::nullopt : slot_of(text.substr(at + 1, end - at - 1));
    if (!slot) {
      literal += text[at];
      continue;
    }
    flush();
    at = end;
    if (is_body(*slot)) {
      if (behind) return misplaced("has two bodies");
      out.body = *slot;
      behind = true;
      continue;
    }
    std::vector<Piece>& to = behind ? out.tail : out.head;
    if (behind && *slot != Slot::key) return misplaced("has a slot behind its body");
    to.push_back({*slot, {}});
  }
  flush();
  if (!behind) return misplaced("has no body, such as {text} or {call}");
  for (std::size_t i = 0; i < out.head.size(); ++i)
    if (const Slot slot = out.head[i].slot; (slot == Slot::skip || slot == Slot::key || slot == Slot::type) &&
                                            (i + 1 == out.head.size() || out.head[i + 1].slot != Slot::literal))
      return misplaced("needs a literal behind {skip}, {key} and {type}");
  return out;
}

Match::State match_literal(std::string_view literal, std::string_view text, std::size_t& at, bool final) {
  std::size_t i = 0;
  while ((i = skip_space(literal, i)) < literal.size()) {
    if (i > 0) at = skip_space(text, at);
    for (; i < literal.size() && !is_space(literal[i]); ++i, ++at) {
      if (at >= text.size()) return final ? Match::no : Match::maybe;
      if (text[at] != literal[i]) return Match::no;
    }
  }
  return Match::yes;
}

Match match_pieces(std::span<const Piece> pieces, std::string_view text, std::size_t at, bool final, std::string_view key) {
  Match out;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (i > 0) at = skip_space(text, at);
    std::string skipped;
    if (piece.slot == Slot::literal) out.state = match_literal(piece.text, text, at, final);
    else if (piece.slot == Slot::name) out.state = match_word(Slot::name, text, at, final, out.name);
    else if (piece.slot == Slot::id) out.state = match_word(Slot::id, text, at, final, out.id);
    else if (piece.slot == Slot::key && !key.empty()) out.state = match_literal(key, text, at, final);
    else
      out.state = match_until(pieces.subspan(i + 1), text, at, final,
                              piece.slot == Slot::key    ? out.key
                              : piece.slot == Slot::type ? out.type
                                                         : skipped);
    // What closes something names no argument.
    if (out.state == Match::yes && (out.key.starts_with('/') || out.key.find('<') != std::string::npos)) out.state = Match::no;
    if (out.state != Match::yes) return out;
  }
  out.state = Match::yes;
  out.end = at;
  return out;
}

}  // namespace mekik::text
