#include "reference/backend/exec.hpp"

#include <cstring>

#include "reference/check.hpp"

namespace mekik::reference_backend {

namespace {

constexpr std::uint64_t kAlign = 64;

std::string quoted(const ProgramReader& program, std::uint32_t i) { return "\"" + std::string{program.name(i)} + "\""; }

void run_on_host(std::uint32_t n, void (*fn)(void*, std::uint32_t), void* ctx) {
  parallel(n, [&](std::uint32_t i) { fn(ctx, i); });
}

}  // namespace

Exec::Exec(const mekik_program& program, const mekik_limits& limits)
    : copy_{(static_cast<void>(lay_out(program, limits)), program)},
      program_{copy_.reader()},
      limits_{limits},
      layout_{lay_out(program, limits)} {
  const std::uint64_t slot_pool = layout_.slot_pool_bytes;
  const std::uint64_t all = layout_.all_weight_bytes + layout_.work_bytes() + layout_.kv_bytes + slot_pool;
  if (limits.device_bytes != 0 && all > limits.device_bytes)
    throw Error{MEKIK_E_NO_MEMORY, std::to_string(all) + " bytes are needed, " + std::to_string(limits.device_bytes) + " are allowed"};
  arena_ = HostMemory{layout_.work_bytes(), kAlign, "activations"};
  slots_ = HostMemory{slot_pool, kAlign, "states"};
  if (slot_pool != 0) std::memset(slots_.data(), 0xFF, slot_pool);  // all ones is NaN: a state read before it is written shows
  for (std::uint32_t g = 0; g < program.n_groups; ++g) {
    pools_.emplace_back(layout_.block_bytes[g] * limits.n_blocks[g], kAlign, "kv");
    if (pools_[g].data() != nullptr) std::memset(pools_[g].data(), 0xFF, layout_.block_bytes[g] * limits.n_blocks[g]);
  }
  weight_memory_.resize(program_.n_tensors());
  weights_.resize(program_.n_tensors());
  memory_.places.resize(program_.n_tensors());
  memory_.scratch = reinterpret_cast<float*>(arena_.data() + layout_.arena_bytes);
  for (std::uint32_t i = 0; i < program_.n_tensors(); ++i) {
    const mekik_tensor& t = program_.tensor(i);
    reference::Memory::Place& place = memory_.places[i];
    if ((t.role == MEKIK_ROLE_TEMP && t.view_of == 0) || t.role == MEKIK_ROLE_OUTPUT) place.data = arena_.data() + layout_.offset[i];
    if (t.role == MEKIK_ROLE_STATE)
      place.state = {pools_[t.group].data(),
                     layout_.block_bytes[t.group],
                     layout_.offset[i],
                     reference::state_form(t.scheme),
                     t.group,
                     row_size(t),
                     static_cast<std::size_t>(t.rank > 2 ? t.shape[1] : 1)};
    if (t.role == MEKIK_ROLE_SLOT) place.slot = {slots_.data(), layout_.slot_bytes, layout_.offset[i], whole_size(t)};
  }
  seq_of_.resize(limits.max_tokens);
  segments_.resize(limits.max_tokens);
  token_types_.resize(limits.max_tokens);
}

mekik_status Exec::weight(const mekik_weight& w) {
  if (w.struct_size < sizeof(mekik_weight) || w.form == nullptr || w.rows == nullptr)
    throw Error{MEKIK_E_INVALID, "a weight without its form or rows"};
  if (w.tensor >= program_.n_tensors() || program_.tensor(w.tensor).role != MEKIK_ROLE_WEIGHT)
    throw Error{MEKIK_E_INVALID, "tensor " + std::to_string(w.tensor) + " is no weight"};
  const std::string name = quoted(program_, w.tensor);
  if (const std::string why = reference::check_form(*w.form); !why.empty()) throw Error{MEKIK_E_INVALID, "weight " + name + ": " + why};
  const std::uint64_t bytes = reference::Weight::bytes(*w.form);
  if (bytes != layout_.weight_bytes[w.tensor] || w.form->experts * w.form->n * w.form->k != whole_size(program_.tensor(w.tensor)))
    throw Error{MEKIK_E_INVALID, "weight " + name + " does not come in the form of the plan"};
  HostMemory memory{bytes, kAlign, "weights"};
  auto weight = std::make_unique<reference::Weight>(*w.form, memory.data());
  for (std::uint64_t e = 0; e < w.form->experts; ++e) {
    const mekik_form_rows rows = weight->expert(e);
    if (const mekik_status code = w.rows(w.self, e, 0, w.form->n, &rows); code != MEKIK_OK) return code;
    if (const std::string why = reference::check_codes(*w.form, rows, w.form->n); !why.empty())
      throw Error{MEKIK_E_INVALID, "weight " + name + ": " + why};
  }
  weights_[w.tensor] = std::move(weight);
  weight_memory_[w.tensor] = std::move(memory);
  memory_.places[w.tensor].weight = weights_[w.tensor].get();
  return MEKIK_OK;
}

void Exec::bind(const mekik_batch& b) {
  for (std::uint32_t seq = 0; seq < b.n_seqs; ++seq)
    for (std::int32_t t = b.seq_start[seq]; t < b.seq_start[seq + 1]; ++t) {
      seq_of_[static_cast<std::size_t>(t)] = seq;
      segments_[static_cast<std::size_t>(t)] = static_cast<std::int32_t>(seq);
    }
  for (std::uint32_t i = 0; i < program_.n_tensors(); ++i) {
    if (program_.tensor(i).role != MEKIK_ROLE_INPUT) continue;
    const std::string_view name = program_.name(i);
    const std::int32_t* data = name == "tokens"        ? b.token_ids
                               : name == "positions"   ? b.positions
                               : name == "rows"        ? b.rows
                               : name == "segments"    ? segments_.data()
                               : name == "token_types" ? ((b.uses & MEKIK_USE_TYPES) != 0 ? b.token_types : token_types_.data())
                                                       : nullptr;
    memory_.places[i].data = const_cast<std::int32_t*>(data);  // only read: inputs are never results
  }
}

void Exec::bring_out(const mekik_batch& b) {
  for (std::uint32_t i = 0; i < program_.n_tensors(); ++i) {
    const mekik_tensor& t = program_.tensor(i);
    if (t.role != MEKIK_ROLE_OUTPUT) continue;
    float* to = program_.name(i) == "logits" ? b.logits : b.hidden;
    const std::size_t rows = t.shape[0] == MEKIK_DIM_SEQS ? b.n_seqs : b.n_rows;
    if (to != nullptr && rows != 0) std::memcpy(to, memory_.places[i].data, rows * row_size(t) * sizeof(float));
  }
}

std::uint64_t Exec::submit(const mekik_batch& batch) {
  for (std::uint32_t i = 0; i < program_.n_tensors(); ++i)
    if (program_.tensor(i).role == MEKIK_ROLE_WEIGHT && weights_[i] == nullptr)
      throw Error{MEKIK_E_INVALID, "weight " + quoted(program_, i) + " has not been loaded"};
  check_batch(program_, layout_, limits_, batch);
  mekik_batch b = batch;
  if ((b.uses & MEKIK_USE_AXES) == 0) b.n_axes = 1;
  if ((b.uses & MEKIK_USE_TREE) == 0) b.tree = nullptr;
  if ((b.uses & MEKIK_USE_SPANS) == 0) b.spans = nullptr;
  if ((b.uses & MEKIK_USE_EMBEDS) == 0) b.embed_rows = nullptr;
  if ((b.uses & MEKIK_USE_HIDDEN) == 0) b.hidden = nullptr;
  bind(b);
  const reference::Step step{&b, seq_of_, limits_.block_tokens, {run_on_host}};
  for (std::uint32_t o = 0; o < program_.n_ops(); ++o) run(o, step);
  bring_out(b);
  return ++ticket_;
}

void Exec::run(std::uint32_t op, const reference::Step& step) { reference::execute(program_, op, memory_, step); }

std::byte* Exec::place(std::uint32_t what, std::uint32_t group, std::int32_t id, std::uint64_t bytes) const {
  const bool block = what == MEKIK_WHAT_BLOCK;
  if (!block && what != MEKIK_WHAT_SLOT) throw Error{MEKIK_E_INVALID, "what " + std::to_string(what) + " is not a block or a slot"};
  if (block && group >= program_.raw().n_groups) throw Error{MEKIK_E_INVALID, "there is no group " + std::to_string(group)};
  const std::uint64_t each = block ? layout_.block_bytes[group] : layout_.slot_bytes;
  const std::uint64_t count = block ? limits_.n_blocks[group] : limits_.n_slots;
  if (id < 0 || static_cast<std::uint64_t>(id) >= count)
    throw Error{MEKIK_E_INVALID, std::string{block ? "block " : "slot "} + std::to_string(id) + " of " + std::to_string(count)};
  if (bytes != each) throw Error{MEKIK_E_INVALID, std::to_string(bytes) + " bytes where it has " + std::to_string(each)};
  return (block ? pools_[group].data() : slots_.data()) + static_cast<std::uint64_t>(id) * each;
}

std::uint64_t Exec::read(std::uint32_t what, std::uint32_t group, std::int32_t id, void* to, std::uint64_t bytes) {
  const std::byte* from = place(what, group, id, bytes);
  if (bytes != 0) std::memcpy(to, from, bytes);
  return ++ticket_;
}

std::uint64_t Exec::write(std::uint32_t what, std::uint32_t group, std::int32_t id, const void* from, std::uint64_t bytes) {
  std::byte* to = place(what, group, id, bytes);
  if (bytes != 0) std::memcpy(to, from, bytes);
  return ++ticket_;
}

void Exec::check_move(const mekik_move& m) const {
  const bool rows = m.what == MEKIK_WHAT_ROWS;
  const std::uint32_t what = rows ? std::uint32_t{MEKIK_WHAT_BLOCK} : m.what;
  const std::uint64_t bytes = what == MEKIK_WHAT_SLOT ? layout_.slot_bytes : m.group < MEKIK_MAX_GROUPS ? layout_.block_bytes[m.group] : 0;
  place(what, m.group, m.from, bytes);
  place(what, m.group, m.to, bytes);
  const std::uint64_t size = limits_.block_tokens;
  if (rows && (m.n_rows > size || m.from_row > size - m.n_rows || m.to_row > size - m.n_rows))
    throw Error{MEKIK_E_INVALID, "rows past the end of a block of " + std::to_string(size)};
}

void Exec::copy(const mekik_move& m) {
  if (m.what != MEKIK_WHAT_ROWS) {
    const std::uint64_t bytes = m.what == MEKIK_WHAT_SLOT ? layout_.slot_bytes : layout_.block_bytes[m.group];
    if (bytes != 0) std::memmove(place(m.what, m.group, m.to, bytes), place(m.what, m.group, m.from, bytes), bytes);
    return;
  }
  for (std::uint32_t i = 0; i < program_.n_tensors(); ++i) {
    const mekik_tensor& t = program_.tensor(i);
    if (t.role != MEKIK_ROLE_STATE || t.group != m.group) continue;
    const reference::State& state = memory_.places[i].state;
    const std::uint64_t row = state.form.row_bytes(state.heads, state.size), block = layout_.block_bytes[m.group];
    std::byte* base = pools_[m.group].data() + layout_.offset[i];
    std::memmove(base + static_cast<std::uint64_t>(m.to) * block + m.to_row * row,
                 base + static_cast<std::uint64_t>(m.from) * block + m.from_row * row, m.n_rows * row);
  }
}

std::uint64_t Exec::move(Strided<const mekik_move> moves) {
  for (std::size_t i = 0; i < moves.size(); ++i) check_move(moves[i]);
  for (std::size_t i = 0; i < moves.size(); ++i) copy(moves[i]);
  return ++ticket_;
}

}  // namespace mekik::reference_backend
