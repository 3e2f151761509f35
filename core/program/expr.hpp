// The expressions of architecture pages as trees. Grammar: docs/architecture-pages.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/value.hpp"

namespace mekik::program {

// A mistake in a page or in what it meets in a model. Thrown inside core/program only; load() and build() turn it into diagnostics,
// so that a page with many mistakes shows all of them.
struct Mistake {
  config::Origin at;
  std::string message, hint;
  bool absent = false;  // a tensor that should be there is not
};
// A line that depends on a value whose own line already failed: nothing more to say.
struct Poisoned {};

struct Expr {
  enum class Kind { none, boolean, integer, real, text, name, list, call, index, negate, logical_not, binary };
  Kind kind = Kind::none;
  std::uint32_t at = 0;  // byte offset in the expression's text
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;                // name, call: the identifier; text: its characters; binary: the operator
  std::vector<Expr> args;          // list, call, index (what, index), negate, logical_not, binary (left, right)
  std::vector<std::string> names;  // call: one an argument, empty for a positional one
};

struct Expression {
  Expr root;
  std::string text;
  config::Origin origin;  // of the TOML value
  bool exact = true;      // columns inside the text can be told from its origin
  config::Origin at(const Expr& node) const;
};

struct Target {
  std::string name;
  std::optional<Expr> index;  // deep[i] = ...
  std::uint32_t at = 0;
};

struct Line {
  std::vector<Target> targets;
  Expression value;  // its origin and text are those of the whole line
};

inline constexpr std::size_t kMaxExpressionBytes = 4096;
inline constexpr std::uint32_t kMaxExpressionDepth = 64;

// A TOML value in the place of an expression: a text is parsed, numbers and booleans stand for themselves, a list is a list of such.
// Throws Mistake.
Expression read_expression(const config::Value& value);
Line read_line(const config::Value& value);
// An expression inside a name, "{...}". `origin` is that of the whole name, `offset` where the expression begins in it.
Expression read_placeholder(std::string_view text, const config::Origin& origin, bool exact, std::uint32_t offset);

// Calls `visit` for every identifier that is not a function's or an argument's name.
template <class Visit>
void for_each_name(const Expr& node, Visit&& visit) {
  if (node.kind == Expr::Kind::name) visit(node);
  for (const Expr& arg : node.args) for_each_name(arg, visit);
}

}  // namespace mekik::program
