#include "reference/execute.hpp"

#include "reference/check.hpp"
#include "reference/operands.hpp"

namespace mekik::reference {

namespace {

Rows temporary(float*& scratch, std::size_t n, std::size_t outer, std::size_t last) {
  const Rows rows{scratch, n, outer * last, outer, last};
  scratch += n * outer * last;
  return rows;
}

// add and mul with a weight: one row for all, hence a stride of 0.
template <class F>
void with_addend(const Operands& o, std::uint32_t i, F&& f) {
  if (!o.is_weight(i)) return f(o.rows(i));
  Flat flat = o.flat(i);
  f(Rows{flat.data(), 0, 0, 1, flat.size()});
}

void run_linear(const Operands& o) {
  for (std::uint32_t i = 0; i < o.op().n_out; ++i) linear(o.rows(0), o.weight(1 + 2 * i), o.flat(2 + 2 * i), o.out(i), o.step().threads);
}

void run_linear_glu(const Operands& o) {
  float* scratch = o.scratch();
  const Rows y = o.out(), gate = temporary(scratch, y.n, y.outer, y.last), up = temporary(scratch, y.n, y.outer, y.last);
  linear(o.rows(0), o.weight(1), o.flat(2), gate, o.step().threads);
  linear(o.rows(0), o.weight(3), o.flat(4), up, o.step().threads);
  glu(gate, up, o.whole(0), o.real(0), o.real(1), y);
}

void run_attention(const Operands& o) {
  const bool chunks = o.op().code == op::attention_chunk;
  const auto reach = static_cast<std::uint64_t>(o.whole(2));
  const AttentionOptions options{
      static_cast<std::size_t>(o.whole(0)), o.whole(1) != 0, chunks ? 0 : reach, o.real(0), o.real(1), chunks ? reach : 0};
  attention(o.rows(0), o.state(1), o.flat(2), o.flat(3), options, o.step(), o.out());
}

void run_qkv(const Operands& o) {
  float* scratch = o.scratch();
  const Rows x = o.rows(0), q = o.out();
  const State& state = o.state(11);
  const std::size_t d = q.last, dv = state.size / state.heads - d;
  const Rows k = temporary(scratch, x.n, state.heads, d), v = temporary(scratch, x.n, state.heads, dv);
  const Flat table = o.flat(9);
  const auto turned = [&](std::uint32_t w, std::uint32_t norm, const Rows& y) {
    linear(x, o.weight(w), o.flat(w + 1), y, o.step().threads);
    if (o.has(norm)) rms_norm(y, o.flat(norm), o.real(0), y);
    rope(y, table, o.axes(), o.whole(0), o.whole(1), o.real(1), y);
  };
  turned(1, 7, q);
  turned(3, 8, k);
  linear(x, o.weight(5), o.flat(6), v, o.step().threads);
  kv_append(k, v, state, o.step());
}

RouteOptions route_options(const Operands& o) {
  return {o.whole(0), o.whole(1), o.whole(2), o.whole(3), o.whole(4), o.whole(5) != 0, o.real(0)};
}

void run_moe_ffn(const Operands& o) {
  float* scratch = o.scratch();
  const Rows x = o.rows(0);
  const std::size_t top = static_cast<std::size_t>(o.whole(0)), wide = o.weight(3).form().n;
  const Rows places = temporary(scratch, x.n, 1, top), weights = temporary(scratch, x.n, 1, top);
  const Matrix<std::int32_t> chosen{reinterpret_cast<std::int32_t*>(places.data), x.n, top, 1, top};
  const Ids ids{chosen.data, x.n, top, 1, top};
  const Rows gate = temporary(scratch, x.n, top, wide), up = temporary(scratch, x.n, top, wide);
  const Rows down = temporary(scratch, x.n, top, o.weight(7).form().n);
  const Threads& threads = o.step().threads;
  moe_route(o.rows(1), o.flat(2), route_options(o), chosen, weights);
  moe_linear(x, o.weight(3), ids, o.flat(4), gate, threads);
  moe_linear(x, o.weight(5), ids, o.flat(6), up, threads);
  glu(gate, up, o.whole(6), o.real(1), o.real(2), gate);
  moe_linear(gate, o.weight(7), ids, o.flat(8), down, threads);
  moe_combine(down, &weights, o.out());
}

void run_family(const Operands& o) {
  switch (o.op().code) {
    case op::layer_norm:
      return layer_norm(o.rows(0), o.flat(1), o.flat(2), o.real(0), o.out());
    case op::moe_route:
      return moe_route(o.rows(0), o.flat(1), route_options(o), o.out_ids(), o.out(1));
    case op::moe_linear:
      return moe_linear(o.rows(0), o.weight(1), o.ids(2), o.flat(3), o.out(), o.step().threads);
    case op::moe_combine: {
      const Rows weights = o.has(1) ? o.rows(1) : Rows{};
      return moe_combine(o.rows(0), o.has(1) ? &weights : nullptr, o.out());
    }
    case op::moe_scale:
      return moe_scale(o.rows(0), o.ids(1), o.flat(2), o.out());
    case op::moe_spread:
      return moe_spread(o.rows(0), o.rows(1), o.out());
    case op::moe_route_mixer:
      return moe_route_mixer(o.rows(0), o.real(0), o.out_ids(), o.out(1));
    case op::mean:
      return mean(o.rows(0), o.out());
    case op::concat:
      return concat(o.rows(0), o.rows(1), o.out());
    case op::position_scale:
      return position_scale(o.rows(0), o.axes().positions, o.whole(0), o.real(0), o.real(1), o.out());
    case op::attention_chunk:
      return run_attention(o);
    case op::attention_near: {
      const NearOptions options{static_cast<std::uint64_t>(o.whole(0)), o.real(0), o.real(1)};
      return attention_near(o.rows(0), o.rows(1), o.rows(2), o.ids(3), o.flat(4), o.flat(5), options, o.step().threads, o.out());
    }
    case op::mla_append:
      return kv_append(o.rows(0), o.rows(1), o.state(2), o.step());
    case op::mla_attention: {
      const MlaOptions options{static_cast<std::size_t>(o.whole(0)), static_cast<std::size_t>(o.whole(1)),
                               static_cast<std::uint64_t>(o.whole(2)), o.real(0)};
      return mla_attention(o.rows(0), o.rows(1), o.weight(2), o.weight(3), o.state(4), options, o.step(), o.out());
    }
    case op::conv_state:
      return conv_state(o.rows(0), o.flat(1), o.flat(2), o.whole(0), o.slot(3), o.scratch(), o.step(), o.out());
    case op::ssm_scan:
      return ssm_scan({o.rows(0), o.rows(1), o.rows(3), o.rows(4), o.flat(2), o.flat(5)}, o.slot(6), o.scratch(), o.step(), o.out());
    case op::gated_delta:
      return gated_delta({o.rows(0), o.rows(1), o.rows(2), o.rows(3), o.rows(4), o.whole(0) == 1, o.real(0)}, o.slot(5), o.scratch(),
                         o.step(), o.out());
    case op::attention_full:
      return attention_full(o.rows(0), o.rows(1), o.rows(2), o.ids(3), o.real(0), o.step().threads, o.out());
    case op::pool:
      return pool(o.rows(0), o.whole(0), o.step(), o.out());
    case op::l2_norm:
      return l2_norm(o.rows(0), o.real(0), o.out());
    case op::embed_mix:
      return embed_mix(o.ids(0), o.rows(1), o.weight(2), o.out());
    default:
      return;
  }
}

void run_composite(const Operands& o) {
  switch (o.op().code) {
    case op::glu:
      return glu(o.rows(0), o.rows(1), o.whole(0), o.real(0), o.real(1), o.out());
    case op::add_norm:
      with_addend(o, 1, [&](const Rows& b) { add(o.rows(0), b, o.out(0)); });
      return rms_norm(o.out(0), o.flat(2), o.real(0), o.out(1));
    case op::norm_rope:
      rms_norm(o.rows(0), o.flat(1), o.real(0), o.out());
      return rope(o.out(), o.flat(2), o.axes(), o.whole(0), o.whole(1), o.real(1), o.out());
    case op::softcap:
      return softcap(o.rows(0), o.real(0), o.out());
    case op::linear_add:
      linear(o.rows(0), o.weight(1), o.flat(2), o.out(), o.step().threads);
      return add(o.out(), o.rows(3), o.out());
    case op::linear_glu:
      return run_linear_glu(o);
    case op::qkv_rope_append:
      return run_qkv(o);
    case op::moe_ffn:
      return run_moe_ffn(o);
    default:
      return run_family(o);
  }
}

// Tokens that come as embeddings take their row of the batch instead; their id is not looked at.
void run_embed(const Operands& o) {
  const mekik_batch& b = *o.step().batch;
  const Rows y = o.out();
  const Ids ids = o.ids(0);
  if (b.embed_rows == nullptr || ids.data != b.token_ids) return embed(ids, o.weight(1), y);
  for (std::size_t t = 0; t < y.n; ++t) {
    const std::int32_t from = b.embed_rows[t];
    if (from >= 0) std::copy_n(b.embeds + static_cast<std::size_t>(from) * y.size(), y.size(), y.row(t));
    else embed({ids.row(t), 1, 1, 1, 1}, o.weight(1), {y.row(t), 1, y.stride, 1, y.size()});
  }
}

}  // namespace

void execute(const ProgramReader& program, std::uint32_t index, const Memory& memory, const Step& step) {
  const Operands o{program, index, memory, step};
  switch (o.op().code) {
    case op::embed:
      return run_embed(o);
    case op::linear:
      return run_linear(o);
    case op::rms_norm:
      return rms_norm(o.rows(0), o.flat(1), o.real(0), o.out());
    case op::add:
      return with_addend(o, 1, [&](const Rows& b) { add(o.rows(0), b, o.out()); });
    case op::mul:
      return with_addend(o, 1, [&](const Rows& b) { mul(o.rows(0), b, o.out()); });
    case op::act:
      return act(o.rows(0), o.whole(0), o.out());
    case op::scale:
      return scale(o.rows(0), o.real(0), o.real(1), o.out());
    case op::rope:
      return rope(o.rows(0), o.flat(1), o.axes(), o.whole(0), o.whole(1), o.real(0), o.out());
    case op::kv_append:
      return kv_append(o.rows(0), o.rows(1), o.state(2), o.step());
    case op::attention:
      return run_attention(o);
    case op::take_rows:
      return take_rows(o.rows(0), o.ids(1), o.out());
    case op::cast:
      return cast(o.rows(0), static_cast<std::uint32_t>(o.whole(0)), o.out());
    case op::softmax:
      return softmax(o.rows(0), o.out());
    case op::argmax:
      return argmax(o.rows(0), o.out_ids());
    case op::clamp:
      return clamp(o.rows(0), o.real(0), o.real(1), o.out());
    case op::put_rows: {
      const Rows replacement = o.has(1) ? o.rows(1) : Rows{};
      return put_rows(o.rows(0), o.has(1) ? &replacement : nullptr, o.has(1) ? o.ids(2) : Ids{}, o.whole(0) == 1, o.out());
    }
    default:
      return run_composite(o);
  }
}

}  // namespace mekik::reference
