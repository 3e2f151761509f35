// What the parser makes and the renderer walks.
#pragma once
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "text/jinja/value.hpp"

namespace mekik::text::jinja {

struct Expr;
struct Node;
using ExprPtr = std::unique_ptr<Expr>;
using Body = std::vector<std::unique_ptr<Node>>;

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
};

enum class ExprKind {
  constant,   // constant
  name,       // text
  list,       // items
  tuple,      // items
  dict,       // items: key, value, key, value, ...
  attribute,  // items[0] . text
  subscript,  // items[0] [items[1]]
  slice,      // items[0] [items[1] : items[2] : items[3]], any of them absent
  call,       // items[0] (arguments)
  filter,     // items[0] | text (arguments)
  test,       // items[0] is text (arguments)
  negate,
  plus,
  invert,      // not items[0]
  all,         // items joined by and
  any,         // items joined by or
  chain,       // items[0] ops[0] items[1] ops[1] ...: arithmetic of one precedence, from the left
  comparison,  // likewise, each neighbour compared
  choice,      // items[0] if items[1] else items[2] (may be absent)
};

struct Expr {
  ExprKind kind = ExprKind::constant;
  Place place;
  Value constant;
  std::string text;
  std::vector<ExprPtr> items;
  std::vector<std::string> ops;
  Arguments arguments;
};

enum class NodeKind { data, output, branch, loop, set, set_block, macro, call_block, filter_block, scope, break_loop, continue_loop };

struct Branch {
  ExprPtr condition;  // none: else
  Body body;
};

struct Node {
  NodeKind kind = NodeKind::data;
  Place place;
  Text data;                         // data
  ExprPtr value;                     // output, set, loop (what it runs over), call_block (the call), filter_block (the filters on nothing)
  std::vector<Branch> branches;      // branch
  std::vector<std::string> targets;  // set, loop: names; set of an attribute: {object, attribute}
  bool attribute = false;            // set: targets are object and attribute
  bool unpack = false;               // set, loop: the value is taken apart
  ExprPtr condition;                 // loop: "if"
  bool recursive = false;            // loop
  bool tells_loop = false;           // loop: something in its body is called "loop"
  std::string name;                  // macro
  std::vector<std::pair<std::string, ExprPtr>> parameters;  // macro, call_block; defaults may be absent. scope (with): names and values
  Body body, otherwise;                                     // otherwise: of a loop that ran over nothing
};

// Throws TemplateError with its place. The result may be rendered any number of times.
Body parse(std::string_view source);

// The variables of the context that a render may read: no attributes, filters, tests or named arguments, and nothing that has certainly
// been set before. What is set in one branch only, or is a parameter of a macro somewhere, is still one of them where it is read elsewhere.
std::unordered_set<std::string> free_names(const Body& body);

}  // namespace mekik::text::jinja
