#include "program/expr.hpp"

#include <cctype>
#include <charconv>
#include <utility>

#include "base/text.hpp"

namespace mekik::program {

namespace {

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool word_char(char c) { return letter(c) || digit(c) || c == '_'; }

config::Origin moved(config::Origin origin, bool exact, std::uint32_t offset) {
  if (exact && origin.line != 0) origin.column += 1 + offset;  // 1: the opening quote
  return origin;
}

// Recursive descent over the grammar; one method a rule.
class Parser {
 public:
  Parser(std::string_view text, config::Origin origin, bool exact, std::uint32_t base)
      : text_{text}, origin_{std::move(origin)}, exact_{exact}, base_{base} {
    if (text.size() > kMaxExpressionBytes) wrong(0, "an expression may have at most 4096 bytes; split it into named steps");
  }

  Expr whole() {
    Expr node = either();
    skip();
    if (at_ < text_.size()) wrong(at_, "unexpected " + mekik::quoted(text_.substr(at_, 12)) + " after the expression");
    return node;
  }

  std::vector<Target> targets() {
    std::vector<Target> out;
    do {
      skip();
      Target target{{}, {}, base_ + position()};
      target.name = identifier("a name to assign to");
      if (take("[")) {
        target.index = either();
        need("]");
      }
      out.push_back(std::move(target));
    } while (take(","));
    need("=");
    return out;
  }

 private:
  [[noreturn]] void wrong(std::size_t at, std::string message) const {
    throw Mistake{moved(origin_, exact_, base_ + static_cast<std::uint32_t>(at)), std::move(message), {}};
  }
  std::uint32_t position() const { return static_cast<std::uint32_t>(at_); }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  // Words end at a word's edge, so that "order" is not "or" and "der".
  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    if (word_char(token[0]) && at_ + token.size() < text_.size() && word_char(text_[at_ + token.size()])) return false;
    at_ += token.size();
    return true;
  }
  void need(std::string_view token) {
    if (!take(token)) {
      const std::string found = at_ < text_.size() ? mekik::quoted(text_.substr(at_, 12)) : std::string{"the end of the text"};
      wrong(at_, "expected \"" + std::string{token} + "\", found " + found);
    }
  }
  std::string identifier(std::string_view what) {
    skip();
    const std::size_t begin = at_;
    if (at_ >= text_.size() || !letter(text_[at_])) wrong(at_, "expected " + std::string{what});
    while (at_ < text_.size() && word_char(text_[at_])) ++at_;
    return std::string{text_.substr(begin, at_ - begin)};
  }

  Expr node(Expr::Kind kind, std::size_t at) const {
    Expr out;
    out.kind = kind;
    out.at = base_ + static_cast<std::uint32_t>(at);
    return out;
  }
  Expr binary(std::string op, std::size_t at, Expr left, Expr right) const {
    Expr out = node(Expr::Kind::binary, at);
    out.text = std::move(op);
    out.args.push_back(std::move(left));
    out.args.push_back(std::move(right));
    return out;
  }
  struct Deeper {
    Parser& parser;
    explicit Deeper(Parser& p) : parser{p} {
      if (++parser.depth_ > kMaxExpressionDepth) parser.wrong(parser.at_, "an expression may be at most 64 deep");
    }
    ~Deeper() { --parser.depth_; }
  };

  Expr either() {
    const Deeper deeper{*this};
    Expr left = both();
    for (;;) {
      skip();
      const std::size_t at = at_;
      if (!take("or")) return left;
      left = binary("or", at, std::move(left), both());
    }
  }
  Expr both() {
    Expr left = negation();
    for (;;) {
      skip();
      const std::size_t at = at_;
      if (!take("and")) return left;
      left = binary("and", at, std::move(left), negation());
    }
  }
  Expr negation() {
    skip();
    const std::size_t at = at_;
    if (!take("not")) return comparison();
    const Deeper deeper{*this};
    Expr out = node(Expr::Kind::logical_not, at);
    out.args.push_back(negation());
    return out;
  }
  Expr comparison() {
    Expr left = sum();
    skip();
    const std::size_t at = at_;
    for (const char* op : {"==", "!=", "<=", ">=", "<", ">", "in"})
      if (take(op)) return binary(op, at, std::move(left), sum());
    if (take("not")) {
      need("in");
      return binary("not in", at, std::move(left), sum());
    }
    return left;
  }
  Expr sum() {
    Expr left = term();
    for (;;) {
      skip();
      const std::size_t at = at_;
      if (take("+")) left = binary("+", at, std::move(left), term());
      else if (take("-")) left = binary("-", at, std::move(left), term());
      else return left;
    }
  }
  Expr term() {
    Expr left = unary();
    for (;;) {
      skip();
      const std::size_t at = at_;
      if (take("*")) left = binary("*", at, std::move(left), unary());
      else if (take("//")) left = binary("//", at, std::move(left), unary());
      else if (take("/")) left = binary("/", at, std::move(left), unary());
      else if (take("%")) left = binary("%", at, std::move(left), unary());
      else return left;
    }
  }
  Expr unary() {
    skip();
    const std::size_t at = at_;
    if (!take("-")) return postfix();
    Expr out = node(Expr::Kind::negate, at);
    out.args.push_back(postfix());
    return out;
  }
  Expr postfix() {
    Expr what = primary();
    for (;;) {
      skip();
      const std::size_t at = at_;
      if (!take("[")) return what;
      Expr out = node(Expr::Kind::index, at);
      out.args.push_back(std::move(what));
      out.args.push_back(either());
      need("]");
      what = std::move(out);
    }
  }
  Expr primary() {
    skip();
    const std::size_t at = at_;
    if (at >= text_.size()) wrong(at, "expected a value, found the end of the text");
    const char c = text_[at];
    if (digit(c)) return number();
    if (c == '\'') return literal();
    if (take("(")) {
      Expr inner = either();
      need(")");
      return inner;
    }
    if (take("[")) return list(at);
    if (!letter(c)) wrong(at, "expected a value, found " + mekik::quoted(text_.substr(at, 12)));
    const std::string word = identifier("a value");
    if (word == "none") return node(Expr::Kind::none, at);
    if (word == "true" || word == "false") {
      Expr out = node(Expr::Kind::boolean, at);
      out.boolean = word == "true";
      return out;
    }
    for (const char* keyword : {"and", "or", "not", "in"})
      if (word == keyword) wrong(at, "\"" + word + "\" stands where a value is expected");
    if (take("(")) return call(word, at);
    Expr out = node(Expr::Kind::name, at);
    out.text = word;
    return out;
  }
  Expr list(std::size_t at) {
    Expr out = node(Expr::Kind::list, at);
    if (take("]")) return out;
    do out.args.push_back(either());
    while (take(","));
    need("]");
    return out;
  }
  Expr call(std::string name, std::size_t at) {
    Expr out = node(Expr::Kind::call, at);
    out.text = std::move(name);
    if (take(")")) return out;
    do {
      std::string argument_name = argument();
      if (argument_name.empty() && !out.names.empty() && !out.names.back().empty()) wrong(at_, "a positional argument follows a named one");
      out.names.push_back(std::move(argument_name));
      out.args.push_back(either());
    } while (take(","));
    need(")");
    return out;
  }
  // "name =" in front of an argument's value, or nothing.
  std::string argument() {
    skip();
    const std::size_t begin = at_;
    if (at_ < text_.size() && letter(text_[at_])) {
      std::string word = identifier("an argument");
      skip();
      if (at_ < text_.size() && text_[at_] == '=' && text_.substr(at_, 2) != "==") {
        ++at_;
        return word;
      }
    }
    at_ = begin;
    return {};
  }
  Expr literal() {
    const std::size_t begin = ++at_;
    const std::size_t end = text_.find('\'', begin);
    if (end == std::string_view::npos) wrong(begin - 1, "a text without its closing quote");
    Expr out = node(Expr::Kind::text, begin - 1);
    out.text = std::string{text_.substr(begin, end - begin)};
    at_ = end + 1;
    return out;
  }
  Expr number() {
    const std::size_t begin = at_;
    bool real = false;
    const auto digits = [&] {
      const std::size_t from = at_;
      while (at_ < text_.size() && digit(text_[at_])) ++at_;
      if (at_ == from) wrong(begin, "a number needs digits here");
    };
    digits();
    if (at_ < text_.size() && text_[at_] == '.') {
      real = true;
      ++at_;
      digits();
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      real = true;
      ++at_;
      if (at_ < text_.size() && text_[at_] == '-') ++at_;
      digits();
    }
    Expr out = node(real ? Expr::Kind::real : Expr::Kind::integer, begin);
    const char* first = text_.data() + begin;
    const char* last = text_.data() + at_;
    const auto error = real ? std::from_chars(first, last, out.real).ec : std::from_chars(first, last, out.integer).ec;
    if (error != std::errc{} || (at_ < text_.size() && word_char(text_[at_]))) wrong(begin, "this is no number that fits");
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  config::Origin origin_;
  bool exact_;
  std::uint32_t base_;
  std::uint32_t depth_ = 0;

 public:
  std::size_t consumed() const { return at_; }
};

Expr constant_node(const config::Value& value) {
  Expr out;
  switch (value.kind) {
    case config::Kind::boolean:
      out.kind = Expr::Kind::boolean;
      out.boolean = value.boolean;
      return out;
    case config::Kind::integer:
      out.kind = Expr::Kind::integer;
      out.integer = value.integer;
      return out;
    case config::Kind::real:
      out.kind = Expr::Kind::real;
      out.real = value.real;
      return out;
    default:
      break;
  }
  throw Mistake{
      value.origin, std::string{"expected an expression (a text, a number or a list of them), found "} + config::kind_name(value.kind), {}};
}

void check_plain(const config::Value& value) {
  if (!value.plain_text)
    throw Mistake{value.origin, "an expression must be a one-line text in double quotes without escapes",
                  "text inside an expression has single quotes"};
}

}  // namespace

config::Origin Expression::at(const Expr& node) const { return moved(origin, exact, node.at); }

Expression read_expression(const config::Value& value) {
  Expression out;
  out.origin = value.origin;
  if (value.kind == config::Kind::text) {
    check_plain(value);
    out.text = value.text;
    out.root = Parser{value.text, value.origin, true, 0}.whole();
    return out;
  }
  out.exact = false;
  if (value.kind != config::Kind::list) {
    out.root = constant_node(value);
    return out;
  }
  out.root.kind = Expr::Kind::list;
  for (const config::Value& item : value.list) out.root.args.push_back(read_expression(item).root);
  return out;
}

Line read_line(const config::Value& value) {
  if (value.kind != config::Kind::text)
    throw Mistake{value.origin, std::string{"expected a line of the program (a text), found "} + config::kind_name(value.kind), {}};
  check_plain(value);
  if (value.text.size() > kMaxExpressionBytes)
    throw Mistake{value.origin, "a line may have at most 4096 bytes; split it into named steps", {}};
  Line out;
  Parser left{value.text, value.origin, true, 0};
  out.targets = left.targets();
  out.value.origin = value.origin;
  out.value.text = value.text;
  const std::size_t begin = left.consumed();
  out.value.root = Parser{std::string_view{value.text}.substr(begin), value.origin, true, static_cast<std::uint32_t>(begin)}.whole();
  return out;
}

Expression read_placeholder(std::string_view text, const config::Origin& origin, bool exact, std::uint32_t offset) {
  Expression out;
  out.origin = origin;
  out.exact = exact;
  out.text = std::string{text};
  out.root = Parser{text, origin, exact, offset}.whole();
  return out;
}

}  // namespace mekik::program
