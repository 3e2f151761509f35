// Rows that come from tables and go to the cache; rows that look at other rows.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "exec.hpp"

namespace mekik::cpu {

// The i-th number of a row of ids: of an input, or of what a route or an argmax made.
std::uint32_t Exec::id_of(std::uint32_t ids, std::uint32_t row, std::uint32_t i) const {
  if (program_.tensor(ids).role == MEKIK_ROLE_INPUT) {
    const std::string_view name = program_.name(ids);
    if (name == "tokens") return static_cast<std::uint32_t>(batch_.token_ids[row]);
    if (name == "positions") return static_cast<std::uint32_t>(batch_.positions[row]);
    if (name == "segments") return seq_of_[row];
    return batch_.token_types != nullptr ? static_cast<std::uint32_t>(batch_.token_types[row]) : 0;
  }
  std::uint32_t id;
  std::memcpy(&id, view(ids).row(row) + i, sizeof id);
  return id;
}

// f(column, number) for row `id` of a matrix.
template <class F>
void Exec::decode_row(std::uint32_t weight, std::uint32_t id, float* panel, F&& f) const {
  const Matrix& m = matrices_[weight];
  const std::uint32_t lane = id % kLanes;
  const std::uint8_t* stripe = m.data + id / kLanes * m.stripe_bytes;
  const std::vector<std::uint32_t>& inputs = plan_.weights[weight].layout.inputs;
  for (std::uint32_t k = 0; k < m.k; k += kPanelColumns) {
    const std::uint32_t end = std::min(m.k, k + kPanelColumns);
    settings_.kernels->decode(m, stripe, k, end, panel);
    for (std::uint32_t j = k; j < end; ++j) f(inputs.empty() ? j : inputs[j], panel[(j - k) * kLanes + lane]);
  }
}

void Exec::embed_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const {
  const Matrix& m = matrices_[op.in[1]];
  float* y = view(op.out[0]).row(row);
  if (y == nullptr) return;
  const bool tokens = program_.tensor(op.in[0]).role == MEKIK_ROLE_INPUT && program_.name(op.in[0]) == "tokens";
  if (tokens && batch_.embed_rows != nullptr && batch_.embed_rows[row] >= 0) {
    std::memcpy(y, batch_.embeds + static_cast<std::size_t>(batch_.embed_rows[row]) * m.k, m.k * sizeof(float));
    return;
  }
  decode_row(op.in[1], id_of(op.in[0], row, 0), scratch(thread), [&](std::uint32_t j, float w) { y[j] = w; });
}

// y = sum over j of mix[j] * w[ids[j]], in ascending j.
void Exec::mix_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const {
  const std::uint64_t n = row_size(program_.tensor(op.out[0])), count = row_size(program_.tensor(op.in[1]));
  const float* mix = view(op.in[1]).row(row);
  float* y = view(op.out[0]).row(row);
  if (y == nullptr) return;
  std::fill(y, y + n, 0.0F);
  for (std::uint32_t i = 0; i < count; ++i)
    decode_row(op.in[2], id_of(op.in[0], row, i), scratch(thread), [&](std::uint32_t j, float w) { y[j] = std::fma(mix[i], w, y[j]); });
}

// The block of a state where a token's row is stored, at the state's part of it, and which row of the block it is.
std::uint8_t* Exec::stored_row(std::uint32_t state, std::uint32_t row, std::uint32_t& within) const {
  const std::uint32_t group = program_.tensor(state).group, seq = seq_of_[row];
  const std::uint32_t at = static_cast<std::uint32_t>(batch_.context_len[seq]) + row - static_cast<std::uint32_t>(batch_.seq_start[seq]);
  const std::int32_t id = batch_.blocks[group][static_cast<std::size_t>(seq) * batch_.max_blocks + at / limits_.block_tokens];
  within = at % limits_.block_tokens;
  return pools_[group].data() + static_cast<std::uint64_t>(id) * plan_.block_bytes[group] + plan_.states[state].offset;
}

// The key and the value of one head, as codes, to token t of the head's places in a block.
void Exec::append_codes(const StatePlan& s, std::uint8_t* key, std::uint8_t* value, std::uint32_t t, const float* k, const float* v,
                        float* work) const {
  const HeadLayout& h = s.codes;
  auto* codes = reinterpret_cast<std::int8_t*>(work + std::max(s.d, s.dv));
  const auto encode = [&](const float* x, std::uint32_t n, std::uint32_t padded, std::uint8_t* scales) {
    std::copy_n(x, n, work);
    std::memset(codes, 0, padded);
    settings_.kernels->turn(work, n);
    const std::uint16_t scale = settings_.kernels->encode_head(h.bits, work, n, codes);
    std::memcpy(scales + std::size_t{2} * t, &scale, sizeof scale);
  };
  encode(k, s.d, h.key_numbers(), key + h.key_scales());
  for (std::uint32_t i = 0; i < h.key_bytes(); ++i) key[h.key_at(t, i)] = h.pack_key(codes, i);
  encode(v, s.dv, h.dvp, value + h.value_scales());
  for (std::uint32_t i = 0; i < h.value_bytes(); ++i) value[h.value_at(t, i)] = HeadLayout::pack_value(h.bits, codes, i);
}

void Exec::append_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const {
  const StatePlan& s = plan_.states[op.in[2]];
  std::uint32_t t;
  std::uint8_t* block = stored_row(op.in[2], row, t);
  const std::size_t e = num_bytes(s.num);
  const float *k = view(op.in[0]).row(row), *v = view(op.in[1]).row(row);
  float* rounded = scratch(thread);
  for (std::uint32_t h = 0; s.codes.bits != 0 && h < s.heads; ++h)
    append_codes(s, block + h * s.k_head, block + s.v_offset + h * s.v_head, t, k + static_cast<std::size_t>(h) * s.d,
                 v + static_cast<std::size_t>(h) * s.dv, rounded);
  if (s.codes.bits != 0) return;
  for (std::uint32_t h = 0; h < s.heads; ++h) {
    settings_.kernels->cast(s.num, k + static_cast<std::size_t>(h) * s.d, s.d, rounded);
    std::uint8_t* kb = block + h * s.k_head;
    if (!plan_.lanes) {
      std::memcpy(kb + static_cast<std::size_t>(t) * s.d * e, rounded, s.d * e);
    } else if (e == 2) {
      auto* to = reinterpret_cast<std::uint16_t*>(kb) + static_cast<std::size_t>(t / 16) * s.d * 16 + t % 16;
      const auto* from = reinterpret_cast<const std::uint16_t*>(rounded);
      for (std::uint32_t i = 0; i < s.d; ++i) to[static_cast<std::size_t>(i) * 16] = from[i];
    } else {
      auto* to = reinterpret_cast<float*>(kb) + static_cast<std::size_t>(t / 16) * s.d * 16 + t % 16;
      for (std::uint32_t i = 0; i < s.d; ++i) to[static_cast<std::size_t>(i) * 16] = rounded[i];
    }
    std::uint8_t* vb = block + s.v_offset + h * s.v_head + static_cast<std::size_t>(t) * s.dvp * e;
    settings_.kernels->cast(s.num, v + static_cast<std::size_t>(h) * s.dv, s.dv, vb);
    std::memset(vb + s.dv * e, 0, (s.dvp - s.dv) * e);
  }
}

// The same of a latent and the turned rest of its key, to a row.
void Exec::append_latent_codes(const LatentLayout& l, std::uint8_t* to, const float* latent, const float* rest, float* work) const {
  std::uint8_t* scales = to + l.scales();
  for (const auto& [x, n] : {std::pair{latent, l.dv}, {rest, l.rot}}) {
    auto* codes = reinterpret_cast<std::int8_t*>(work + n);
    std::copy_n(x, n, work);
    std::memset(codes, 0, HeadLayout::padded(n, l.bits));
    settings_.kernels->turn(work, n);
    const std::uint16_t scale = settings_.kernels->encode_head(l.bits, work, n, codes);
    std::memcpy(scales, &scale, sizeof scale);
    for (std::uint32_t i = 0; i < l.part(n); ++i) to[i] = HeadLayout::pack_value(l.bits, codes, i);
    to += l.part(n);
    scales += sizeof scale;
  }
}

// The latent, the turned rest of the key, zeros.
void Exec::append_latent_row(const mekik_op& op, std::uint32_t row, std::uint32_t thread) const {
  const StatePlan& s = plan_.states[op.in[2]];
  std::uint32_t t;
  std::uint8_t* to = stored_row(op.in[2], row, t) + s.v_offset;
  if (s.latents.bits != 0)
    return append_latent_codes(s.latents, to + std::size_t{t} * s.latents.bytes(), view(op.in[0]).row(row), view(op.in[1]).row(row),
                               scratch(thread));
  const std::size_t e = num_bytes(s.num);
  to += static_cast<std::size_t>(t) * s.dvp * e;
  float* whole = scratch(thread);
  std::copy_n(view(op.in[0]).row(row), s.dv, whole);
  std::copy_n(view(op.in[1]).row(row), s.d - s.dv, whole + s.dv);
  settings_.kernels->cast(s.num, whole, s.d, to);
  std::memset(to + s.d * e, 0, (s.dvp - s.d) * e);
}

void Exec::put_row(const mekik_op& op, std::uint32_t row) const {
  const std::uint64_t n = row_size(program_.tensor(op.out[0]));
  float* y = view(op.out[0]).row(row);
  std::memcpy(y, view(op.in[0]).row(row), n * sizeof(float));
  if (op.in[1] == kNone) return;
  for (std::uint32_t r = first_put_[row]; r != kNone; r = next_put_[r]) {
    const float* from = view(op.in[1]).row(r);
    if (op.ints[0] != 0) settings_.kernels->add(y, from, false, static_cast<std::uint32_t>(n), y);
    else std::memcpy(y, from, n * sizeof(float));
  }
}

void Exec::pool_row(const mekik_op& op, std::uint32_t seq) const {
  const auto n = static_cast<std::uint32_t>(row_size(program_.tensor(op.out[0])));
  const auto t0 = static_cast<std::uint32_t>(batch_.seq_start[seq]), t1 = static_cast<std::uint32_t>(batch_.seq_start[seq + 1]);
  float* y = view(op.out[0]).row(seq);
  enum : std::int64_t { kMean, kCls, kLast, kMax, kWeightedMean, kMeanSqrtLen };
  const std::int64_t kind = op.ints[0];
  std::memcpy(y, view(op.in[0]).row(kind == kLast ? t1 - 1 : t0), n * sizeof(float));
  if (kind == kCls || kind == kLast) return;
  for (std::uint32_t t = t0 + 1; t < t1; ++t) {
    const float* x = view(op.in[0]).row(t);
    if (kind == kMax)
      for (std::uint32_t i = 0; i < n; ++i) y[i] = std::max(y[i], x[i]);
    else if (kind == kWeightedMean)
      for (std::uint32_t i = 0; i < n; ++i) y[i] += static_cast<float>(t - t0 + 1) * x[i];
    else settings_.kernels->add(y, x, false, n, y);
  }
  if (kind == kMax) return;
  const double count = t1 - t0;
  const auto divisor = static_cast<float>(kind == kWeightedMean  ? count * (count + 1) / 2
                                          : kind == kMeanSqrtLen ? std::sqrt(count)
                                                                 : count);
  for (std::uint32_t i = 0; i < n; ++i) y[i] /= divisor;
}

}  // namespace mekik::cpu
