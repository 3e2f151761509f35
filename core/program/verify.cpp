// What must hold of a program after every pass.
#include <mekik/program.hpp>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/text.hpp"
#include "program/compact.hpp"
#include "program/verify_op.hpp"

namespace mekik::program {

namespace {

constexpr const char* kInputs[] = {"tokens", "positions", "rows", "token_types", "segments", "image_rows"};

class Verifier {
 public:
  explicit Verifier(const Program& program) : p_{program}, written_(program.tensors.size(), false), slots_(program.tensors.size(), false) {}

  Status run() {
    const ProgramView view{p_, {}};
    if (const std::string why = mekik::check_tensors(*view.get()); !why.empty()) return internal_error(why);
    for (const Tensor& tensor : p_.tensors)
      if (const std::string why = tensor_fault(tensor); !why.empty())
        return internal_error("tensor " + mekik::quoted(tensor.name) + ": " + why);
    for (std::uint32_t i = 0; i < p_.ops.size(); ++i) {
      const OpInfo* info = op_info(p_.ops[i].code);
      if (info == nullptr)
        return internal_error("operation " + std::to_string(i) + " has the unknown code " + std::to_string(p_.ops[i].code));
      std::string why = order_fault(p_.ops[i], *info);
      if (why.empty()) why = shape_fault(p_, p_.ops[i]);
      if (!why.empty())
        return internal_error("operation " + std::to_string(i) + ", " + info->name + ", layer " + std::to_string(p_.ops[i].layer) + ": " +
                              why);
    }
    for (std::size_t i = 0; i < p_.tensors.size(); ++i)
      if (p_.tensors[i].role == MEKIK_ROLE_OUTPUT && !written_[i])
        return internal_error("output " + mekik::quoted(p_.tensors[i].name) + " is never written");
    return {};
  }

 private:
  std::string tensor_fault(const Tensor& tensor) const {
    if (tensor.role == MEKIK_ROLE_WEIGHT) {
      if (tensor.weight < 0 || static_cast<std::size_t>(tensor.weight) >= p_.weights.size()) return "a weight without a recipe";
      const WeightRecipe& recipe = p_.weights[static_cast<std::size_t>(tensor.weight)];
      std::uint64_t size = 1;
      for (const std::int64_t one : tensor.shape) size *= static_cast<std::uint64_t>(one);
      if (size != recipe.experts * recipe.n * recipe.k) return "its recipe makes another number of values";
      const int ways = (recipe.host.empty() ? 0 : 1) + (recipe.rows.empty() ? 0 : 1) + (recipe.parts.empty() ? 0 : 1);
      if (ways != 1) return "its recipe has no one way to make it";
      std::uint64_t rows = 0;
      for (const RowRun& run : recipe.rows) rows += run.count;
      if (!recipe.rows.empty() && rows != recipe.experts * recipe.n) return "its recipe has " + std::to_string(rows) + " rows";
      if (!recipe.host.empty() && recipe.host.size() != size) return "its recipe has " + std::to_string(recipe.host.size()) + " values";
    }
    const bool known = std::any_of(std::begin(kInputs), std::end(kInputs), [&](const char* name) { return tensor.name == name; });
    if (tensor.role == MEKIK_ROLE_INPUT && !known) return "no such input is known";
    if (tensor.role == MEKIK_ROLE_TEMP && (tensor.shape[0] >= 0 || tensor.shape.size() > 3))
      return "rows are [symbolic][a] or [symbolic][a][b]";
    return {};
  }

  // Single assignment, writing before reading, and one reader-writer for each slot.
  std::string order_fault(const Op& op, const OpInfo& info) {
    const bool list = info.max_in == 255;
    if (op.in.size() < info.min_in || op.in.size() > info.max_in ||
        (list ? op.in.size() != 1 + 2 * op.out.size() : op.out.size() != info.n_out) || op.ints.size() != info.n_ints ||
        op.reals.size() != info.n_reals)
      return "operands, results or attributes are not as many as the operation has";
    for (const std::uint32_t in : op.in) {
      if (in == MEKIK_NONE) continue;
      if (in >= p_.tensors.size()) return "an operand that is not in the program";
      const std::uint32_t base = base_of(p_, in);
      const Tensor& tensor = p_.tensors[base];
      if (tensor.role == MEKIK_ROLE_OUTPUT) return "output " + mekik::quoted(tensor.name) + " is read";
      if (tensor.role == MEKIK_ROLE_TEMP && !written_[base]) return mekik::quoted(tensor.name) + " is read before it is written";
      if (tensor.role == MEKIK_ROLE_SLOT) {
        if (slots_[base]) return "slot " + mekik::quoted(tensor.name) + " belongs to another operation";
        slots_[base] = true;
      }
      if (tensor.role == MEKIK_ROLE_STATE) {
        const bool appends = op.code == op_kv_append || op.code == op_mla_append || op.code == op_qkv_rope_append;
        if (appends == written_[base])
          return "state " + mekik::quoted(tensor.name) + (appends ? " is written twice" : " is read before it is written");
        written_[base] = true;
      }
    }
    for (const std::uint32_t out : op.out) {
      if (out >= p_.tensors.size()) return "a result that is not in the program";
      const Tensor& tensor = p_.tensors[out];
      if ((tensor.role != MEKIK_ROLE_TEMP && tensor.role != MEKIK_ROLE_OUTPUT) || tensor.view_of != 0)
        return mekik::quoted(tensor.name) + " cannot be written";
      if (written_[out]) return mekik::quoted(tensor.name) + " is written twice";
      written_[out] = true;
    }
    return {};
  }

  const Program& p_;
  std::vector<bool> written_, slots_;
};

}  // namespace

Status verify(const Program& program) { return Verifier{program}.run(); }

}  // namespace mekik::program
