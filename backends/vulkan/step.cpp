// What a batch brings to the device, and what comes back.
#include <cmath>
#include <cstring>

#include "exec.hpp"

namespace mekik::vulkan {

void Exec::bring_in(const mekik_batch& b) {
  const BatchPlan& at = plan_.batch;
  auto* words = reinterpret_cast<std::int32_t*>(batch_.data());
  const auto put = [&](std::uint64_t to, const std::int32_t* from, std::uint64_t n) {
    if (from != nullptr && n != 0) std::memcpy(words + to, from, n * 4);
  };
  const bool embeds = (b.uses & MEKIK_USE_EMBEDS) != 0;
  put(at.tokens, b.token_ids, b.n_tokens);
  put(at.positions, b.positions, b.n_tokens);
  put(at.rows, b.rows, b.n_rows);
  put(at.starts, b.seq_start, b.n_seqs + std::uint64_t{1});
  if (b.context_len != nullptr) put(at.contexts, b.context_len, b.n_seqs);
  else std::memset(words + at.contexts, 0, b.n_seqs * std::size_t{4});
  for (std::uint32_t s = 0; s < b.n_seqs; ++s)
    for (std::int32_t t = b.seq_start[s]; t < b.seq_start[s + 1]; ++t)
      words[at.segments + static_cast<std::uint64_t>(t)] = static_cast<std::int32_t>(s);
  if ((b.uses & MEKIK_USE_TYPES) != 0) put(at.token_types, b.token_types, b.n_tokens);
  else std::memset(words + at.token_types, 0, b.n_tokens * std::size_t{4});
  for (std::uint32_t t = 0; t < b.n_tokens; ++t) {
    const bool brought = embeds && b.embed_rows[t] >= 0;
    words[at.embed_rows + t] = brought ? b.embed_rows[t] : -1;
    if (brought) words[at.tokens + t] = 0;
  }
  // As many embeddings as tokens at most: those that no token has stay behind.
  if (embeds) {
    std::uint32_t n = 0;
    for (std::uint32_t t = 0; t < b.n_tokens; ++t) {
      if (words[at.embed_rows + t] < 0) continue;
      std::memcpy(words + at.embeds + std::uint64_t{n} * at.embed_width,
                  b.embeds + static_cast<std::uint64_t>(b.embed_rows[t]) * at.embed_width, at.embed_width * sizeof(float));
      words[at.embed_rows + t] = static_cast<std::int32_t>(n++);
    }
  }
  for (std::uint32_t g = 0; g < program_.raw().n_groups; ++g)
    for (std::uint32_t s = 0; s < b.n_seqs; ++s)
      put(at.blocks[g] + std::uint64_t{s} * limits_.max_blocks, b.blocks[g] + std::uint64_t{s} * b.max_blocks, b.max_blocks);
  if (plan_.slot_bytes != 0) {
    put(at.state_in, b.state_in, b.n_seqs);
    put(at.state_out, b.state_out, b.n_tokens);
  }
  bring_turns(b);
}

// In double, as the operations are defined; a device's sine of a large angle would be another.
void Exec::bring_turns(const mekik_batch& b) {
  auto* numbers = reinterpret_cast<float*>(batch_.data());
  const std::uint32_t n_axes = (b.uses & MEKIK_USE_AXES) != 0 ? b.n_axes : 1;
  for (const TurnPlan& turn : plan_.turns) {
    const std::vector<float>& table = tables_.at(turn.weight);
    parallel((b.n_tokens + 31) / 32, [&](std::uint32_t part) {
      for (std::uint32_t t = part * 32; t < std::min(b.n_tokens, part * 32 + 32); ++t)
        for (std::uint32_t i = 0; i < turn.half; ++i) {
          // One axis in the batch: text, where all axes are the same.
          const std::size_t axis = n_axes > 1 ? static_cast<std::size_t>(table[turn.half + i]) : 0;
          const double angle = static_cast<double>(b.positions[axis * b.n_tokens + t]) * static_cast<double>(table[i]);
          float* to = numbers + turn.at + (std::uint64_t{t} * turn.half + i) * 2;
          to[0] = static_cast<float>(std::cos(angle) * turn.magnitude);
          to[1] = static_cast<float>(std::sin(angle) * turn.magnitude);
        }
    });
  }
  for (const FactorPlan& f : plan_.factors)
    for (std::uint32_t t = 0; t < b.n_tokens; ++t) {
      const double steps = std::floor(static_cast<double>(b.positions[t] + f.shift) / f.every);
      numbers[f.at + t] = static_cast<float>(1 + f.factor * std::log1p(steps));
    }
}

void Exec::bring_out(const mekik_batch& b) const {
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
    if (!plan_.buffers[i].output) continue;
    for (std::uint32_t t = 0; t < program_.n_tensors(); ++t) {
      if (plan_.buffer_of[t] != i || program_.tensor(t).role != MEKIK_ROLE_OUTPUT) continue;
      const std::uint64_t rows = program_.tensor(t).shape[0] == MEKIK_DIM_SEQS ? b.n_seqs : b.n_rows;
      float* to = program_.name(t) == "logits" ? b.logits : (b.uses & MEKIK_USE_HIDDEN) != 0 ? b.hidden : nullptr;
      if (to != nullptr && rows != 0) std::memcpy(to, readback_.data() + at, rows * plan_.buffers[i].stride * sizeof(float));
    }
    at += round_up(plan_.buffers[i].bytes, 256);
  }
}

std::uint64_t Exec::submit(const mekik_batch& batch) {
  for (std::uint32_t i = 0; i < program_.n_tensors(); ++i)
    if (program_.tensor(i).role == MEKIK_ROLE_WEIGHT && !loaded_[i])
      throw Error{MEKIK_E_INVALID, "weight \"" + std::string{program_.name(i)} + "\" has not been loaded"};
  check_batch(batch);
  const VkCommandBuffer commands = recorded({batch.n_tokens, batch.n_seqs, batch.n_rows});
  bring_in(batch);
  device_.run(commands);
  bring_out(batch);
  return ++ticket_;
}

}  // namespace mekik::vulkan
