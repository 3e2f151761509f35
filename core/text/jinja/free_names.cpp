// Which variables of the context a template reads.
#include "text/jinja/ast.hpp"

namespace mekik::text::jinja {

namespace {

using Names = std::unordered_set<std::string>;

// Walks in the order of rendering. `bound`: names that a part of the template has certainly given a value before; a name that is set in
// one branch of several is still the context's in the others.
class Reader {
 public:
  Names free;

  void body(const Body& nodes, Names& bound) {
    for (const auto& node : nodes) statement(*node, bound);
  }

 private:
  static void bind(const std::vector<std::string>& names, Names& bound) { bound.insert(names.begin(), names.end()); }
  // Names of an inner scope end with it.
  void inner(const Body& nodes, Names bound) { body(nodes, bound); }

  void arguments(const Arguments& of, const Names& bound) {
    for (const ExprPtr& one : of.positional) read(one, bound);
    for (const auto& [name, value] : of.named) read(value, bound);
  }
  void read(const ExprPtr& expr, const Names& bound) {
    if (expr == nullptr) return;
    if (expr->kind == ExprKind::name && bound.count(expr->text) == 0) free.insert(expr->text);
    for (const ExprPtr& item : expr->items) read(item, bound);
    arguments(expr->arguments, bound);
  }

  void statement(const Node& node, Names& bound) {
    switch (node.kind) {
      case NodeKind::branch:
        return branch(node, bound);
      case NodeKind::loop:
        return loop(node, bound);
      case NodeKind::macro:
      case NodeKind::call_block:
        return function(node, bound);
      case NodeKind::scope: {
        Names within = bound;
        for (const auto& [name, value] : node.parameters) read(value, bound), within.insert(name);
        return inner(node.body, std::move(within));
      }
      case NodeKind::set:
      case NodeKind::set_block:
        inner(node.body, bound);
        read(node.value, bound);
        if (!node.attribute) return bind(node.targets, bound);
        if (bound.count(node.targets[0]) == 0) free.insert(node.targets[0]);
        return;
      case NodeKind::filter_block:
        inner(node.body, bound);
        return read(node.value, bound);
      default:
        return read(node.value, bound);
    }
  }

  void branch(const Node& node, Names& bound) {
    Names in_all;
    bool first = true, always = false;
    for (const Branch& one : node.branches) {
      read(one.condition, bound);
      always = one.condition == nullptr;
      Names after = bound;
      body(one.body, after);
      if (first) in_all = std::move(after);
      else std::erase_if(in_all, [&](const std::string& name) { return after.count(name) == 0; });
      first = false;
    }
    if (always) bound = std::move(in_all);
  }

  void loop(const Node& node, const Names& bound) {
    read(node.value, bound);
    Names within = bound;
    within.insert("loop");
    bind(node.targets, within);
    read(node.condition, within);
    inner(node.body, std::move(within));
    inner(node.otherwise, bound);
  }

  // A macro, or the block of a call. The name of a macro is bound inside, too: it may call itself.
  void function(const Node& node, Names& bound) {
    read(node.value, bound);
    if (node.kind == NodeKind::macro) bound.insert(node.name);
    Names within = bound;
    for (const char* given : {"varargs", "kwargs", "caller"}) within.insert(given);
    for (const auto& [name, fallback] : node.parameters) {
      read(fallback, within);  // may read the parameters before it
      within.insert(name);
    }
    inner(node.body, std::move(within));
  }
};

}  // namespace

std::unordered_set<std::string> free_names(const Body& body) {
  Reader reader;
  Names bound{"namespace", "range", "raise_exception", "strftime_now"};
  reader.body(body, bound);
  return std::move(reader.free);
}

}  // namespace mekik::text::jinja
