// Layout: a state row holds g heads of d + dv numbers in the state's form, the key first; it is read back as it was stored, for
// the tokens of the same step too. In a form of heads a part, key or value, is its codes, then its scale. Each (token, head) is computed
// alone over the rows it sees, in ascending order.
#include <bit>
#include <cmath>
#include <cstring>
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

// Softmax over scores, weighted sum of values: value(j) is where the j-th has its numbers. A sink is one more score that has no value.
template <class Value>
void weigh(const std::vector<double>& scores, const float* sink, std::size_t dv, Value&& value, std::vector<double>& out) {
  double most = sink != nullptr ? *sink : kLowest, sum = 0;
  for (const double s : scores) most = std::fmax(most, s);
  if (sink != nullptr) sum = std::exp(*sink - most);
  out.assign(dv, 0.0);
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const double p = std::exp(scores[j] - most);
    sum += p;
    const float* v = value(j);
    for (std::size_t c = 0; c < dv; ++c) out[c] += p * static_cast<double>(v[c]);
  }
  for (double& o : out) o /= sum;
}

}  // namespace

void State::store(std::byte* row, std::size_t h, std::size_t first, std::size_t n, const float* x) const {
  std::byte* at = row + h * form.head_bytes(size / heads) + (first != 0 ? form.part_bytes(first) : 0);
  if (form.head == nullptr) {
    for (std::size_t j = 0; j < n; ++j) store_num(form.num, at, j, x[j]);
    return;
  }
  std::vector<float> turned(x, x + n);
  std::vector<std::int8_t> codes(n + 1, 0);
  hadamard(turned.data(), n);
  const std::uint16_t scale = encode_head(*form.head, turned.data(), n, codes.data());
  const bool bytes = form.head->bits == 8;
  for (std::size_t j = 0; j < n; j += bytes ? 1 : 2) *at++ = static_cast<std::byte>(bytes ? codes[j] : (codes[j] & 15) | codes[j + 1] << 4);
  std::memcpy(at, &scale, sizeof scale);
}

void State::load(const std::byte* row, std::size_t h, std::size_t first, std::size_t n, float* x) const {
  const std::byte* at = row + h * form.head_bytes(size / heads) + (first != 0 ? form.part_bytes(first) : 0);
  if (form.head == nullptr) {
    for (std::size_t j = 0; j < n; ++j) x[j] = load_num(form.num, at, j);
    return;
  }
  std::vector<std::int8_t> codes(n);
  const bool bytes = form.head->bits == 8;
  for (std::size_t j = 0; j < n; ++j) {
    const auto code = static_cast<unsigned>(bytes ? at[j] : at[j / 2]);
    codes[j] = static_cast<std::int8_t>(bytes ? code : ((code >> 4 * (j % 2) & 15u) ^ 8u) - 8u);
  }
  std::uint16_t scale = 0;
  std::memcpy(&scale, at + form.part_bytes(n) - sizeof scale, sizeof scale);
  decode_head(scale, codes.data(), n, x);
}

void kv_append(const Rows& k, const Rows& v, const State& state, const Step& step) {
  for (std::uint64_t t = 0; t < step.n_tokens(); ++t) {
    const std::uint32_t seq = step.seq_of[t];
    std::byte* row = state.row(step, seq, step.context(seq) + t - step.begin(seq));
    const std::size_t d = k.size() / state.heads, dv = v.size() / state.heads;
    for (std::size_t g = 0; g < state.heads; ++g) {
      state.store(row, g, 0, d, k.row(t) + g * d);
      state.store(row, g, d, dv, v.row(t) + g * dv);
    }
  }
}

void attention(const Rows& q, const State& state, const Flat& sinks, const Flat& slopes, const AttentionOptions& options, const Step& step,
               const Rows& y) {
  const std::size_t d = q.last, dv = options.dv, shared = q.outer / state.heads;  // query heads to one key head
  each(step.threads, y.n * q.outer, [&](std::size_t unit) {
    const std::size_t t = unit / q.outer, h = unit % q.outer, g = h / shared;
    const std::uint32_t seq = step.seq_of[t];
    const std::uint64_t i = t - step.begin(seq), end = step.context(seq) + step.end(seq) - step.begin(seq);
    const Places places{step, seq};
    const float* query = q.row(t) + h * d;
    std::vector<double> scores, out;
    std::vector<float> part(std::max(d, dv));
    std::vector<const std::byte*> rows;
    for (std::uint64_t row = 0; row < end; ++row) {
      if (!sees(places, i, row, options.causal, options.window, options.chunk)) continue;
      const std::byte* stored = state.row(step, seq, row);
      state.load(stored, g, 0, d, part.data());
      double s = 0;
      for (std::size_t j = 0; j < d; ++j) s += static_cast<double>(query[j]) * part[j];
      s *= options.scale;
      if (options.softcap != 0) s = options.softcap * std::tanh(s / options.softcap);
      if (!slopes.empty()) s += slopes[h] * (static_cast<double>(places.stored(row)) - static_cast<double>(places.token(i)));
      scores.push_back(s);
      rows.push_back(stored);
    }
    const auto value = [&](std::size_t j) {
      state.load(rows[j], g, d, dv, part.data());
      return part.data();
    };
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
    const auto value = [&](std::size_t j) { return v.row(rows[j]) + g * dv; };
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
    std::vector<float> part(rank + r);
    for (std::uint64_t row = 0; row < end; ++row) {
      if (!sees(places, i, row, true, options.window)) continue;
      const std::byte* stored = state.row(step, seq, row);
      state.load(stored, 0, 0, rank, part.data());
      state.load(stored, 0, rank, r, part.data() + rank);
      double s = 0;
      for (std::size_t c = 0; c < rank; ++c) s += latent[c] * part[c];
      for (std::size_t j = 0; j < r; ++j) s += static_cast<double>(q_rot.row(t)[h * r + j]) * part[rank + j];
      scores.push_back(s * options.scale);
      rows.push_back(stored);
    }
    const auto value = [&](std::size_t j) {
      state.load(rows[j], 0, 0, rank, part.data());
      return part.data();
    };
    weigh(scores, nullptr, rank, value, out);
    for (std::size_t o = 0; o < width; ++o) {
      double sum = 0;
      for (std::size_t c = 0; c < rank; ++c) sum += out[c] * from_latent[(h * width + o) * rank + c];
      y.row(t)[h * width + o] = static_cast<float>(sum);
    }
  });
}

}  // namespace mekik::reference
