// The lower pass: composites that a backend does not offer become what they are made of.
#include <cmath>
#include <limits>

#include "base/text.hpp"
#include "program/program.hpp"

namespace mekik::program {

namespace {

class Decomposer {
 public:
  Decomposer(Program& program, const Op& op, std::vector<Op>& out) : p_{program}, op_{op}, out_{out} {}

  // False: the operation is no composite.
  bool run() {
    switch (op_.code) {
      case op_glu:
        glu();
        return true;
      case op_add_norm:
        emit(op_add, {in(0), in(1)}, {op_.out[0]});
        emit(op_rms_norm, {op_.out[0], in(2)}, {op_.out[1]}, {}, {op_.reals[0]});
        return true;
      case op_norm_rope: {
        const std::uint32_t normed = like(op_.out[0], "norm");
        emit(op_rms_norm, {in(0), in(1)}, {normed}, {}, {op_.reals[0]});
        emit(op_rope, {normed, in(2), in(3)}, op_.out, op_.ints, {op_.reals[1]});
        return true;
      }
      case op_softcap: {
        const double c = op_.reals[0];
        const std::uint32_t small = like(op_.out[0], "scale"), bent = like(op_.out[0], "tanh");
        emit(op_scale, {in(0)}, {small}, {}, {1 / c, 0});
        emit(op_act, {small}, {bent}, {8});
        emit(op_scale, {bent}, op_.out, {}, {c, 0});
        return true;
      }
      case op_linear_add: {
        const std::uint32_t product = like(op_.out[0], "linear");
        emit(op_linear, {in(0), in(1), in(2)}, {product});
        emit(op_add, {product, in(3)}, op_.out);
        return true;
      }
      case op_linear_glu: {
        const std::uint32_t gate = like(op_.out[0], "gate"), up = like(op_.out[0], "up");
        emit(op_linear, {in(0), in(1), in(2), in(3), in(4)}, {gate, up});
        emit(op_glu, {gate, up}, op_.out, op_.ints, op_.reals);
        return true;
      }
      case op_qkv_rope_append:
        qkv();
        return true;
      case op_moe_ffn:
        moe();
        return true;
      default:
        return false;
    }
  }

 private:
  std::uint32_t in(std::size_t i) const { return op_.in[i]; }
  std::uint32_t temp(std::vector<std::int64_t> shape, const char* base) {
    Tensor tensor;
    tensor.name = p_.tensors[op_.out[0]].name + "." + base;
    tensor.shape = std::move(shape);
    p_.tensors.push_back(std::move(tensor));
    return static_cast<std::uint32_t>(p_.tensors.size() - 1);
  }
  std::uint32_t like(std::uint32_t tensor, const char* base) { return temp(p_.tensors[tensor].shape, base); }
  void emit(std::uint32_t code, std::vector<std::uint32_t> ins, std::vector<std::uint32_t> outs, std::vector<std::int64_t> ints = {},
            std::vector<double> reals = {}) {
    Op op = op_;
    op.code = code;
    op.in = std::move(ins);
    op.out = std::move(outs);
    op.ints = std::move(ints);
    op.reals = std::move(reals);
    out_.push_back(std::move(op));
  }

  void glu() {
    const std::uint32_t out = op_.out[0];
    if (op_.ints[0] == 16) {
      const double limit = op_.reals[0], alpha = op_.reals[1];
      const std::uint32_t g = like(out, "gate"), u = like(out, "up"), a = like(out, "scale"), s = like(out, "sigmoid"),
                          gs = like(out, "open"), u1 = like(out, "up1");
      emit(op_clamp, {in(0)}, {g}, {}, {-std::numeric_limits<double>::infinity(), limit});
      emit(op_clamp, {in(1)}, {u}, {}, {-limit, limit});
      emit(op_scale, {g}, {a}, {}, {alpha, 0});
      emit(op_act, {a}, {s}, {7});
      emit(op_mul, {g, s}, {gs});
      emit(op_scale, {u}, {u1}, {}, {1, 1});
      emit(op_mul, {gs, u1}, op_.out);
      return;
    }
    const std::uint32_t bent = op_.ints[0] == 0 ? in(0) : like(out, "act");
    if (op_.ints[0] != 0) emit(op_act, {in(0)}, {bent}, {op_.ints[0]});
    emit(op_mul, {bent, in(1)}, op_.out);
  }

  void qkv() {
    const std::vector<std::int64_t> q_shape = p_.tensors[op_.out[0]].shape, state = p_.tensors[in(11)].shape;
    const std::int64_t d = q_shape.back(), heads = state[1];
    const std::uint32_t q = like(op_.out[0], "q"), k = temp({q_shape[0], heads, d}, "k"), v = temp({q_shape[0], heads, state[2] - d}, "v"),
                        k_turned = temp({q_shape[0], heads, d}, "k_rope");
    emit(op_linear, {in(0), in(1), in(2), in(3), in(4), in(5), in(6)}, {q, k, v});
    const auto turn = [&](std::uint32_t from, std::uint32_t norm, std::uint32_t to) {
      if (norm == MEKIK_NONE) emit(op_rope, {from, in(9), in(10)}, {to}, op_.ints, {op_.reals[1]});
      else emit(op_norm_rope, {from, norm, in(9), in(10)}, {to}, op_.ints, op_.reals);
    };
    turn(q, in(7), op_.out[0]);
    turn(k, in(8), k_turned);
    emit(op_kv_append, {k_turned, v, in(11)}, {});
  }

  void moe() {
    const std::int64_t first = p_.tensors[op_.out[0]].shape[0], top = op_.ints[0], width = p_.tensors[op_.out[0]].shape.back();
    const auto wide = static_cast<std::int64_t>(p_.weights[static_cast<std::size_t>(p_.tensors[in(3)].weight)].n);
    const std::uint32_t ids = temp({first, top}, "ids"), weights = temp({first, top}, "weights"), gate = temp({first, top, wide}, "gate"),
                        up = temp({first, top, wide}, "up"), open = temp({first, top, wide}, "glu"),
                        down = temp({first, top, width}, "down");
    p_.tensors[ids].scheme = "i32";
    emit(op_moe_route, {in(1), in(2)}, {ids, weights}, {op_.ints.begin(), op_.ints.begin() + 6}, {op_.reals[0]});
    emit(op_moe_linear, {in(0), in(3), ids, in(4)}, {gate});
    emit(op_moe_linear, {in(0), in(5), ids, in(6)}, {up});
    emit(op_glu, {gate, up}, {open}, {op_.ints[6]}, {op_.reals[1], op_.reals[2]});
    emit(op_moe_linear, {open, in(7), ids, in(8)}, {down});
    emit(op_moe_combine, {down, weights}, op_.out);
  }

  Program& p_;
  const Op op_;
  std::vector<Op>& out_;
};

Status refusal(const Program& program, std::uint32_t op, std::string_view backend, const Supports& supports,
               const std::function<std::string()>& why) {
  const OpInfo* info = op_info(program.ops[op].code);
  const bool asked_again = supports(op);  // so that `why` speaks of this operation
  const std::string reason = asked_again ? std::string{} : why();
  return unsupported("backend " + mekik::quoted(backend) + " cannot run " + (info != nullptr ? info->name : "an unknown operation") +
                     " (layer " + std::to_string(program.ops[op].layer) + " of page " + program.page + ")" +
                     (reason.empty() ? "" : ": " + reason));
}

}  // namespace

Result<Program> lower(Program program, std::string_view backend, const std::function<Supports(const Program&)>& ask,
                      const std::function<std::string()>& why) {
  std::vector<bool> asked(program.ops.size(), false);
  for (;;) {  // what a composite is made of may be composite itself; each round has fewer of them
    const Supports supports = ask(program);
    std::vector<std::uint32_t> refused;
    for (std::uint32_t i = 0; i < program.ops.size(); ++i)
      if (!asked[i] && !supports(i)) refused.push_back(i);
    if (refused.empty()) return program;
    for (const std::uint32_t i : refused)
      if (program.ops[i].code < op_glu || program.ops[i].code > op_moe_ffn) return refusal(program, i, backend, supports, why);
    std::vector<Op> ops;
    std::vector<bool> known;
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      if (next == refused.size() || refused[next] != i) {
        ops.push_back(std::move(program.ops[i]));
        known.push_back(true);
        continue;
      }
      ++next;
      if (!Decomposer{program, program.ops[i], ops}.run()) return internal_error("a composite without its decomposition");
      known.resize(ops.size(), false);
    }
    program.ops = std::move(ops);
    asked = std::move(known);
  }
}

}  // namespace mekik::program
