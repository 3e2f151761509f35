// Whether what was written is the model that was read: both programs, operation by operation.
#include <cmath>

#include "program/transcriber.hpp"

namespace mekik::program {

namespace {

bool near(double a, double b) { return a == b || std::fabs(a - b) <= 1e-6 * std::max(std::fabs(a), std::fabs(b)); }

[[noreturn]] void differ(const config::Origin& at, const std::string& what) {
  throw Mistake{at, "the model would not be the same in the other format: " + what, {}};
}

void check_op(const Op& a, const Op& b) {
  const OpInfo* info = op_info(a.code);
  const std::string name = std::string{info != nullptr ? info->name : "an operation"} + ", layer " + std::to_string(a.layer);
  if (a.code != b.code || a.layer != b.layer || a.in != b.in || a.out != b.out)
    differ(a.origin, name + " becomes " + (op_info(b.code) != nullptr ? op_info(b.code)->name : "another"));
  if (a.ints != b.ints) differ(a.origin, name + " has other whole numbers");
  if (a.reals.size() != b.reals.size()) differ(a.origin, name + " has other numbers");
  for (std::size_t i = 0; i < a.reals.size(); ++i)
    if (!near(a.reals[i], b.reals[i]))
      differ(a.origin, name + ": " + std::to_string(a.reals[i]) + " becomes " + std::to_string(b.reals[i]));
}

void check_weight(const WeightRecipe& a, const WeightRecipe& b, bool same_page) {
  const std::string name = "\"" + a.symbol + "\"" + (a.layer >= 0 ? " of layer " + std::to_string(a.layer) : "");
  if ((same_page && a.symbol != b.symbol) || a.layer != b.layer) differ({}, "weight " + name + " becomes \"" + b.symbol + "\"");
  if (a.experts != b.experts || a.n != b.n || a.k != b.k || a.host.size() != b.host.size()) differ({}, name + " has another shape");
  if (a.host_divisors != 0 || b.host_divisors != 0) return;  // made equal where they were written
  for (std::size_t i = 0; i < a.host.size(); ++i)
    if (!near(static_cast<double>(a.host[i]), static_cast<double>(b.host[i]))) differ({}, "table " + name + " has other numbers");
}

}  // namespace

void check_same(const Program& source, const Program& target, bool same_page) {
  if (source.vocab != target.vocab || source.width != target.width || source.layers != target.layers || source.context != target.context)
    differ({}, "its vocabulary, width, layers or context");
  if (source.ops.size() != target.ops.size() || source.tensors.size() != target.tensors.size() ||
      source.weights.size() != target.weights.size() || source.n_slots != target.n_slots || source.groups.size() != target.groups.size())
    differ({}, std::to_string(source.ops.size()) + " operations over " + std::to_string(source.weights.size()) + " weights become " +
                   std::to_string(target.ops.size()) + " over " + std::to_string(target.weights.size()));
  for (std::size_t i = 0; i < source.groups.size(); ++i)
    if (source.groups[i].window != target.groups[i].window) differ({}, "the window of its attention");
  for (std::size_t i = 0; i < source.weights.size(); ++i) check_weight(source.weights[i], target.weights[i], same_page);
  for (std::size_t i = 0; i < source.ops.size(); ++i) check_op(source.ops[i], target.ops[i]);
  for (std::size_t i = 0; i < source.tensors.size(); ++i) {
    const Tensor &a = source.tensors[i], &b = target.tensors[i];
    if (a.role != b.role || a.shape != b.shape || a.view_of != b.view_of || a.column != b.column || a.group != b.group)
      differ({}, "tensor \"" + a.name + "\"");
  }
}

}  // namespace mekik::program
