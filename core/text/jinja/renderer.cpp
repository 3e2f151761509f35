#include "text/jinja/renderer.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "text/jinja/builtins.hpp"

namespace mekik::text::jinja {

namespace {

struct Scope : Variables {
  Scope(Living& living, std::shared_ptr<Scope> parent_in) : Variables{living}, parent{std::move(parent_in)} {}
  std::shared_ptr<Scope> parent;  // shared: macros keep the scope they were made in
};
using ScopePtr = std::shared_ptr<Scope>;

enum class Flow { on, break_loop, continue_loop };

class Renderer {
 public:
  explicit Renderer(Budget& budget) : budget_{budget} {}

  Flow run(const Body& body, const ScopePtr& scope, Text& out) {
    budget_.enter();
    Flow flow = Flow::on;
    for (const auto& node : body) {
      flow = at(node->place, [&] { return statement(*node, scope, out); });
      if (flow != Flow::on) break;
    }
    budget_.leave();
    return flow;
  }

 private:
  // Errors get the place of the innermost part that has one.
  template <class F>
  auto at(Place place, F&& f) -> decltype(f()) {
    try {
      return f();
    } catch (TemplateError& error) {
      if (error.place.line == 0) error.place = place;
      throw;
    }
  }

  void write(Text& out, const Text& text) {
    budget_.spend(text.bytes.size() / 32);
    out.append(text);
    budget_.output_bytes += text.bytes.size();
    if (budget_.output_bytes > budget_.max_output_bytes) budget_.spend_bytes(budget_.output_bytes);
  }

  Flow statement(const Node& node, const ScopePtr& scope, Text& out) {
    budget_.spend(1);
    switch (node.kind) {
      case NodeKind::data:
        write(out, node.data);
        return Flow::on;
      case NodeKind::output:
        write(out, to_text(value(*node.value, scope), budget_));
        return Flow::on;
      case NodeKind::branch:
        for (const Branch& branch : node.branches)
          if (branch.condition == nullptr || value(*branch.condition, scope).truthy()) return run(branch.body, scope, out);
        return Flow::on;
      case NodeKind::loop:
        loop(node, value(*node.value, scope), scope, out, 0);
        return Flow::on;
      case NodeKind::set:
        set(node, value(*node.value, scope), scope);
        return Flow::on;
      case NodeKind::set_block:
        set_block(node, scope);
        return Flow::on;
      case NodeKind::macro:
        scope->values[node.name] = macro(node, node.name, scope);
        return Flow::on;
      case NodeKind::call_block: {
        Call call = arguments(node.value->arguments, scope);
        call.named.emplace_back("caller", macro(node, "caller", scope));
        write(out, to_text(jinja::call(value(*node.value->items[0], scope), call), budget_));
        return Flow::on;
      }
      case NodeKind::filter_block: {
        Text inside;
        run(node.body, nested(scope), inside);
        write(out, to_text(filtered(*node.value, Value::text(std::move(inside)), scope), budget_));
        return Flow::on;
      }
      case NodeKind::scope: {
        const ScopePtr inner = nested(scope);
        for (const auto& [name, expr] : node.parameters) inner->values[name] = value(*expr, scope);
        return run(node.body, inner, out);
      }
      case NodeKind::break_loop:
        return Flow::break_loop;
      case NodeKind::continue_loop:
        return Flow::continue_loop;
    }
    return Flow::on;
  }

  ScopePtr nested(const ScopePtr& parent) { return std::make_shared<Scope>(budget_.living, parent); }

  void assign(const std::vector<std::string>& targets, bool unpack, const Value& value, Scope& scope) {
    if (!unpack) {
      scope.values[targets[0]] = value;
      return;
    }
    const List items = iterate(value, budget_);
    if (items.size() != targets.size())
      throw TemplateError{"cannot take " + std::to_string(items.size()) + " values apart into " + std::to_string(targets.size()) +
                          " variables"};
    for (std::size_t i = 0; i < targets.size(); ++i) scope.values[targets[i]] = items[i];
  }

  void set(const Node& node, const Value& value, const ScopePtr& scope) {
    if (!node.attribute) {
      assign(node.targets, node.unpack, value, *scope);
      return;
    }
    const Value object = lookup(node.targets[0], scope);
    if (!object.is(Type::space))
      throw TemplateError{"only attributes of a namespace() can be set, and " + quoted(node.targets[0]) + " is a " + type_name(object)};
    object.as_space().values[node.targets[1]] = value;
  }

  void set_block(const Node& node, const ScopePtr& scope) {
    Text inside;
    run(node.body, nested(scope), inside);
    Value value = Value::text(std::move(inside));
    if (node.value) value = filtered(*node.value, value, scope);
    if (node.attribute) set(node, value, scope);
    else scope->values[node.targets[0]] = value;
  }

  // The chain of filters that starts at nothing, applied to `value`.
  Value filtered(const Expr& filter, const Value& value, const ScopePtr& scope) {
    const Value input = filter.items[0] ? filtered(*filter.items[0], value, scope) : value;
    Call call = arguments(filter.arguments, scope);
    return at(filter.place, [&] { return apply_filter(filter.text, input, call); });
  }

  Value macro(const Node& node, const std::string& name, const ScopePtr& scope) {
    return Value::function(name, [this, &node, name, scope](Call& call) {
      const ScopePtr inner = nested(scope);
      if (call.positional.size() > node.parameters.size())
        throw TemplateError{"the macro " + quoted(name) + " takes at most " + std::to_string(node.parameters.size()) + " arguments"};
      for (std::size_t i = 0; i < node.parameters.size(); ++i) {
        const auto& [parameter, fallback] = node.parameters[i];
        const Value* given = call.find(i, parameter);
        inner->values[parameter] = given ? *given : fallback ? value(*fallback, inner) : Value::undefined("parameter " + quoted(parameter));
      }
      for (const auto& named : call.named) {
        const std::string& given = named.first;
        const bool known = std::any_of(node.parameters.begin(), node.parameters.end(), [&](const auto& p) { return p.first == given; });
        if (given == "caller") inner->values["caller"] = named.second;
        else if (!known) throw TemplateError{"the macro " + quoted(name) + " has no parameter " + quoted(given)};
      }
      Text out;
      run(node.body, inner, out);
      budget_.output_bytes -= std::min<std::uint64_t>(budget_.output_bytes, out.bytes.size());  // counted again where it is printed
      return Value::text(std::move(out));
    });
  }

  void loop(const Node& node, const Value& over, const ScopePtr& scope, Text& out, std::int64_t depth) {
    List items = iterate(over, budget_);
    if (node.condition) {
      List kept;
      for (Value& item : items) {
        const ScopePtr inner = nested(scope);
        assign(node.targets, node.unpack, item, *inner);
        if (value(*node.condition, inner).truthy()) kept.push_back(std::move(item));
      }
      items = std::move(kept);
    }
    if (items.empty() && !node.otherwise.empty()) run(node.otherwise, nested(scope), out);
    auto last_changed = std::make_shared<std::optional<Value>>();
    for (std::size_t i = 0; i < items.size(); ++i) {
      budget_.spend(1);
      const ScopePtr inner = nested(scope);
      if (node.tells_loop) inner->values["loop"] = loop_value(node, items, i, scope, depth, last_changed);
      assign(node.targets, node.unpack, items[i], *inner);
      if (run(node.body, inner, out) == Flow::break_loop) break;
    }
  }

  Value loop_value(const Node& node, const List& items, std::size_t i, const ScopePtr& scope, std::int64_t depth,
                   const std::shared_ptr<std::optional<Value>>& last_changed) {
    budget_.spend(10);
    const auto n = static_cast<std::int64_t>(items.size()), at = static_cast<std::int64_t>(i);
    auto space = std::make_shared<Space>(budget_.living);
    auto& v = space->values;
    v["index"] = Value::integer(at + 1);
    v["index0"] = Value::integer(at);
    v["revindex"] = Value::integer(n - at);
    v["revindex0"] = Value::integer(n - at - 1);
    v["first"] = Value::boolean(i == 0);
    v["last"] = Value::boolean(at + 1 == n);
    v["length"] = Value::integer(n);
    v["depth"] = Value::integer(depth + 1);
    v["depth0"] = Value::integer(depth);
    v["previtem"] = i > 0 ? items[i - 1] : Value::undefined("loop.previtem");
    v["nextitem"] = at + 1 < n ? items[i + 1] : Value::undefined("loop.nextitem");
    v["cycle"] = Value::function("cycle", [i](Call& call) {
      if (call.positional.empty()) throw TemplateError{"loop.cycle needs values"};
      return call.positional[i % call.positional.size()];
    });
    v["changed"] = Value::function("changed", [last_changed](Call& call) {
      const Value now = Value::list(call.positional);
      const bool changed = !last_changed->has_value() || !equal(**last_changed, now, *call.budget);
      *last_changed = now;
      return Value::boolean(changed);
    });
    if (!node.recursive) return Value::space(std::move(space));
    // loop(...) of a recursive loop; called() looks for it, and templates cannot reach names that begin with "__".
    v["__call__"] = Value::function("loop", [this, &node, scope, depth](Call& call) {
      call.check("loop", 1, 1);
      Text out;
      loop(node, call.positional[0], scope, out, depth + 1);
      return Value::text(std::move(out));
    });
    return Value::space(std::move(space));
  }

  Value lookup(const std::string& name, const ScopePtr& scope) {
    std::uint64_t scopes = 0;
    for (const Scope* s = scope.get(); s != nullptr; s = s->parent.get()) {
      if (++scopes % 4 == 0) budget_.spend(1);
      if (const auto it = s->values.find(name); it != s->values.end()) return it->second;
    }
    return global(name);
  }

  Call arguments(const Arguments& from, const ScopePtr& scope) {
    Call call;
    call.budget = &budget_;
    for (const ExprPtr& expr : from.positional) call.positional.push_back(value(*expr, scope));
    for (const auto& [name, expr] : from.named) call.named.emplace_back(name, value(*expr, scope));
    return call;
  }

  Value value(const Expr& expr, const ScopePtr& scope) {
    budget_.spend(1);
    budget_.enter();
    Value out = at(expr.place, [&] { return evaluate(expr, scope); });
    budget_.leave();
    return out;
  }

  Value evaluate(const Expr& e, const ScopePtr& scope) {
    const auto item = [&](std::size_t i) { return value(*e.items[i], scope); };
    switch (e.kind) {
      case ExprKind::constant:
        return e.constant;
      case ExprKind::name:
        return lookup(e.text, scope);
      case ExprKind::list:
      case ExprKind::tuple: {
        List items;
        for (std::size_t i = 0; i < e.items.size(); ++i) items.push_back(item(i));
        return e.kind == ExprKind::list ? Value::list(std::move(items)) : Value::tuple(std::move(items));
      }
      case ExprKind::dict: {
        Dict dict;
        for (std::size_t i = 0; i < e.items.size(); i += 2) dict.set(item(i), item(i + 1), budget_);
        return Value::dict(std::move(dict));
      }
      case ExprKind::attribute:
        return attribute(item(0), e.text, budget_);
      case ExprKind::subscript:
        return subscript(item(0), item(1), budget_);
      case ExprKind::slice: {
        const auto bound = [&](std::size_t i) { return e.items[i] ? item(i) : Value::none(); };
        return slice(item(0), bound(1), bound(2), bound(3), budget_);
      }
      case ExprKind::call:
        return called(e, scope);
      case ExprKind::filter: {
        const Value input = item(0);
        Call call = arguments(e.arguments, scope);
        return apply_filter(e.text, input, call);
      }
      case ExprKind::test: {
        const Value input = item(0);
        Call call = arguments(e.arguments, scope);
        return Value::boolean(apply_test(e.text, input, call));
      }
      case ExprKind::negate: {
        const Value operand = item(0);
        return operand.is(Type::real) ? Value::real(-operand.as_real()) : arithmetic("-", Value::integer(0), operand, budget_);
      }
      case ExprKind::plus:
        return arithmetic("+", Value::integer(0), item(0), budget_);
      case ExprKind::invert:
        return Value::boolean(!item(0).truthy());
      case ExprKind::all:
      case ExprKind::any: {
        Value out;
        for (std::size_t i = 0; i < e.items.size(); ++i) {
          out = item(i);
          if (out.truthy() == (e.kind == ExprKind::any)) break;
        }
        return out;
      }
      case ExprKind::chain: {
        Value out = item(0);
        for (std::size_t i = 0; i < e.ops.size(); ++i) out = arithmetic(e.ops[i], out, item(i + 1), budget_);
        return out;
      }
      case ExprKind::comparison:
        return compared(e, scope);
      case ExprKind::choice:
        return item(1).truthy() ? item(0) : e.items[2] ? item(2) : Value::undefined("the else of a choice");
    }
    return {};
  }

  Value called(const Expr& e, const ScopePtr& scope) {
    Value function = value(*e.items[0], scope);
    if (function.is(Type::space)) {
      const auto it = function.as_space().values.find("__call__");
      if (it != function.as_space().values.end()) function = it->second;
    }
    Call call = arguments(e.arguments, scope);
    return jinja::call(function, call);
  }

  Value compared(const Expr& e, const ScopePtr& scope) {
    Value left = value(*e.items[0], scope);
    for (std::size_t i = 0; i < e.ops.size(); ++i) {
      const Value right = value(*e.items[i + 1], scope);
      const std::string& op = e.ops[i];
      bool holds = false;
      if (op == "==") holds = equal(left, right, budget_);
      else if (op == "!=") holds = !equal(left, right, budget_);
      else if (op == "in") holds = contains(right, left, budget_);
      else if (op == "not in") holds = !contains(right, left, budget_);
      else {
        const int order = compare(left, right, budget_);
        holds = op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0;
      }
      if (!holds) return Value::boolean(false);
      left = right;
    }
    return Value::boolean(true);
  }

  Budget& budget_;
};

}  // namespace

Text render(const Body& body, std::unordered_map<std::string, Value> variables, Budget& budget) {
  Text out;
  Renderer renderer{budget};
  // The context lies under the template's own variables, as macros see both.
  const auto context = std::make_shared<Scope>(budget.living, nullptr);
  context->values = std::move(variables);
  renderer.run(body, std::make_shared<Scope>(budget.living, context), out);
  return out;
}

}  // namespace mekik::text::jinja
