#include "plan.hpp"

#include <algorithm>
#include <cstring>

#include "planner.hpp"

namespace mekik::vulkan {

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > (std::uint64_t{1} << 62))
    throw Error{MEKIK_E_NO_MEMORY, "the limits ask for more memory than can be counted"};
  return product;
}

void Dispatch::set_float(std::uint32_t word, double value) {
  const auto narrow = static_cast<float>(value);
  std::memcpy(reinterpret_cast<std::uint32_t*>(&push) + word, &narrow, sizeof narrow);
}

void Planner::run() {
  check_limits();
  check();
  plan_.weights.resize(raw_.n_tensors);
  plan_.buffer_of.assign(raw_.n_tensors, kNone);
  plan_.states.resize(raw_.n_tensors);
  plan_.slots.resize(raw_.n_tensors);
  place_batch();
  for (std::uint32_t o = 0; o < raw_.n_ops; ++o) add(o);
  place_weights();
  place_states();
  place_buffers();
  identify();
}

void Planner::check_limits() const {
  if (limits_.struct_size < sizeof(mekik_limits)) throw Error{MEKIK_E_INVALID, "the limits are smaller than this backend knows them"};
  if (limits_.block_tokens == 0 || limits_.max_tokens == 0 || limits_.max_seqs == 0) throw Error{MEKIK_E_INVALID, "limits of 0 tokens"};
  if (limits_.max_tokens > (1u << 20) || limits_.max_seqs > (1u << 20) || limits_.max_rows > (1u << 20) ||
      limits_.block_tokens > (1u << 20))
    throw Error{MEKIK_E_INVALID, "limits of more than 2^20 tokens"};
  if (limits_.n_adapters != 0) throw Error{MEKIK_E_UNSUPPORTED, "the backend vulkan has no adapters"};
}

void Planner::check() const {
  if (const std::string why = check_tensors(raw_); !why.empty()) throw Error{MEKIK_E_INVALID, why};
  for (std::uint32_t o = 0; o < raw_.n_ops; ++o)
    if (const std::string why = why_not(program_, o); !why.empty()) throw Error{MEKIK_E_UNSUPPORTED, describe_op(program_, o) + ": " + why};
  for (std::uint32_t i = 0; i < raw_.n_tensors; ++i) {
    const mekik_tensor& t = tensor(i);
    const std::string name = "\"" + std::string{program_.name(i)} + "\"";
    if (t.role == MEKIK_ROLE_WEIGHT && t.form == nullptr) throw Error{MEKIK_E_INVALID, "weight " + name + " has no form"};
    if (t.role == MEKIK_ROLE_OUTPUT &&
        (!is_output_name(program_.name(i)) || (t.shape[0] != MEKIK_DIM_ROWS && t.shape[0] != MEKIK_DIM_SEQS)))
      throw Error{MEKIK_E_UNSUPPORTED, "output " + name + " is not known"};
    if (t.role == MEKIK_ROLE_INPUT && (t.rank != 1 || t.shape[0] != (program_.name(i) == "rows" ? MEKIK_DIM_ROWS : MEKIK_DIM_TOKENS)))
      throw Error{MEKIK_E_INVALID, "input " + name + " does not have its shape"};
  }
}

void Planner::place_batch() {
  BatchPlan& b = plan_.batch;
  const auto take = [&](std::uint64_t words) {
    const std::uint64_t at = b.words;
    b.words += words;
    return at;
  };
  const std::uint64_t tokens = limits_.max_tokens, seqs = limits_.max_seqs;
  b.tokens = take(tokens);
  b.positions = take(tokens);
  b.segments = take(tokens);
  b.token_types = take(tokens);
  b.state_out = take(tokens);
  b.embed_rows = take(tokens);
  b.rows = take(limits_.max_rows);
  b.starts = take(seqs + 1);
  b.contexts = take(seqs);
  b.state_in = take(seqs);
  for (std::uint32_t g = 0; g < raw_.n_groups; ++g) b.blocks[g] = take(times(seqs, limits_.max_blocks));
}

// ---- what every operation needs
Dispatch& Planner::open(std::string shader, std::int64_t rows, std::uint64_t each, bool joins) {
  if (!joins || plan_.dispatches.empty()) ++moment_;
  Dispatch& d = plan_.dispatches.emplace_back();
  d.shader = std::move(shader);
  d.domain = rows;
  d.each = each;
  d.joins = joins;
  if (times(plan_.max_rows(rows), each) > (std::uint64_t{1} << 31))
    throw Error{MEKIK_E_UNSUPPORTED, "a step of more than 2^31 numbers: fewer tokens a step are needed (scheduler.max_batch_tokens)"};
  return d;
}

std::uint32_t Planner::new_buffer(std::int64_t rows, std::uint64_t numbers) {
  StepBuffer b;
  b.stride = round_up(numbers, 4);
  b.bytes = times(times(plan_.max_rows(rows), b.stride), sizeof(float));
  plan_.buffers.push_back(b);
  return static_cast<std::uint32_t>(plan_.buffers.size() - 1);
}

void Planner::patch(Dispatch& d, Patch::Kind kind, std::uint32_t word, Ref ref) {
  d.patches.push_back({kind, word, ref});
  if (kind == Patch::Kind::vector) return;
  StepBuffer& b = plan_.buffers[ref.buffer];
  if (b.first == 0) b.first = moment_;
  b.last = std::max(b.last, moment_);
}

void Planner::bind(Dispatch& d, std::uint32_t operand, Ref ref) {
  d.operand[operand] = ref.buffer;
  patch(d, Patch::Kind::offset, kO + 2 * operand, ref);
  patch(d, Patch::Kind::stride, kOs + 2 * operand, ref);
}

void Planner::vector(Dispatch& d, std::uint32_t word, std::uint32_t weight) {
  if (weight == kNone) return d.set(word, kNone);
  plan_.weights[weight].vector = true;
  patch(d, Patch::Kind::vector, word, {weight, 0});
}

Ref Planner::read(std::uint32_t t, std::uint32_t o) {
  const Root r = *root_of(program_, t);
  if (plan_.buffer_of[r.tensor] == kNone)
    throw Error{MEKIK_E_INVALID, describe_op(program_, o) + ": reads " + std::string{program_.name(r.tensor)} + " before it is written"};
  return {plan_.buffer_of[r.tensor], r.column};
}

Ref Planner::write(std::uint32_t t, std::uint32_t o) {
  if (!written_.emplace(t, o).second)
    throw Error{MEKIK_E_INVALID, describe_op(program_, o) + ": writes " + std::string{program_.name(t)} + " again"};
  const std::uint32_t b = new_buffer(domain(t), row(t));
  if (tensor(t).role == MEKIK_ROLE_OUTPUT) {
    plan_.buffers[b].output = true;
    plan_.buffers[b].stride = row(t);
    plan_.buffers[b].bytes = times(times(plan_.max_rows(domain(t)), row(t)), sizeof(float));
  }
  plan_.buffer_of[t] = b;
  return {b, 0};
}

WeightPlan& Planner::matrix(std::uint32_t t, std::uint64_t experts, bool plain) {
  WeightPlan& w = plan_.weights[t];
  const WeightLayout layout = lay_out(*tensor(t).form, experts, plain);
  if (w.matrix && (w.layout.experts != experts || w.layout.decoded != layout.decoded))
    throw Error{MEKIK_E_UNSUPPORTED,
                "weight \"" + std::string{program_.name(t)} + "\" is read in two ways that this backend does not have at once"};
  w.matrix = true;
  w.layout = layout;
  return w;
}

void Planner::bind_weight(Dispatch& d, std::uint32_t weight) {
  const WeightLayout& w = plan_.weights[weight].layout;
  d.weight = weight;
  d.set_float(kF0, w.zero);
}

std::vector<std::uint32_t> Planner::form_constants(const WeightPlan& w) const {
  const WeightLayout& l = w.layout;
  return {static_cast<std::uint32_t>(l.kind),
          l.group != 0 ? l.group : 4u,
          l.least ? 1u : 0u,
          l.zero_mode,
          l.lookup ? 1u : 0u,
          l.round,
          l.tensor_scale ? 1u : 0u};
}

void Planner::add(std::uint32_t o) {
  const mekik_op& op = program_.op(o);
  switch (op.code) {
    case op::embed:
    case op::embed_mix:
      return add_embed(o);
    case op::linear:
    case op::linear_add:
    case op::linear_glu:
      return add_linear(o);
    case op::rms_norm:
    case op::layer_norm:
    case op::l2_norm:
    case op::mean:
    case op::softmax:
    case op::add_norm:
    case op::norm_rope:
      return add_norm_op(o);
    case op::rope:
      return add_rope(o);
    case op::kv_append:
    case op::mla_append:
      return add_append(o);
    case op::attention:
    case op::attention_chunk:
      return add_attention(o);
    case op::attention_full:
    case op::attention_near:
      return add_full(o);
    case op::mla_attention:
      return add_latent(o);
    case op::argmax:
      return add_argmax(o);
    case op::take_rows:
    case op::put_rows:
      return add_rows(o);
    case op::pool:
      return add_pool(o);
    case op::moe_route:
    case op::moe_route_mixer:
      return add_route(o);
    case op::moe_linear:
      return add_experts(o);
    case op::conv_state:
    case op::ssm_scan:
    case op::gated_delta:
      return add_scan(o);
    default:
      return add_map(o);
  }
}

Plan::Plan(const mekik_program& program, const mekik_limits& l, const DeviceLimits& device) : limits{l} {
  Planner{program, device, *this}.run();
}

}  // namespace mekik::vulkan
