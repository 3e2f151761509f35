// Statements. Expressions: expressions.cpp.
#include "text/jinja/parser.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mekik::text::jinja {

namespace {

std::unique_ptr<Node> make_node(NodeKind kind, Place place) {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  node->place = place;
  return node;
}

}  // namespace

Body parse(std::string_view source) {
  Parser parser{tokenize(source)};
  Body body = parser.body({});
  return body;
}

Body Parser::body(const std::vector<std::string>& ends) {
  const Nesting nesting{*this};
  Body out;
  for (;;) {
    const Token& token = peek();
    switch (token.kind) {
      case TokenKind::end:
        if (!ends.empty()) fail("the template ends inside a block: {% " + ends.back() + " %} is missing");
        return out;
      case TokenKind::data: {
        auto node = make_node(NodeKind::data, token.place);
        node->data = Text{next().text, {}, true};
        out.push_back(std::move(node));
        break;
      }
      case TokenKind::variable_begin: {
        auto node = make_node(NodeKind::output, next().place);
        node->value = tuple_expression();
        expect(TokenKind::variable_end, "}}");
        out.push_back(std::move(node));
        break;
      }
      default: {
        const Token& word = peek(1);
        if (std::find(ends.begin(), ends.end(), word.text) != ends.end()) return out;
        if (auto node = statement()) out.push_back(std::move(node));
      }
    }
  }
}

std::unique_ptr<Node> Parser::statement() {
  next();
  const Token word = next();
  if (word.kind != TokenKind::name) fail_at("a tag starts with a word, for instance {% if %}", word.place);
  if (word.text == "if") return if_statement(word.place);
  if (word.text == "for") return for_statement(word.place);
  if (word.text == "set") return set_statement(word.place);
  if (word.text == "macro") return macro_statement(word.place);
  if (word.text == "call") return call_statement(word.place);
  if (word.text == "filter") return filter_statement(word.place);
  if (word.text == "with") return with_statement(word.place);
  if (word.text == "generation") {  // marks what an assistant wrote; it changes nothing in the text
    end_tag();
    auto node = make_node(NodeKind::scope, word.place);
    node->body = block("endgeneration");
    return node;
  }
  if (word.text == "break" || word.text == "continue") {
    if (loops_ == 0) fail_at("{% " + word.text + " %} outside of a loop", word.place);
    end_tag();
    return make_node(word.text == "break" ? NodeKind::break_loop : NodeKind::continue_loop, word.place);
  }
  if (word.text == "include" || word.text == "import" || word.text == "from" || word.text == "extends" || word.text == "block")
    fail_at("{% " + word.text + " %} needs other template files, which a chat template does not have", word.place);
  static const std::vector<std::string> kWords{"if",   "for", "set",        "macro", "call",    "filter",
                                               "with", "raw", "generation", "break", "continue"};
  const auto near = closest(word.text, kWords);
  fail_at("unknown tag {% " + word.text + " %}" + (near ? "; did you mean {% " + *near + " %}?" : ""), word.place);
}

// The statements up to {% end %}, which is consumed.
Body Parser::block(const std::string& end) {
  Body out = body({end});
  next();
  next();
  end_tag();
  return out;
}

std::unique_ptr<Node> Parser::if_statement(Place place) {
  auto node = make_node(NodeKind::branch, place);
  Branch branch;
  branch.condition = tuple_expression(false);
  ++branches_;
  for (;;) {
    end_tag();
    branch.body = body({"elif", "else", "endif"});
    node->branches.push_back(std::move(branch));
    branch = {};
    next();
    const Token word = next();
    if (word.text == "endif") break;
    if (node->branches.back().condition == nullptr) fail_at("{% " + word.text + " %} after {% else %}", word.place);
    if (word.text == "elif") branch.condition = tuple_expression(false);
  }
  --branches_;
  end_tag();
  return node;
}

std::vector<std::string> Parser::targets(bool& unpack) {
  std::vector<std::string> names;
  const bool parenthesis = accept("(");
  do {
    if (parenthesis && peek_op(")")) break;
    names.push_back(name("a variable"));
  } while (accept(","));
  if (parenthesis) expect_op(")");
  unpack = names.size() > 1;
  return names;
}

std::unique_ptr<Node> Parser::for_statement(Place place) {
  auto node = make_node(NodeKind::loop, place);
  node->targets = targets(node->unpack);
  if (!accept_name("in")) fail("expected \"in\"");
  node->value = tuple_expression(false);
  if (accept_name("if")) node->condition = expression();
  node->recursive = accept_name("recursive");
  end_tag();
  ++loops_;
  const std::uint32_t told = loop_names_;
  node->body = body({"else", "endfor"});
  node->tells_loop = loop_names_ != told;
  --loops_;
  next();
  const bool otherwise = next().text == "else";
  end_tag();
  if (otherwise) node->otherwise = block("endfor");
  return node;
}

std::unique_ptr<Node> Parser::set_statement(Place place) {
  auto node = make_node(NodeKind::set, place);
  if (peek(1).text == "." && peek(1).kind == TokenKind::op) {
    node->targets.push_back(name("a variable"));
    next();
    node->targets.push_back(name("an attribute"));
    node->attribute = true;
  } else {
    node->targets = targets(node->unpack);
  }
  if (accept("=")) {
    node->value = tuple_expression();
    end_tag();
    return node;
  }
  if (node->unpack) fail("expected \"=\"");
  node->kind = NodeKind::set_block;
  if (peek_op("|")) node->value = filters(nullptr);
  end_tag();
  node->body = block("endset");
  return node;
}

std::vector<std::pair<std::string, ExprPtr>> Parser::parameters() {
  std::vector<std::pair<std::string, ExprPtr>> out;
  expect_op("(");
  while (!accept(")")) {
    if (!out.empty()) expect_op(",");
    if (accept(")")) break;
    const Place at = peek().place;
    std::string parameter = name("a parameter");
    ExprPtr fallback = accept("=") ? expression() : nullptr;
    if (fallback == nullptr && !out.empty() && out.back().second != nullptr)
      fail_at("a parameter without a default after one with a default", at);
    out.emplace_back(std::move(parameter), std::move(fallback));
  }
  return out;
}

std::unique_ptr<Node> Parser::macro_statement(Place place) {
  auto node = make_node(NodeKind::macro, place);
  node->name = name("the macro's name");
  node->parameters = parameters();
  end_tag();
  const std::size_t loops = std::exchange(loops_, 0);
  node->body = block("endmacro");
  loops_ = loops;
  return node;
}

std::unique_ptr<Node> Parser::call_statement(Place place) {
  auto node = make_node(NodeKind::call_block, place);
  if (peek_op("(")) node->parameters = parameters();
  node->value = expression();
  if (node->value->kind != ExprKind::call) fail_at("{% call %} needs a call, for instance {% call box() %}", place);
  end_tag();
  node->body = block("endcall");
  return node;
}

std::unique_ptr<Node> Parser::filter_statement(Place place) {
  auto node = make_node(NodeKind::filter_block, place);
  node->value = filters(nullptr, true);
  end_tag();
  node->body = block("endfilter");
  return node;
}

std::unique_ptr<Node> Parser::with_statement(Place place) {
  auto node = make_node(NodeKind::scope, place);
  while (peek().kind == TokenKind::name) {
    std::string variable = name("a variable");
    expect_op("=");
    node->parameters.emplace_back(std::move(variable), expression());
    if (!accept(",")) break;
  }
  end_tag();
  node->body = block("endwith");
  return node;
}

}  // namespace mekik::text::jinja
