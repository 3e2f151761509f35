// Recursive descent over the tokens. Used by parse() in ast.hpp.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "text/jinja/ast.hpp"
#include "text/jinja/lexer.hpp"

namespace mekik::text::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_{std::move(tokens)} {}
  // Statements until one of the words `ends` (not consumed), or the end of the template when there are none.
  Body body(const std::vector<std::string>& ends);

 private:
  static constexpr std::uint32_t kMaxNesting = 200;  // of expressions and blocks: bounds the stack here and in the renderer
  static constexpr std::uint32_t kMaxNodes = 500'000;

  struct Nesting {
    explicit Nesting(Parser& parser) : parser_{parser} {
      if (++parser_.nesting_ > kMaxNesting) parser_.fail("nested too deeply (limit: " + std::to_string(kMaxNesting) + ")");
    }
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    Parser& parser_;
  };

  [[noreturn]] void fail_at(const std::string& message, Place place) const { throw TemplateError{message, place}; }
  [[noreturn]] void fail(const std::string& message) const { fail_at(message, peek().place); }
  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool peek_op(std::string_view op) const { return peek().kind == TokenKind::op && peek().text == op; }
  bool peek_name(std::string_view word) const { return peek().kind == TokenKind::name && peek().text == word; }
  bool accept(std::string_view op);
  bool accept_name(std::string_view word);
  void expect(TokenKind kind, std::string_view shown);
  void expect_op(std::string_view op);
  std::string name(std::string_view what);
  void end_tag() { expect(TokenKind::block_end, "%}"); }

  std::unique_ptr<Node> statement();
  Body block(const std::string& end);
  std::unique_ptr<Node> if_statement(Place place);
  std::unique_ptr<Node> for_statement(Place place);
  std::unique_ptr<Node> set_statement(Place place);
  std::unique_ptr<Node> macro_statement(Place place);
  std::unique_ptr<Node> call_statement(Place place);
  std::unique_ptr<Node> filter_statement(Place place);
  std::unique_ptr<Node> with_statement(Place place);
  std::vector<std::string> targets(bool& unpack);
  std::vector<std::pair<std::string, ExprPtr>> parameters();

  ExprPtr make(ExprKind kind, Place place);
  ExprPtr tuple_expression(bool with_choice = true);  // a, b makes a tuple
  ExprPtr expression(bool with_choice = true);
  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr chain(std::size_t level);
  ExprPtr power();
  ExprPtr unary(bool with_filters);
  ExprPtr primary();
  ExprPtr text_literal();
  ExprPtr bracket();
  ExprPtr list_literal();
  ExprPtr dict_literal();
  ExprPtr postfix(ExprPtr of, bool calls = true);
  ExprPtr subscript(ExprPtr of);
  ExprPtr filters(ExprPtr of, bool first_has_no_bar = false);
  ExprPtr test(ExprPtr of);
  ExprPtr filters_and_tests(ExprPtr of);
  Arguments arguments();

  std::vector<Token> tokens_;
  std::size_t at_ = 0, loops_ = 0;
  // Inside {% if %}: unknown filters and tests are errors only when they are reached, as in Jinja, because templates ask for what
  // an engine has before they use it.
  std::size_t branches_ = 0;
  std::uint32_t nesting_ = 0, nodes_ = 0, loop_names_ = 0;
};

}  // namespace mekik::text::jinja
