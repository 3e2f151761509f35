// Where everything lies: temporaries share one page by their lives, outputs have pages of their own; weights and states fill blocks.
#include <openssl/sha.h>

#include <algorithm>
#include <cstring>

#include <mekik/head_form.hpp>
#include "planner.hpp"

namespace mekik::vulkan {

namespace {

std::string bytes_text(std::uint64_t n) { return std::to_string(n) + " bytes"; }

// Puts a piece of `bytes` into the last of the blocks, or opens another.
std::uint32_t take(std::vector<std::uint64_t>& blocks, std::uint64_t bytes, std::uint64_t most, std::uint64_t& offset) {
  const std::uint64_t size = round_up(bytes, 256);
  if (blocks.empty() || blocks.back() + size > most) blocks.push_back(0);
  offset = blocks.back();
  blocks.back() += size;
  return static_cast<std::uint32_t>(blocks.size() - 1);
}

}  // namespace

void Planner::place_buffers() {
  const std::uint64_t most = std::min(device_.storage_bytes, device_.texels * 16);
  plan_.page_bytes = {16};
  std::vector<StepBuffer*> alive;
  std::vector<StepBuffer*> order;
  for (StepBuffer& b : plan_.buffers) {
    if (b.bytes > most)
      throw Error{MEKIK_E_UNSUPPORTED, "a step's rows of " + bytes_text(b.bytes) + " are more than the device binds at once (" +
                                           bytes_text(most) +
                                           "): fewer tokens a step are needed (scheduler.max_batch_tokens, max_sequences)"};
    if (!b.output) {
      order.push_back(&b);
      continue;
    }
    b.page = static_cast<std::uint32_t>(plan_.page_bytes.size());
    plan_.page_bytes.push_back(round_up(b.bytes, 256));
    plan_.readback_bytes += round_up(b.bytes, 256);
  }
  std::stable_sort(order.begin(), order.end(), [](const StepBuffer* a, const StepBuffer* b) { return a->first < b->first; });
  for (StepBuffer* b : order) {
    std::erase_if(alive, [&](const StepBuffer* other) { return other->last < b->first; });
    std::sort(alive.begin(), alive.end(), [](const StepBuffer* x, const StepBuffer* y) { return x->offset < y->offset; });
    const std::uint64_t bytes = round_up(b->bytes, 256);
    for (const StepBuffer* other : alive) {
      if (b->offset + bytes <= other->offset) break;
      b->offset = std::max(b->offset, other->offset + round_up(other->bytes, 256));
    }
    alive.push_back(b);
    plan_.page_bytes[0] = std::max(plan_.page_bytes[0], b->offset + bytes);
  }
  if (plan_.page_bytes[0] > most)
    throw Error{MEKIK_E_UNSUPPORTED, "a step's activations of " + bytes_text(plan_.page_bytes[0]) +
                                         " are more than the device binds at once (" + bytes_text(most) +
                                         "): fewer tokens a step are needed (scheduler.max_batch_tokens)"};
  // Operands that share a binding lie in the page of temporaries.
  for (const Dispatch& d : plan_.dispatches)
    for (const Patch& p : d.patches)
      if (p.kind == Patch::Kind::offset && p.word >= kI0 && (plan_.buffers[p.ref.buffer].output || plan_.buffers[d.operand[2]].output))
        throw Error{MEKIK_E_UNSUPPORTED, "a recurrence that reads an output of the program"};
  plan_.batch.embeds = plan_.batch.words;
  plan_.batch.words += times(plan_.batch.embed_width, limits_.max_tokens);
  for (Dispatch& d : plan_.dispatches)
    if (d.shader == "embed") d.set(kI2, static_cast<std::uint32_t>(plan_.batch.embeds));
}

void Planner::place_weights() {
  const std::uint64_t most = std::min(device_.texels * 4, std::uint64_t{1} << 31);
  for (std::uint32_t i = 0; i < raw_.n_tensors; ++i) {
    WeightPlan& w = plan_.weights[i];
    if (tensor(i).role != MEKIK_ROLE_WEIGHT) continue;
    const mekik_form& f = *tensor(i).form;
    w.form = f;
    w.form.table = w.form.tensor_scale = nullptr;
    w.form.k_perm = w.form.kept_k = nullptr;
    if (w.matrix) {
      if (w.layout.bytes() > most)
        throw Error{MEKIK_E_UNSUPPORTED, "weight \"" + std::string{program_.name(i)} + "\" takes " + bytes_text(w.layout.bytes()) +
                                             "; the device reads at most " + bytes_text(most) + " at once"};
      w.block = take(plan_.weight_block_bytes, w.layout.bytes(), most, w.offset);
    }
    const auto numbers = [&](std::uint64_t n) {
      const std::uint64_t at = plan_.vector_bytes / 4;
      plan_.vector_bytes += round_up(times(n, 4), 16);
      return at;
    };
    if (w.vector) w.vector_offset = numbers(whole_size(tensor(i)));
    if (w.matrix && w.layout.permuted) w.permutation = numbers(f.k);
    if (w.matrix && w.layout.tensor_scale) w.scale_offset = numbers(f.experts);
  }
  if (plan_.vector_bytes > most) throw Error{MEKIK_E_UNSUPPORTED, "the model's vectors are more than the device binds at once"};
}

void Planner::place_states() {
  for (std::uint32_t i = 0; i < raw_.n_tensors; ++i) {
    const mekik_tensor& t = tensor(i);
    const auto fits = [&](std::uint64_t bytes, const char* way_out) {
      if (bytes <= device_.storage_bytes && bytes <= device_.texels * 16) return;
      throw Error{MEKIK_E_UNSUPPORTED, "state \"" + std::string{program_.name(i)} + "\" takes " + bytes_text(bytes) +
                                           "; the device binds at most " + bytes_text(device_.storage_bytes) + " at once: " + way_out};
    };
    if (t.role == MEKIK_ROLE_STATE) {
      StatePlan& s = plan_.states[i];
      const auto heads = static_cast<std::uint32_t>(t.rank > 2 ? t.shape[1] : 1);
      if (kv_form(t.scheme) == KvForm::none)
        throw Error{MEKIK_E_UNSUPPORTED, "state \"" + std::string{program_.name(i)} + "\": this backend stores " + kKvFormNames};
      if (s.row_texels == 0)
        shape_state(s, kv_form(t.scheme), heads, static_cast<std::uint32_t>(row_size(t) / heads), 0);  // that nothing uses
      s.block_bytes = times(limits_.block_tokens, std::uint64_t{s.row_texels} * 16);
      s.bytes = times(s.block_bytes, limits_.n_blocks[t.group]);
      fits(s.bytes, "a smaller cache.memory is needed");
      plan_.block_bytes[t.group] += s.block_bytes;
      s.page = take(plan_.pool_bytes, s.bytes, device_.storage_bytes, s.offset);
    } else if (t.role == MEKIK_ROLE_SLOT) {
      SlotPlan& s = plan_.slots[i];
      s.numbers = whole_size(t);
      const std::uint64_t bytes = times(times(s.numbers, sizeof(float)), limits_.n_slots);
      fits(bytes, "fewer kept states are needed");
      plan_.slot_bytes += s.numbers * sizeof(float);
      s.page = take(plan_.pool_bytes, bytes, device_.storage_bytes, s.offset);
    }
  }
}

void Planner::identify() {
  std::string layout = "mekik vulkan state 1; block_tokens " + std::to_string(limits_.block_tokens);
  for (std::uint32_t i = 0; i < raw_.n_tensors; ++i) {
    const mekik_tensor& t = tensor(i);
    if (t.role == MEKIK_ROLE_SLOT) layout += "; slot " + std::to_string(plan_.slots[i].numbers);
    if (t.role != MEKIK_ROLE_STATE) continue;
    const StatePlan& s = plan_.states[i];
    layout += "; group " + std::to_string(t.group) + " " + t.scheme + " " + std::to_string(s.heads) + " " + std::to_string(s.first) + " " +
              std::to_string(s.second);
  }
  // Raise the number with every change of a kernel that can change a bit.
  const std::string numeric = "mekik vulkan kernels 1; " + device_.identity + "; " + layout;
  const auto digest = [](const std::string& text, std::uint8_t* out) {
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out);
  };
  digest(layout, plan_.layout_id);
  digest(numeric, plan_.numeric_id);
}

std::uint64_t Plan::weight_bytes() const {
  std::uint64_t all = round_up(vector_bytes, 256);
  for (const std::uint64_t b : weight_block_bytes) all += b;
  return all;
}

std::uint64_t Plan::work_bytes() const {
  std::uint64_t all = readback_bytes + batch.words * 4 + kStagingBytes;
  for (const std::uint64_t b : page_bytes) all += b;
  return all;
}

}  // namespace mekik::vulkan
