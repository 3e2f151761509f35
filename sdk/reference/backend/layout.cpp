#include "reference/backend/layout.hpp"

#include <gnu/libc-version.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cstring>
#include <string>

#include <mekik/head_form.hpp>
#include <mekik/numbers.hpp>
#include "reference/check.hpp"
#include "reference/form.hpp"
#include "reference/rows.hpp"

namespace mekik::reference_backend {

namespace {

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > (std::uint64_t{1} << 62))
    throw Error{MEKIK_E_NO_MEMORY, "the limits ask for more memory than can be counted"};
  return product;
}
std::uint64_t padded(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }

bool is_input_read(const mekik_op& o, std::uint32_t i, std::uint32_t tensor) {
  const bool unused = o.code == op::put_rows && o.in[1] == MEKIK_NONE && i == 2;
  return o.in[i] == tensor && !unused;
}

void check_input(const ProgramReader& program, std::uint32_t index) {
  const mekik_tensor& t = program.tensor(index);
  const std::string_view name = program.name(index);
  const std::int64_t dim = name == "rows" ? MEKIK_DIM_ROWS : MEKIK_DIM_TOKENS;
  const bool known = name == "tokens" || name == "positions" || name == "rows" || name == "segments" || name == "token_types";
  if (known && (t.rank != 1 || t.shape[0] != dim))
    throw Error{MEKIK_E_INVALID, "input \"" + std::string{name} + "\" does not have its shape"};
  if (known) return;
  for (std::uint32_t o = 0; o < program.n_ops(); ++o)
    for (std::uint32_t i = 0; i < program.op(o).n_in; ++i)
      if (is_input_read(program.op(o), i, index))
        throw Error{MEKIK_E_UNSUPPORTED, describe_op(program, o) + ": the backend reference has no input \"" + std::string{name} + "\""};
}

void check_program(const ProgramReader& program) {
  if (const std::string why = check_tensors(program.raw()); !why.empty()) throw Error{MEKIK_E_INVALID, why};
  for (std::uint32_t o = 0; o < program.n_ops(); ++o)
    if (const std::string why = reference::check_op(program, o); !why.empty())
      throw Error{MEKIK_E_UNSUPPORTED, describe_op(program, o) + ": " + why};
  for (std::uint32_t i = 0; i < program.n_tensors(); ++i) {
    const mekik_tensor& t = program.tensor(i);
    if (t.role == MEKIK_ROLE_INPUT) check_input(program, i);
    if (t.role == MEKIK_ROLE_OUTPUT && (!is_output_name(program.name(i)) || (t.shape[0] != MEKIK_DIM_ROWS && t.shape[0] != MEKIK_DIM_SEQS)))
      throw Error{MEKIK_E_UNSUPPORTED, "output \"" + std::string{program.name(i)} + "\" is not known"};
    if (t.role == MEKIK_ROLE_WEIGHT && t.form == nullptr)
      throw Error{MEKIK_E_INVALID, "weight \"" + std::string{program.name(i)} + "\" has no form"};
  }
}

// Bytes of a TEMP or OUTPUT at the limits.
std::uint64_t buffer_bytes(const mekik_tensor& t, const mekik_limits& limits) {
  const std::uint64_t rows = t.shape[0] == MEKIK_DIM_TOKENS ? limits.max_tokens
                             : t.shape[0] == MEKIK_DIM_SEQS ? limits.max_seqs
                             : t.shape[0] == MEKIK_DIM_ROWS ? limits.max_rows
                                                            : static_cast<std::uint64_t>(t.shape[0]);
  return padded(times(times(rows, row_size(t)), sizeof(float)));
}

struct Life {
  std::uint32_t tensor, begin, end;  // operations
  std::uint64_t bytes, offset;
};

// When each buffer is written and last read. Single assignment and write before read are checked on the way.
std::vector<Life> lives_of(const ProgramReader& program, const mekik_limits& limits) {
  constexpr std::uint32_t none = ~0u;
  std::vector<std::uint32_t> life_of(program.n_tensors(), none);
  std::vector<Life> lives;
  const auto is_buffer = [&](std::uint32_t i) {
    return program.tensor(i).role == MEKIK_ROLE_TEMP || program.tensor(i).role == MEKIK_ROLE_OUTPUT;
  };
  for (std::uint32_t o = 0; o < program.n_ops(); ++o) {
    const mekik_op& op = program.op(o);
    for (std::uint32_t i = 0; i < op.n_in; ++i) {
      if (op.in[i] == MEKIK_NONE) continue;
      const std::uint32_t root = root_of(program, op.in[i])->tensor;
      if (!is_buffer(root)) continue;
      if (life_of[root] == none)
        throw Error{MEKIK_E_INVALID, describe_op(program, o) + ": reads " + std::string{program.name(root)} + " before it is written"};
      lives[life_of[root]].end = o;
    }
    for (std::uint32_t i = 0; i < op.n_out; ++i) {
      const std::uint32_t out = op.out[i];
      if (life_of[out] != none)
        throw Error{MEKIK_E_INVALID, describe_op(program, o) + ": writes " + std::string{program.name(out)} + " again"};
      life_of[out] = static_cast<std::uint32_t>(lives.size());
      const bool kept = program.tensor(out).role == MEKIK_ROLE_OUTPUT;
      lives.push_back({out, o, kept ? program.n_ops() : o, buffer_bytes(program.tensor(out), limits), 0});
    }
  }
  return lives;
}

// First fit: a buffer goes to the lowest place that no buffer alive at the same time has.
void place_buffers(std::vector<Life>& lives, Layout& layout) {
  std::vector<const Life*> alive;
  for (Life& life : lives) {
    std::erase_if(alive, [&](const Life* other) { return other->end < life.begin; });
    std::sort(alive.begin(), alive.end(), [](const Life* a, const Life* b) { return a->offset < b->offset; });
    for (const Life* other : alive) {
      if (life.offset + life.bytes <= other->offset) break;
      life.offset = std::max(life.offset, other->offset + other->bytes);
    }
    alive.push_back(&life);
    layout.offset[life.tensor] = life.offset;
    layout.arena_bytes = std::max(layout.arena_bytes, life.offset + life.bytes);
  }
}

void place_states(const ProgramReader& program, const mekik_limits& limits, Layout& layout) {
  for (std::uint32_t i = 0; i < program.n_tensors(); ++i) {
    const mekik_tensor& t = program.tensor(i);
    if (t.role == MEKIK_ROLE_STATE) {
      const reference::StateForm form = reference::state_form(t.scheme);
      if (form.num == 0)
        throw Error{MEKIK_E_UNSUPPORTED, "state \"" + std::string{program.name(i)} + "\": this backend stores " + kKvFormNames};
      const auto heads = static_cast<std::uint64_t>(t.rank > 2 ? t.shape[1] : 1);
      layout.offset[i] = layout.block_bytes[t.group];
      layout.block_bytes[t.group] += padded(times(limits.block_tokens, form.row_bytes(heads, row_size(t))));
    } else if (t.role == MEKIK_ROLE_SLOT) {
      layout.has_slots = true;
      layout.offset[i] = layout.slot_bytes;
      layout.slot_bytes += padded(times(whole_size(t), sizeof(float)));
    } else if (t.role == MEKIK_ROLE_WEIGHT) {
      layout.weight_bytes[i] = reference::Weight::bytes(*t.form);
      layout.all_weight_bytes += layout.weight_bytes[i];
    }
  }
  layout.slot_pool_bytes = times(layout.slot_bytes, limits.n_slots);
  for (std::uint32_t g = 0; g < program.raw().n_groups; ++g) layout.kv_bytes += times(layout.block_bytes[g], limits.n_blocks[g]);
}

void find_look_back(const ProgramReader& program, Layout& layout) {
  for (std::uint32_t o = 0; o < program.n_ops(); ++o) {
    const mekik_op& op = program.op(o);
    const bool latent = op.code == op::mla_attention;
    if (op.code != op::attention && op.code != op::attention_chunk && !latent) continue;
    const std::uint32_t group = program.tensor(op.in[latent ? 4 : 1]).group;
    const std::int64_t window = op.ints[2];
    layout.look_back[group] = std::max(layout.look_back[group], window == 0 ? kAllRows : static_cast<std::uint64_t>(window) - 1);
  }
}

void check_limits(const mekik_limits& limits) {
  if (limits.struct_size < sizeof(mekik_limits)) throw Error{MEKIK_E_INVALID, "the limits are smaller than this backend knows them"};
  if (limits.block_tokens == 0 || limits.max_tokens == 0 || limits.max_seqs == 0) throw Error{MEKIK_E_INVALID, "limits of 0 tokens"};
  if (limits.n_adapters != 0) throw Error{MEKIK_E_UNSUPPORTED, "the backend reference has no adapters"};
}

std::string shape_text(const mekik_tensor& t) {
  std::string text = t.scheme != nullptr ? t.scheme : "";
  for (std::uint32_t d = 0; d < t.rank; ++d) text += " " + std::to_string(t.shape[d]);
  return text + ";";
}

void sha256(const std::string& text, std::uint8_t out[32]) {
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out);
}

}  // namespace

Layout lay_out(const mekik_program& raw, const mekik_limits& limits) {
  check_limits(limits);
  const ProgramReader program{raw};
  check_program(program);
  Layout layout;
  layout.offset.resize(program.n_tensors());
  layout.weight_bytes.resize(program.n_tensors());
  auto lives = lives_of(program, limits);
  place_buffers(lives, layout);
  place_states(program, limits, layout);
  find_look_back(program, layout);
  const std::uint64_t most_rows = std::max({limits.max_tokens, limits.max_rows, limits.max_seqs});
  std::uint64_t scratch = 0, widest = 0;
  for (std::uint32_t o = 0; o < program.n_ops(); ++o)
    scratch = std::max(scratch, reference::scratch_floats(program, o, {most_rows, limits.max_seqs}));
  for (std::uint32_t i = 0; i < program.n_tensors(); ++i)
    if (program.tensor(i).role == MEKIK_ROLE_WEIGHT) widest = std::max<std::uint64_t>(widest, program.tensor(i).form->k);
  // The scratch of operations, and the decoded panels of eight rows that the threads hold.
  layout.scratch_bytes = padded(times(scratch, sizeof(float))) + padded(times(widest, 8 * sizeof(float) * reference::kMaxTasks));
  return layout;
}

void identify(const mekik_program& raw, const mekik_limits& limits, const std::string& kernels, std::uint8_t layout_id[32],
              std::uint8_t numeric_id[32]) {
  const ProgramReader program{raw};
  std::string layout = "mekik reference layout 1; block " + std::to_string(limits.block_tokens) + ";";
  for (std::uint32_t i = 0; i < program.n_tensors(); ++i) {
    const mekik_tensor& t = program.tensor(i);
    if (t.role == MEKIK_ROLE_STATE) layout += "state " + std::to_string(t.group) + " " + shape_text(t);
    if (t.role == MEKIK_ROLE_SLOT) layout += "slot " + shape_text(t);
  }
  sha256(layout, layout_id);
  // exp, tanh, sin and cos are those of the C library.
  sha256(std::string{"mekik reference kernels 1; libc "} + gnu_get_libc_version() + (kernels.empty() ? "" : "; " + kernels), numeric_id);
}

}  // namespace mekik::reference_backend
