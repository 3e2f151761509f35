// The parser's expressions, loosest binding first.
#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.hpp"
#include "text/jinja/builtins.hpp"
#include "text/jinja/parser.hpp"

namespace mekik::text::jinja {

bool Parser::accept(std::string_view op) {
  if (!peek_op(op)) return false;
  next();
  return true;
}

bool Parser::accept_name(std::string_view word) {
  if (!peek_name(word)) return false;
  next();
  return true;
}

void Parser::expect(TokenKind kind, std::string_view shown) {
  if (peek().kind != kind) fail("expected \"" + std::string{shown} + "\", found " + quoted(peek().text));
  next();
}

void Parser::expect_op(std::string_view op) {
  if (!accept(op)) fail("expected \"" + std::string{op} + "\", found " + quoted(peek().text));
}

std::string Parser::name(std::string_view what) {
  if (peek().kind != TokenKind::name) fail("expected " + std::string{what} + ", found " + quoted(peek().text));
  return next().text;
}

ExprPtr Parser::make(ExprKind kind, Place place) {
  if (++nodes_ > kMaxNodes) fail_at("the template is too long", place);
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->place = place;
  return expr;
}

ExprPtr Parser::tuple_expression(bool with_choice) {
  ExprPtr first = expression(with_choice);
  if (!peek_op(",")) return first;
  ExprPtr tuple = make(ExprKind::tuple, first->place);
  tuple->items.push_back(std::move(first));
  while (accept(",")) {
    const TokenKind kind = peek().kind;
    if (kind == TokenKind::block_end || kind == TokenKind::variable_end || peek_op(")") || peek_op("=")) break;
    tuple->items.push_back(expression(with_choice));
  }
  return tuple;
}

ExprPtr Parser::expression(bool with_choice) {
  const Nesting nesting{*this};
  ExprPtr value = disjunction();
  if (!with_choice || !peek_name("if")) return value;
  ExprPtr choice = make(ExprKind::choice, next().place);
  choice->items.push_back(std::move(value));
  choice->items.push_back(disjunction());
  choice->items.push_back(accept_name("else") ? expression() : nullptr);
  return choice;
}

ExprPtr Parser::disjunction() {
  ExprPtr first = conjunction();
  if (!peek_name("or")) return first;
  ExprPtr any = make(ExprKind::any, first->place);
  any->items.push_back(std::move(first));
  while (accept_name("or")) any->items.push_back(conjunction());
  return any;
}

ExprPtr Parser::conjunction() {
  ExprPtr first = negation();
  if (!peek_name("and")) return first;
  ExprPtr all = make(ExprKind::all, first->place);
  all->items.push_back(std::move(first));
  while (accept_name("and")) all->items.push_back(negation());
  return all;
}

ExprPtr Parser::negation() {
  if (!peek_name("not")) return comparison();
  const Nesting nesting{*this};
  ExprPtr invert = make(ExprKind::invert, next().place);
  invert->items.push_back(negation());
  return invert;
}

ExprPtr Parser::comparison() {
  ExprPtr first = chain(0);
  ExprPtr out;
  for (;;) {
    std::string op;
    const Token& token = peek();
    if (token.kind == TokenKind::op &&
        (token.text == "==" || token.text == "!=" || token.text == "<" || token.text == "<=" || token.text == ">" || token.text == ">="))
      op = next().text;
    else if (accept_name("in")) op = "in";
    else if (peek_name("not") && peek(1).kind == TokenKind::name && peek(1).text == "in") {
      next();
      next();
      op = "not in";
    }
    if (op.empty()) return out ? std::move(out) : std::move(first);
    if (!out) {
      out = make(ExprKind::comparison, first->place);
      out->items.push_back(std::move(first));
    }
    out->ops.push_back(std::move(op));
    out->items.push_back(chain(0));
  }
}

ExprPtr Parser::chain(std::size_t level) {
  static const std::array<std::vector<std::string>, 3> kLevels{{{"+", "-"}, {"~"}, {"*", "/", "//", "%"}}};
  if (level == kLevels.size()) return power();
  ExprPtr first = chain(level + 1);
  ExprPtr out;
  for (;;) {
    const auto& ops = kLevels[level];
    if (peek().kind != TokenKind::op || std::find(ops.begin(), ops.end(), peek().text) == ops.end())
      return out ? std::move(out) : std::move(first);
    if (!out) {
      out = make(ExprKind::chain, peek().place);
      out->items.push_back(std::move(first));
    }
    out->ops.push_back(next().text);
    out->items.push_back(chain(level + 1));
  }
}

ExprPtr Parser::power() {
  ExprPtr base = unary(true);
  if (!peek_op("**")) return base;
  ExprPtr out = make(ExprKind::chain, peek().place);
  out->items.push_back(std::move(base));
  while (accept("**")) {
    out->ops.emplace_back("**");
    out->items.push_back(unary(true));
  }
  return out;
}

ExprPtr Parser::unary(bool with_filters) {
  const Nesting nesting{*this};
  ExprPtr value;
  if (peek_op("-") || peek_op("+")) {
    value = make(peek_op("-") ? ExprKind::negate : ExprKind::plus, peek().place);
    next();
    value->items.push_back(unary(false));
  } else {
    value = postfix(primary());
  }
  return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
}

ExprPtr Parser::primary() {
  const Token& token = peek();
  if (token.kind == TokenKind::name) {
    ExprPtr expr = make(ExprKind::constant, token.place);
    const std::string word = next().text;
    if (word == "true" || word == "True") expr->constant = Value::boolean(true);
    else if (word == "false" || word == "False") expr->constant = Value::boolean(false);
    else if (word == "none" || word == "None") expr->constant = Value::none();
    else {
      expr->kind = ExprKind::name;
      if (word == "loop") ++loop_names_;
      expr->text = word;
    }
    return expr;
  }
  if (token.kind == TokenKind::text) return text_literal();
  if (token.kind == TokenKind::integer || token.kind == TokenKind::real) {
    ExprPtr expr = make(ExprKind::constant, token.place);
    const Token number = next();
    std::int64_t integer = 0;
    double real = 0;
    const char *begin = number.text.data(), *end = begin + number.text.size();
    if (number.kind == TokenKind::real) {
      std::from_chars(begin, end, real);
      expr->constant = Value::real(real);
    } else if (std::from_chars(begin, end, integer).ec == std::errc{}) {
      expr->constant = Value::integer(integer);
    } else {
      expr->constant = Value::big_integer(number.text.substr(std::min(number.text.find_first_not_of('0'), number.text.size() - 1)));
    }
    return expr;
  }
  if (peek_op("(")) return bracket();
  if (peek_op("[")) return list_literal();
  if (peek_op("{")) return dict_literal();
  fail("expected a value, found " + quoted(token.text));
}

ExprPtr Parser::text_literal() {
  ExprPtr expr = make(ExprKind::constant, peek().place);
  std::string text;
  while (peek().kind == TokenKind::text) text += next().text;  // neighbours are one text
  expr->constant = Value::text(std::move(text), true);
  return expr;
}

ExprPtr Parser::bracket() {
  const Place place = next().place;
  if (accept(")")) return make(ExprKind::tuple, place);
  ExprPtr inside = tuple_expression();
  expect_op(")");
  return inside;
}

ExprPtr Parser::list_literal() {
  ExprPtr list = make(ExprKind::list, next().place);
  while (!accept("]")) {
    if (!list->items.empty()) expect_op(",");
    if (accept("]")) break;
    list->items.push_back(expression());
  }
  return list;
}

ExprPtr Parser::dict_literal() {
  ExprPtr dict = make(ExprKind::dict, next().place);
  while (!accept("}")) {
    if (!dict->items.empty()) expect_op(",");
    if (accept("}")) break;
    dict->items.push_back(expression());
    expect_op(":");
    dict->items.push_back(expression());
  }
  return dict;
}

ExprPtr Parser::postfix(ExprPtr of, bool calls) {
  for (std::uint32_t links = 0;; ++links) {
    if (links > kMaxNesting) fail("too many links in one chain (limit: " + std::to_string(kMaxNesting) + ")");
    if (peek_op(".")) {
      ExprPtr link = make(ExprKind::attribute, next().place);
      link->items.push_back(std::move(of));
      if (peek().kind == TokenKind::integer) {  // x.0
        link->kind = ExprKind::subscript;
        link->items.push_back(primary());
      } else {
        link->text = name("an attribute");
      }
      of = std::move(link);
    } else if (peek_op("[")) {
      of = subscript(std::move(of));
    } else if (calls && peek_op("(")) {
      ExprPtr call = make(ExprKind::call, peek().place);
      call->items.push_back(std::move(of));
      call->arguments = arguments();
      of = std::move(call);
    } else {
      return of;
    }
  }
}

ExprPtr Parser::subscript(ExprPtr of) {
  ExprPtr out = make(ExprKind::subscript, next().place);
  out->items.push_back(std::move(of));
  ExprPtr first = peek_op(":") ? nullptr : tuple_expression();
  if (!peek_op(":")) {
    out->items.push_back(std::move(first));
    expect_op("]");
    return out;
  }
  out->kind = ExprKind::slice;
  out->items.push_back(std::move(first));
  for (int part = 0; part < 2; ++part) {
    const bool present = accept(":") && !peek_op(":") && !peek_op("]");
    out->items.push_back(present ? expression() : nullptr);
  }
  expect_op("]");
  return out;
}

Arguments Parser::arguments() {
  Arguments out;
  expect_op("(");
  for (bool first = true; !accept(")"); first = false) {
    if (!first) expect_op(",");
    if (accept(")")) break;
    if (peek_op("*") || peek_op("**")) fail("arguments with * or ** are not supported");
    if (peek().kind == TokenKind::name && peek(1).kind == TokenKind::op && peek(1).text == "=") {
      std::string named = next().text;
      next();
      out.named.emplace_back(std::move(named), expression());
    } else {
      if (!out.named.empty()) fail("a positional argument after a named one");
      out.positional.push_back(expression());
    }
  }
  return out;
}

ExprPtr Parser::filters(ExprPtr of, bool first_has_no_bar) {
  for (std::uint32_t links = 0; first_has_no_bar || peek_op("|"); ++links) {
    if (links > kMaxNesting) fail("too many filters in one chain");
    if (!first_has_no_bar) next();
    first_has_no_bar = false;
    ExprPtr filter = make(ExprKind::filter, peek().place);
    filter->text = name("a filter");
    if (branches_ == 0 && !has_filter(filter->text)) fail_at(unknown_filter(filter->text), filter->place);
    filter->items.push_back(std::move(of));
    if (peek_op("(")) filter->arguments = arguments();
    of = std::move(filter);
  }
  return of;
}

ExprPtr Parser::test(ExprPtr of) {
  const Place place = next().place;
  const bool inverted = accept_name("not");
  ExprPtr out = make(ExprKind::test, place);
  out->items.push_back(std::move(of));
  out->text = name("a test");
  if (branches_ == 0 && !has_test(out->text)) fail_at(unknown_test(out->text), place);
  const Token& token = peek();
  if (peek_op("(")) {
    out->arguments = arguments();
  } else if (token.kind == TokenKind::text || token.kind == TokenKind::integer || token.kind == TokenKind::real || peek_op("[") ||
             peek_op("{") ||
             (token.kind == TokenKind::name && token.text != "else" && token.text != "or" && token.text != "and" && token.text != "is" &&
              token.text != "if" && token.text != "in" && token.text != "not" && token.text != "recursive")) {
    out->arguments.positional.push_back(postfix(primary(), false));
  }
  if (!inverted) return out;
  ExprPtr invert = make(ExprKind::invert, place);
  invert->items.push_back(std::move(out));
  return invert;
}

ExprPtr Parser::filters_and_tests(ExprPtr of) {
  for (std::uint32_t links = 0;; ++links) {
    if (links > kMaxNesting) fail("too many filters in one chain");
    if (peek_op("|")) of = filters(std::move(of));
    else if (peek_name("is")) of = test(std::move(of));
    else if (peek_op("(")) of = postfix(std::move(of));
    else return of;
  }
}

}  // namespace mekik::text::jinja
