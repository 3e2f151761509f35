// The fold pass: products of the same rows become one operation, and pairs of operations that a backend may run as one become
// composites. No sum changes its order, and a value that anybody else reads stays.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "program/compact.hpp"
#include "program/program.hpp"

namespace mekik::program {

namespace {

constexpr std::uint32_t kNobody = MEKIK_NONE;
constexpr std::size_t kReach = 64;  // operations between a sum and its norm

class Folder {
 public:
  explicit Folder(Program& program) : p_{program} { look(); }

  void run() {
    gates();
    products();
    each(op_add, &Folder::add_to_product);
    each(op_add, &Folder::norm_of_sum);
    each(op_rope, &Folder::turn_of_norm);
  }

 private:
  // Who reads and who writes each tensor; dropped operations have code 0 until sweep().
  void look() {
    readers_ = count_readers(p_);
    writer_.assign(p_.tensors.size(), kNobody);
    for (std::uint32_t i = 0; i < p_.ops.size(); ++i)
      for (const std::uint32_t out : p_.ops[i].out) writer_[out] = i;
  }
  void sweep() {
    std::erase_if(p_.ops, [](const Op& op) { return op.code == 0; });
    look();
  }
  static void drop(Op& op) {
    op.code = 0;
    op.in.clear();
    op.out.clear();
  }
  void each(std::uint32_t code, void (Folder::*fold)(Op&)) {
    for (Op& op : p_.ops)
      if (op.code == code) (this->*fold)(op);
    sweep();
  }
  // The operation of that code that made a tensor, when nobody but one operation reads it.
  Op* only_maker(std::uint32_t tensor, std::uint32_t code) {
    if (tensor == MEKIK_NONE) return nullptr;
    const Tensor& t = p_.tensors[tensor];
    if (t.role != MEKIK_ROLE_TEMP || t.view_of != 0 || readers_[tensor] != 1 || writer_[tensor] == kNobody) return nullptr;
    Op& maker = p_.ops[writer_[tensor]];
    return maker.code == code && maker.out.size() == 1 ? &maker : nullptr;
  }
  static std::int64_t row_size(const Tensor& t) {
    std::int64_t out = 1;
    for (std::size_t i = 1; i < t.shape.size(); ++i) out *= t.shape[i];
    return out;
  }
  bool rows(std::uint32_t tensor) const { return p_.tensors[tensor].role == MEKIK_ROLE_TEMP; }

  // glu(linear(x), linear(x)) -> linear_glu.
  void gates() {
    for (Op& op : p_.ops) {
      if (op.code != op_glu || op.in[0] == op.in[1]) continue;
      Op* gate = only_maker(op.in[0], op_linear);
      Op* up = only_maker(op.in[1], op_linear);
      if (gate == nullptr || up == nullptr || gate->in[0] != up->in[0]) continue;
      op.code = op_linear_glu;
      op.in = {gate->in[0], gate->in[1], gate->in[2], up->in[1], up->in[2]};
      drop(*gate);
      drop(*up);
    }
    sweep();
  }

  // Products of the same rows with no attention, recurrence or choice of experts between them: the first one makes all.
  void products() {
    std::unordered_map<std::uint32_t, Op*> open;
    for (Op& op : p_.ops) {
      const bool mixes = op.code == op_attention || op.code == op_mla_attention || op.code == op_attention_full ||
                         op.code == op_conv_state || op.code == op_ssm_scan || op.code == op_gated_delta || op.code == op_moe_route ||
                         op.code == op_moe_linear || op.code == op_moe_route_mixer || op.code == op_attention_chunk ||
                         op.code == op_attention_near;
      if (mixes) open.clear();
      if (op.code != op_linear) continue;
      const auto [found, fresh] = open.emplace(op.in[0], &op);
      if (fresh || found->second->in.size() + 2 > 255) {
        found->second = &op;
        continue;
      }
      Op& first = *found->second;
      first.in.insert(first.in.end(), op.in.begin() + 1, op.in.end());
      first.out.insert(first.out.end(), op.out.begin(), op.out.end());
      drop(op);
    }
    sweep();
  }

  // r + linear(x) -> linear_add. Addition of two numbers commutes to the bit.
  void add_to_product(Op& op) {
    for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
      const std::uint32_t product = op.in[side], other = op.in[1 - side];
      if (!rows(product) || !rows(other) || row_size(p_.tensors[product]) != row_size(p_.tensors[other])) continue;
      Op* maker = only_maker(product, op_linear);
      if (maker == nullptr) continue;
      op.code = op_linear_add;
      op.in = {maker->in[0], maker->in[1], maker->in[2], other};
      drop(*maker);
      return;
    }
  }

  // rms_norm(a + b), where the sum itself stays readable -> add_norm.
  void norm_of_sum(Op& op) {
    const std::uint32_t sum = op.out[0];
    if (p_.tensors[sum].role != MEKIK_ROLE_TEMP) return;
    const std::size_t begin = static_cast<std::size_t>(&op - p_.ops.data()) + 1;
    for (std::size_t i = begin; i < std::min(p_.ops.size(), begin + kReach); ++i) {
      Op& norm = p_.ops[i];
      if (norm.code != op_rms_norm || norm.in[0] != sum) continue;
      if (p_.tensors[norm.out[0]].role != MEKIK_ROLE_TEMP) return;
      op.code = op_add_norm;
      op.in.push_back(norm.in[1]);
      op.out.push_back(norm.out[0]);
      op.reals = norm.reals;
      drop(norm);
      return;
    }
  }

  // rope(rms_norm(x)) with a weight of one head -> norm_rope.
  void turn_of_norm(Op& op) {
    Op* norm = only_maker(op.in[0], op_rms_norm);
    if (norm == nullptr) return;
    const Tensor& x = p_.tensors[norm->in[0]];
    const std::uint32_t w = norm->in[1];
    if (w != MEKIK_NONE && p_.tensors[w].shape != std::vector<std::int64_t>{x.shape.back()}) return;
    op.code = op_norm_rope;
    op.in = {norm->in[0], w, op.in[1], op.in[2]};
    op.reals = {norm->reals[0], op.reals[0]};
    drop(*norm);
  }

  Program& p_;
  std::vector<std::uint32_t> readers_, writer_;
};

}  // namespace

Program fold(Program program) {
  Folder{program}.run();
  return compact(std::move(program));
}

}  // namespace mekik::program
