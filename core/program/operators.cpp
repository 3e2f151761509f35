// Arithmetic of rows.
#include <cmath>

#include "base/text.hpp"
#include "program/emitter.hpp"

namespace mekik::program {

Datum Emitter::scaled(const config::Origin& at, const Datum& x, double a, double b) {
  if (a == 1 && b == 0) return x;
  return emit_rows(at, op_scale, x, {x.index}, {}, {a, b});
}

// Rule of the language: equal row shapes; or the right side has last size 1, or is a weight of the row shape, with last size 1, or of
// one number; or a constant.
Datum Emitter::operand_binary(const Expression& e, const Expr& node, const Datum& left, const Datum& right) {
  const config::Origin at = e.at(node);
  const auto is_rows = [](const Datum& d) { return d.type == Datum::Type::rows && !d.shape.empty(); };
  if (node.kind == Expr::Kind::negate) {
    if (!is_rows(left)) wrong(at, std::string{"cannot negate "} + type_name(left.type) + where());
    return scaled(at, left, -1, 0);
  }
  Datum a = left, b = right;
  const std::string& op = node.text;
  const bool commutes = op == "+" || op == "*";
  if (commutes && !is_rows(a)) std::swap(a, b);
  if (is_rows(a) && b.number() && (commutes || op == "-" || op == "/")) {
    const double c = b.as_real();
    if (op == "/" && c == 0) wrong(at, "division by 0" + where());
    if (!std::isfinite(c)) wrong(at, "rows need a finite number on the other side" + where());
    return op == "*" ? scaled(at, a, c, 0) : op == "/" ? scaled(at, a, 1 / c, 0) : scaled(at, a, 1, op == "+" ? c : -c);
  }
  if (op == "-" && a.number() && is_rows(b)) return scaled(at, b, -1, a.as_real());
  const bool arithmetic = commutes || op == "-";
  if (!arithmetic || !is_rows(a) || (!is_rows(b) && b.type != Datum::Type::weight))
    wrong(at, std::string{type_name(left.type)} + " " + op + " " + type_name(right.type) + " has no meaning" + where());
  if (b.type == Datum::Type::weight) {
    if (op == "-") wrong(at, "a weight cannot be subtracted; give it a value = \"-w\"" + where());
    std::vector<std::int64_t> narrow = a.shape;  // one number for each of the outer rows
    narrow.back() = 1;
    if (const auto& shape = value_of(b).shape; shape != a.shape && shape != narrow && shape != std::vector<std::int64_t>{1})
      wrong(at, op + ": row shape " + shape_text(a.shape) + " does not meet " + weight_text(b) + where());
    return emit_rows(at, op == "+" ? op_add : op_mul, a, {a.index, weight_tensor(b.index, WeightUse::vector)});
  }
  if (a.first != b.first) wrong(at, op + ": rows of all tokens and output rows do not go together" + where());
  const auto narrow = [](const Datum& wide, const Datum& thin) {
    std::vector<std::int64_t> one = wide.shape;
    one.back() = 1;
    return thin.shape == one || thin.shape == std::vector<std::int64_t>{1};
  };
  if (commutes && a.shape != b.shape && narrow(b, a)) std::swap(a, b);
  if (a.shape != b.shape && (!narrow(a, b) || (b.shape.size() != a.shape.size())))
    wrong(at, op + ": row shapes " + shape_text(left.shape) + " and " + shape_text(right.shape) + " do not go together" + where());
  if (op == "-") b = scaled(at, b, -1, 0);
  return emit_rows(at, op == "*" ? op_mul : op_add, a, {a.index, b.index});
}

}  // namespace mekik::program
