// Layout: a state row holds g heads of d + dv numbers in the state's form, the key first; it is read back as it was stored, for
// the tokens of the same step too. Each (token, head) is computed alone over the rows it sees, in ascending order.
#include <bit>
#include <cmath>
#include <limits>

#include "reference/ops.hpp"

namespace mekik::reference {

namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

// Place of token i of a sequence's step among the stored rows, for windows and slopes. In a tree it is the depth that counts.
struct Places {
  const Step& step;
  std::uint32_t seq;
  std::uint64_t token(std::uint64_t i) const {
    const auto* tree = step.batch->tree;
    if (tree == nullptr) return step.context(seq) + i;
    const std::uint64_t before = (std::uint64_t{1} << i) - 1;
    return step.context(seq) + static_cast<std::uint64_t>(std::popcount(tree[step.begin(seq) + i] & before));
  }
  std::uint64_t stored(std::uint64_t row) const { return row < step.context(seq) ? row : token(row - step.context(seq)); }
};

// Does token i of the step see row `row` of its sequence?
bool sees(const Places& p, std::uint64_t i, std::uint64_t row, bool causal, std::uint64_t window, std::uint64_t chunk = 0) {
  const std::uint64_t context = p.step.context(p.seq), first = p.step.begin(p.seq);
  bool visible = !causal || row <= context + i;
  if (row >= context) {
    const std::uint64_t j = row - context;
    if (p.step.batch->tree != nullptr) visible = (p.step.batch->tree[first + i] >> j & 1) != 0;
    const auto* spans = p.step.batch->spans;
    if (spans != nullptr && spans[first + i] >= 0 && spans[first + i] == spans[first + j]) visible = true;
  }
  if (chunk != 0 && p.stored(row) / chunk != p.token(i) / chunk) return false;
  return visible && (window == 0 || p.stored(row) + window > p.token(i));
}

// Softmax over scores, weighted sum of values. A sink is one more score that has no value.
template <class Value>
void weigh(const std::vector<double>& scores, const float* sink, std::size_t dv, Value&& value, std::vector<double>& out) {
  double most = sink != nullptr ? *sink : kLowest, sum = 0;
  for (const double s : scores) most = std::fmax(most, s);
  if (sink != nullptr) sum = std::exp(*sink - most);
  out.assign(dv, 0.0);
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const double p = std::exp(scores[j] - most);
    sum += p;
    for (std::size_t c = 0; c < dv; ++c) out[c] += p * value(j, c);
  }
  for (double& o : out) o /= sum;
}

}  // namespace

void kv_append(const Rows& k, const Rows& v, const State& state, const Step& step) {
  for (std::uint64_t t = 0; t < step.n_tokens(); ++t) {
    const std::uint32_t seq = step.seq_of[t];
    std::byte* row = state.row(step, seq, step.context(seq) + t - step.begin(seq));
    for (std::size_t g = 0; g < state.heads; ++g) {
      const std::size_t at = g * (k.size() + v.size()) / state.heads, d = k.size() / state.heads, dv = v.size() / state.heads;
      for (std::size_t j = 0; j < d; ++j) store_num(state.num, row, at + j, k.row(t)[g * d + j]);
      for (std::size_t j = 0; j < dv; ++j) store_num(state.num, row, at + d + j, v.row(t)[g * dv + j]);
    }
  }
}

void attention(const Rows& q, const State& state, const Flat& sinks, const Flat& slopes, const AttentionOptions& options, const Step& step,
               const Rows& y) {
  const std::size_t d = q.last, dv = options.dv, shared = q.outer / state.heads;  // query heads to one key head
  each(step.threads, y.n * q.outer, [&](std::size_t unit) {
    const std::size_t t = unit / q.outer, h = unit % q.outer, at = h / shared * (d + dv);
    const std::uint32_t seq = step.seq_of[t];
    const std::uint64_t i = t - step.begin(seq), end = step.context(seq) + step.end(seq) - step.begin(seq);
    const Places places{step, seq};
    const float* query = q.row(t) + h * d;
    std::vector<double> scores, out;
    std::vector<const std::byte*> rows;
    for (std::uint64_t row = 0; row < end; ++row) {
      if (!sees(places, i, row, options.causal, options.window, options.chunk)) continue;
      const std::byte* stored = state.row(step, seq, row);
      double s = 0;
      for (std::size_t j = 0; j < d; ++j) s += static_cast<double>(query[j]) * load_num(state.num, stored, at + j);
      s *= options.scale;
      if (options.softcap != 0) s = options.softcap * std::tanh(s / options.softcap);
      if (!slopes.empty()) s += slopes[h] * (static_cast<double>(places.stored(row)) - static_cast<double>(places.token(i)));
      scores.push_back(s);
      rows.push_back(stored);
    }
    const auto value = [&](std::size_t j, std::size_t c) { return static_cast<double>(load_num(state.num, rows[j], at + d + c)); };
    weigh(scores, sinks.empty() ? nullptr : &sinks[h], dv, value, out);
    for (std::size_t c = 0; c < dv; ++c) y.row(t)[h * dv + c] = static_cast<float>(out[c]);
  });
}

void attention_full(const Rows& q, const Rows& k, const Rows& v, const Ids& segments, double scale, const Threads& threads, const Rows& y) {
  attention_near(q, k, v, segments, {}, {}, {0, scale, 0}, threads, y);
}

void attention_near(const Rows& q, const Rows& k, const Rows& v, const Ids& segments, const Flat& sinks, const Flat& slopes,
                    const NearOptions& options, const Threads& threads, const Rows& y) {
  const std::size_t d = q.last, dv = v.last, shared = q.outer / k.outer;
  each(threads, y.n * q.outer, [&](std::size_t unit) {
    const std::size_t t = unit / q.outer, h = unit % q.outer, g = h / shared;
    std::vector<double> scores, out;
    std::vector<std::size_t> rows;
    for (std::size_t r = 0; r < k.n; ++r) {
      const std::size_t apart = r < t ? t - r : r - t;
      if (segments.row(r)[0] != segments.row(t)[0] || (options.window != 0 && apart >= options.window)) continue;
      double s = 0;
      for (std::size_t j = 0; j < d; ++j) s += static_cast<double>(q.row(t)[h * d + j]) * k.row(r)[g * d + j];
      s *= options.scale;
      if (options.softcap != 0) s = options.softcap * std::tanh(s / options.softcap);
      if (!slopes.empty()) s -= slopes[h] * static_cast<double>(apart);
      scores.push_back(s);
      rows.push_back(r);
    }
    const auto value = [&](std::size_t j, std::size_t c) { return static_cast<double>(v.row(rows[j])[g * dv + c]); };
    weigh(scores, sinks.empty() ? nullptr : &sinks[h], dv, value, out);
    for (std::size_t c = 0; c < dv; ++c) y.row(t)[h * dv + c] = static_cast<float>(out[c]);
  });
}

void mla_attention(const Rows& q_nope, const Rows& q_rot, const Weight& k_b, const Weight& v_b, const State& state,
                   const MlaOptions& options, const Step& step, const Rows& y) {
  const std::size_t rank = options.rank, r = options.r, heads = q_nope.outer, n = q_nope.last, width = y.last;
  const Flat to_latent = k_b.decode_all(), from_latent = v_b.decode_all();  // [h][rank][n], [h][v][rank]
  each(step.threads, y.n * heads, [&](std::size_t unit) {
    const std::size_t t = unit / heads, h = unit % heads;
    const std::uint32_t seq = step.seq_of[t];
    const std::uint64_t i = t - step.begin(seq), end = step.context(seq) + step.end(seq) - step.begin(seq);
    const Places places{step, seq};
    std::vector<double> latent(rank, 0.0), scores, out;
    for (std::size_t c = 0; c < rank; ++c)
      for (std::size_t j = 0; j < n; ++j) latent[c] += static_cast<double>(q_nope.row(t)[h * n + j]) * to_latent[(h * rank + c) * n + j];
    std::vector<const std::byte*> rows;
    for (std::uint64_t row = 0; row < end; ++row) {
      if (!sees(places, i, row, true, options.window)) continue;
      const std::byte* stored = state.row(step, seq, row);
      double s = 0;
      for (std::size_t c = 0; c < rank; ++c) s += latent[c] * load_num(state.num, stored, c);
      for (std::size_t j = 0; j < r; ++j) s += static_cast<double>(q_rot.row(t)[h * r + j]) * load_num(state.num, stored, rank + j);
      scores.push_back(s * options.scale);
      rows.push_back(stored);
    }
    weigh(
        scores, nullptr, rank, [&](std::size_t j, std::size_t c) { return static_cast<double>(load_num(state.num, rows[j], c)); }, out);
    for (std::size_t o = 0; o < width; ++o) {
      double sum = 0;
      for (std::size_t c = 0; c < rank; ++c) sum += out[c] * from_latent[(h * width + o) * rank + c];
      y.row(t)[h * width + o] = static_cast<float>(sum);
    }
  });
}

}  // namespace mekik::reference
