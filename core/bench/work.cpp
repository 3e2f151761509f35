#include "bench/work.hpp"

#include <algorithm>

namespace mekik::bench {
namespace {

using program::Op;
using program::Program;
using program::Tensor;

class Counter {
 public:
  Counter(const Program& program, const Step& step, const BytesOf& bytes_of, bool integers)
      : program_{program}, step_{step}, bytes_of_{bytes_of}, integers_{integers} {}

  Work of(const Op& op) const {
    namespace p = program;
    switch (op.code) {
      case p::op_linear:
      case p::op_linear_add:
      case p::op_linear_glu:
      case p::op_qkv_rope_append:
        return matrices(op, rows(op), 1, 1);
      case p::op_moe_linear:
      case p::op_moe_ffn: {
        const double top = op.code == p::op_moe_ffn ? static_cast<double>(op.ints[0]) : last_but_one(tensor(op.out[0]));
        return matrices(op, rows(op) * top, top, experts(op));
      }
      case p::op_attention:
      case p::op_attention_chunk:
        return attention(op, tensor(op.in[1]), static_cast<double>(op.ints[0]), static_cast<double>(op.ints[2]));
      case p::op_mla_attention:
        return latent(op);
      case p::op_attention_full:
      case p::op_attention_near: {
        const double each = step_.sequences > 0 ? step_.tokens / step_.sequences : 0;
        return {0, step_.tokens * each * (numbers(tensor(op.in[0])) + numbers(tensor(op.out[0]))), 0};
      }
      case p::op_conv_state:
        return {0, step_.tokens * numbers(tensor(op.in[1])), weight_bytes(op.in[1])};
      case p::op_ssm_scan:
        return state(op.in[6], 3);
      case p::op_gated_delta:
        return state(op.in[5], 4);
      default:
        return {};
    }
  }

 private:
  const Tensor& tensor(std::uint32_t i) const { return program_.tensors[i]; }
  static double numbers(const Tensor& t) {  // of a row
    double n = 1;
    for (const std::int64_t size : t.shape) n *= size > 0 ? static_cast<double>(size) : 1;
    return n;
  }
  static double last_but_one(const Tensor& t) { return t.shape.size() > 2 ? static_cast<double>(t.shape[t.shape.size() - 2]) : 1; }
  double rows(const Op& op) const {
    switch (tensor(op.out[0]).shape[0]) {
      case MEKIK_DIM_ROWS:
        return step_.rows;
      case MEKIK_DIM_SEQS:
        return step_.sequences;
      default:
        return step_.tokens;
    }
  }
  bool is_matrix(std::uint32_t i) const {
    return i != MEKIK_NONE && tensor(i).role == MEKIK_ROLE_WEIGHT && tensor(i).weight >= 0 && recipe(i).n > 1;
  }
  const program::WeightRecipe& recipe(std::uint32_t i) const { return program_.weights[static_cast<std::size_t>(tensor(i).weight)]; }
  double weight_bytes(std::uint32_t i) const { return numbers(tensor(i)) * bytes_of_(tensor(i).scheme); }
  double experts(const Op& op) const {
    double most = 1;
    for (const std::uint32_t i : op.in)
      if (is_matrix(i)) most = std::max(most, static_cast<double>(recipe(i).experts));
    return most;
  }
  // Each row meets one matrix of each stack. Of a stack, those are read that a row has chosen: `chosen` a row, as if no two rows agreed.
  Work matrices(const Op& op, double rows, double chosen, double stack) const {
    Work work;
    const double read = std::min(stack, std::max(rows, chosen)) / stack;
    for (const std::uint32_t i : op.in) {
      if (!is_matrix(i) || rows == 0) continue;
      const auto& w = recipe(i);
      const std::string& scheme = tensor(i).scheme;
      const bool floats = scheme == "f32" || scheme == "f16" || scheme == "bf16";
      (integers_ && !floats ? work.int8_products : work.f32_products) += rows * static_cast<double>(w.n) * static_cast<double>(w.k);
      work.bytes += weight_bytes(i) * read;
    }
    return work;
  }
  Work attention(const Op& op, const Tensor& kv, double dv, double window) const {
    const double seen = window > 0 ? std::min(window, step_.context) : step_.context;
    const double heads = static_cast<double>(tensor(op.in[0]).shape[1]), d = static_cast<double>(kv.shape[2]) - dv;
    return {0, step_.tokens * seen * heads * (d + dv), step_.sequences * seen * numbers(kv) * bytes_of_(kv.scheme)};
  }
  // Queries are brought to the latents' space, which keys and values share.
  Work latent(const Op& op) const {
    const Tensor &k = tensor(op.in[2]), &v = tensor(op.in[3]), &kv = tensor(op.in[4]);
    const double heads = static_cast<double>(tensor(op.in[0]).shape[1]), rank = static_cast<double>(op.ints[0]),
                 rest = static_cast<double>(op.ints[1]), window = static_cast<double>(op.ints[2]);
    const double seen = window > 0 ? std::min(window, step_.context) : step_.context;
    return {0, step_.tokens * (numbers(k) + numbers(v) + heads * seen * (2 * rank + rest)),
            weight_bytes(op.in[2]) + weight_bytes(op.in[3]) + step_.sequences * seen * numbers(kv) * bytes_of_(kv.scheme)};
  }
  // A recurrence reads and writes its state once a step, and does so many products a number of it for each token.
  Work state(std::uint32_t slot, double products) const {
    const double n = numbers(tensor(slot));
    return {0, step_.tokens * n * products, step_.sequences * n * 2 * sizeof(float)};
  }

  const Program& program_;
  const Step& step_;
  const BytesOf& bytes_of_;
  bool integers_;
};

}  // namespace

void Work::add(const Work& other, double times) {
  int8_products += times * other.int8_products;
  f32_products += times * other.f32_products;
  bytes += times * other.bytes;
}

std::vector<Work> work_of(const program::Program& program, const Step& step, const BytesOf& bytes_of, bool integers) {
  const Counter counter{program, step, bytes_of, integers};
  std::vector<Work> out;
  for (const Op& op : program.ops) out.push_back(counter.of(op));
  return out;
}

}  // namespace mekik::bench
