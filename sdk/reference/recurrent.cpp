// Layout: a slot holds the states of one sequence; conv [c][taps - 1], oldest input first; ssm [h][p][n]; delta [hv][dk][dv]; F32.
// The states a step starts from are read before any is written: a slot may be one sequence's input and another's output.
#include <cmath>
#include <cstring>

#include "reference/ops.hpp"

namespace mekik::reference {

namespace {

// Runs token(t, state of its sequence) over every sequence in order, on independent pieces: piece p owns the state's numbers
// [p * each, (p + 1) * each). Saves them where the batch says.
template <class F>
void over_tokens(const Slot& slot, float* work, const Step& step, std::size_t pieces, F&& token) {
  const mekik_batch& b = *step.batch;
  const std::size_t each_piece = slot.size / pieces;
  for (std::uint32_t seq = 0; seq < b.n_seqs; ++seq) {
    float* state = work + seq * slot.size;
    if (b.state_in[seq] < 0) std::fill(state, state + slot.size, 0.0f);
    else std::memcpy(state, slot.at(b.state_in[seq]), slot.size * sizeof(float));
  }
  each(step.threads, b.n_seqs * pieces, [&](std::size_t unit) {
    const auto seq = static_cast<std::uint32_t>(unit / pieces);
    const std::size_t piece = unit % pieces;
    float* state = work + seq * slot.size + piece * each_piece;
    for (std::uint64_t t = step.begin(seq); t < step.end(seq); ++t) {
      token(t, piece, state);
      if (b.state_out[t] >= 0) std::memcpy(slot.at(b.state_out[t]) + piece * each_piece, state, each_piece * sizeof(float));
    }
  });
}

}  // namespace

void conv_state(const Rows& x, const Flat& w, const Flat& bias, std::int64_t kind, const Slot& slot, float* work, const Step& step,
                const Rows& y) {
  const std::size_t channels = x.size(), taps = w.size() / channels;
  over_tokens(slot, work, step, channels, [&](std::uint64_t t, std::size_t c, float* past) {
    const float now = x.row(t)[c];
    double sum = 0;
    for (std::size_t i = 0; i + 1 < taps; ++i) sum += static_cast<double>(past[i]) * w[c * taps + i];
    auto value = static_cast<float>(sum + static_cast<double>(now) * w[c * taps + taps - 1]);
    if (!bias.empty()) value += bias[c];
    y.row(t)[c] = activate(kind, value);
    for (std::size_t i = 0; i + 2 < taps; ++i) past[i] = past[i + 1];
    if (taps > 1) past[taps - 2] = now;
  });
}

void ssm_scan(const SsmInputs& in, const Slot& slot, float* work, const Step& step, const Rows& y) {
  const std::size_t heads = in.x.outer, p = in.x.last, n = in.b.last, shared = heads / in.b.outer;
  const bool per_column = in.a.size() != heads;
  over_tokens(slot, work, step, heads, [&](std::uint64_t t, std::size_t h, float* state) {
    const float* b = in.b.row(t) + h / shared * n;
    const float* c = in.c.row(t) + h / shared * n;
    const double dt = in.dt.row(t)[h];
    for (std::size_t i = 0; i < p; ++i) {
      const double x = in.x.row(t)[h * p + i];
      double sum = 0;
      for (std::size_t j = 0; j < n; ++j) {
        const double a = in.a[per_column ? h * n + j : h];
        float& s = state[i * n + j];
        s = static_cast<float>(s * std::exp(dt * a) + dt * b[j] * x);
        sum += static_cast<double>(s) * c[j];
      }
      y.row(t)[h * p + i] = static_cast<float>(sum + x * in.d[h]);
    }
  });
}

void gated_delta(const DeltaInputs& in, const Slot& slot, float* work, const Step& step, const Rows& y) {
  const std::size_t hk = in.k.outer, dk = in.k.last, hv = in.v.outer, dv = in.v.last;
  const bool per_row = in.decay.size() != hv;
  over_tokens(slot, work, step, hv, [&](std::uint64_t t, std::size_t h, float* state) {
    const std::size_t key_head = in.tiled ? h % hk : h / (hv / hk);
    const float* k = in.k.row(t) + key_head * dk;
    const float* q = in.q.row(t) + key_head * dk;
    std::vector<double> decay(dk);
    for (std::size_t i = 0; i < dk; ++i) decay[i] = std::exp(static_cast<double>(in.decay.row(t)[per_row ? h * dk + i : h]));
    const double beta = in.beta.row(t)[h];
    for (std::size_t c = 0; c < dv; ++c) {
      double seen = 0, out = 0;
      for (std::size_t i = 0; i < dk; ++i) seen += state[i * dv + c] * decay[i] * k[i];
      const double delta = (in.v.row(t)[h * dv + c] - seen) * beta;
      for (std::size_t i = 0; i < dk; ++i) {
        float& s = state[i * dv + c];
        s = static_cast<float>(s * decay[i] + k[i] * delta);
        out += static_cast<double>(s) * q[i];
      }
      y.row(t)[h * dv + c] = static_cast<float>(out * in.scale);
    }
  });
}

}  // namespace mekik::reference
