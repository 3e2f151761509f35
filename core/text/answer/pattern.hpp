// Patterns of answers: "<tool_call>{name} {fields}</tool_call>". Literals with slots between them.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace mekik::text {

enum class Slot {
  literal,
  // Short ones, of a head or a field.
  name,   // of a function: letters, digits, _ - .
  id,     // of a call, as the answer spells it
  key,    // of an argument
  type,   // tells whether an argument is a text: "true", "string"
  skip,   // anything up to the literal behind it, on one line
  value,  // of an argument
  // Bodies, one a pattern.
  text,    // anything up to what follows
  json,    // the arguments, a JSON value
  call,    // JSON objects, or arrays of them, with a name and arguments in each
  fields,  // arguments, each as the field pattern says
  python,  // calls as Python writes them: [f(a=1), g(b='x')]
  dict,    // an object with bare keys and quotes of its own
  calls,   // one or several calls as other patterns describe them
};
bool is_body(Slot slot);

struct Piece {
  Slot slot = Slot::literal;
  std::string text;  // of a literal
};

// White space in a literal means: there may be some. So it does around every slot but {text} and {value}.
struct Pattern {
  std::vector<Piece> head, tail;
  Slot body = Slot::text;
};

// Errors say what is wrong with the pattern. A pattern of a part has one body; a field's has {key} before {value}, which is its body.
Result<Pattern> parse_pattern(std::string_view text);

// What a list of pieces found at a place of the text.
struct Match {
  enum State { no, maybe, yes };  // maybe: more text decides
  State state = no;
  std::size_t end = 0;  // behind the last piece
  std::string name, id, key, type;
};

inline constexpr std::size_t kMaxHeadBytes = 512;

// Matches at `at`. `final`: no more text comes, so it is never maybe. `key`: what {key} in the pieces stands for, where it is known.
Match match_pieces(std::span<const Piece> pieces, std::string_view text, std::size_t at, bool final, std::string_view key = {});
// One literal, without a Match around it.
Match::State match_literal(std::string_view literal, std::string_view text, std::size_t& at, bool final);

bool is_space(char c);
std::size_t skip_space(std::string_view text, std::size_t at);

}  // namespace mekik::text
