// Checks of a batch: every number in it before any of it is used.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reference/backend/exec.hpp"

namespace mekik::reference_backend {

namespace {

void need(bool holds, const std::string& why) {
  if (!holds) throw Error{MEKIK_E_INVALID, why};
}
void need_within(std::uint64_t value, std::uint64_t most, const char* what) {
  need(value <= most, std::to_string(value) + " " + what + " where the limit is " + std::to_string(most));
}

class BatchCheck {
 public:
  BatchCheck(const ProgramReader& program, const Layout& layout, const mekik_limits& limits, const mekik_batch& batch)
      : program_{program}, layout_{layout}, limits_{limits}, b_{batch} {}
  void run() const {
    counts();
    sequences();
    ids();
    axes();
    if (program_.raw().n_groups != 0) blocks();
    if (layout_.has_slots) slots();
    if (uses(MEKIK_USE_TREE)) tree();
  }

 private:
  bool uses(std::uint64_t bit) const { return (b_.uses & bit) != 0; }
  std::uint32_t length(std::uint32_t seq) const { return static_cast<std::uint32_t>(b_.seq_start[seq + 1] - b_.seq_start[seq]); }

  void counts() const {
    need(b_.struct_size >= sizeof(mekik_batch), "the batch is smaller than this backend knows it");
    if ((b_.uses & ~kUses) != 0)
      throw Error{MEKIK_E_UNSUPPORTED, "the batch uses " + std::to_string(b_.uses & ~kUses) + ", which the plan does not list"};
    need(b_.n_tokens > 0 && b_.n_seqs > 0, "an empty batch");
    need_within(b_.n_tokens, limits_.max_tokens, "tokens");
    need_within(b_.n_seqs, limits_.max_seqs, "sequences");
    need_within(b_.n_rows, limits_.max_rows, "rows");
    need_within(b_.max_blocks, limits_.max_blocks, "blocks a sequence");
    for (std::uint32_t i = 0; i < program_.n_tensors(); ++i) {
      const mekik_tensor& t = program_.tensor(i);
      const bool pooled = t.role == MEKIK_ROLE_OUTPUT && t.shape[0] == MEKIK_DIM_SEQS;
      need(!pooled || b_.n_rows == b_.n_seqs, "a pooled output has a row for each sequence: n_rows must be n_seqs");
    }
    need(!uses(MEKIK_USE_SPANS) || b_.spans != nullptr, "SPANS without spans");
    need(!uses(MEKIK_USE_TREE) || b_.tree != nullptr, "TREE without tree");
    need(!uses(MEKIK_USE_TYPES) || b_.token_types != nullptr, "TYPES without token_types");
  }

  void sequences() const {
    need(b_.seq_start != nullptr && b_.seq_start[0] == 0, "sequences must start at token 0");
    for (std::uint32_t seq = 0; seq < b_.n_seqs; ++seq)
      need(b_.seq_start[seq] < b_.seq_start[seq + 1] && static_cast<std::uint32_t>(b_.seq_start[seq + 1]) <= b_.n_tokens,
           "sequence " + std::to_string(seq) + " has no tokens or too many");
    need(static_cast<std::uint32_t>(b_.seq_start[b_.n_seqs]) == b_.n_tokens, "tokens that belong to no sequence");
    const bool stateful = program_.raw().n_groups != 0 || layout_.has_slots;
    need(!stateful || b_.context_len != nullptr, "context_len is missing");
    for (std::uint32_t seq = 0; b_.context_len != nullptr && seq < b_.n_seqs; ++seq) need(b_.context_len[seq] >= 0, "a negative context");
    for (std::uint32_t o = 0; o < program_.n_ops(); ++o) {
      const mekik_op& op = program_.op(o);
      const bool whole = op.code == op::attention_full || op.code == op::attention_near || (op.code == op::pool && op.ints[0] != 2);
      for (std::uint32_t seq = 0; whole && b_.context_len != nullptr && seq < b_.n_seqs; ++seq)
        need(b_.context_len[seq] == 0, describe_op(program_, o) + " needs the whole sequence in one step");
    }
  }

  const std::int32_t* input(std::string_view name) const {
    return name == "tokens"        ? b_.token_ids
           : name == "positions"   ? b_.positions
           : name == "rows"        ? b_.rows
           : name == "token_types" ? b_.token_types
                                   : nullptr;
  }
  std::uint64_t count(std::string_view name) const { return name == "rows" ? b_.n_rows : b_.n_tokens; }

  // Numbers of an input that count rows of something with `bound` rows.
  void bounded(std::uint32_t tensor, std::uint64_t bound, const std::string& where) const {
    const std::uint32_t root = root_of(program_, tensor)->tensor;
    if (program_.tensor(root).role != MEKIK_ROLE_INPUT) return;
    const std::string_view name = program_.name(root);
    const std::int32_t* values = input(name);
    if (name == "segments" || (name == "token_types" && !uses(MEKIK_USE_TYPES)))
      return need(name == "segments" ? b_.n_seqs <= bound : bound > 0, where + ": " + std::string{name} + " out of range");
    need(values != nullptr || count(name) == 0, std::string{name} + " is missing");
    for (std::uint64_t i = 0; i < count(name); ++i) {
      if (name == "tokens" && uses(MEKIK_USE_EMBEDS) && b_.embed_rows[i] >= 0) continue;
      need(values[i] >= 0 && static_cast<std::uint64_t>(values[i]) < bound, where + ": " + std::string{name} + "[" + std::to_string(i) +
                                                                                "] = " + std::to_string(values[i]) + ", of " +
                                                                                std::to_string(bound));
    }
  }

  std::uint64_t rows_of(std::uint32_t tensor) const {
    const std::int64_t dim = program_.tensor(tensor).shape[0];
    return dim == MEKIK_DIM_TOKENS ? b_.n_tokens
           : dim == MEKIK_DIM_SEQS ? b_.n_seqs
           : dim == MEKIK_DIM_ROWS ? b_.n_rows
                                   : static_cast<std::uint64_t>(dim);
  }

  void ids() const {
    if (uses(MEKIK_USE_EMBEDS)) {
      need(b_.embed_rows != nullptr && (b_.embeds != nullptr || b_.n_embeds == 0), "EMBEDS without embeddings");
      for (std::uint32_t t = 0; t < b_.n_tokens; ++t)
        need(b_.embed_rows[t] < static_cast<std::int64_t>(b_.n_embeds),
             "embedding " + std::to_string(b_.embed_rows[t]) + " of " + std::to_string(b_.n_embeds));
    }
    for (std::uint32_t o = 0; o < program_.n_ops(); ++o) {
      const mekik_op& op = program_.op(o);
      const std::string where = describe_op(program_, o);
      const auto table_rows = [&](std::uint32_t i) {
        const mekik_tensor& t = program_.tensor(op.in[i]);
        return whole_size(t) / static_cast<std::uint64_t>(t.shape[t.rank - 1]);
      };
      if (op.code == op::embed) bounded(op.in[0], table_rows(1), where);
      if (op.code == op::embed_mix) bounded(op.in[0], table_rows(2), where);
      if (op.code == op::take_rows) bounded(op.in[1], rows_of(op.in[0]), where);
      if (op.code == op::put_rows && op.in[1] != MEKIK_NONE) bounded(op.in[2], rows_of(op.in[0]), where);
    }
  }

  void axes() const {
    const std::uint32_t n_axes = uses(MEKIK_USE_AXES) ? b_.n_axes : 1;
    need(n_axes >= 1 && n_axes <= 8, std::to_string(n_axes) + " position axes");
    for (std::uint32_t i = 0; i < program_.n_tensors(); ++i) {
      const bool read = program_.tensor(i).role == MEKIK_ROLE_INPUT && program_.name(i) == "positions";
      need(!read || b_.positions != nullptr, "positions are missing");
    }
  }

  void blocks() const {
    need(b_.blocks != nullptr, "block tables are missing");
    std::vector<std::pair<std::uint32_t, std::int32_t>> written;
    for (std::uint32_t g = 0; g < program_.raw().n_groups; ++g) {
      need(b_.blocks[g] != nullptr, "the block table of group " + std::to_string(g) + " is missing");
      for (std::uint32_t seq = 0; seq < b_.n_seqs; ++seq) sequence_blocks(g, seq, written);
    }
    std::sort(written.begin(), written.end());
    need(std::adjacent_find(written.begin(), written.end()) == written.end(), "two sequences write one block");
  }

  void sequence_blocks(std::uint32_t g, std::uint32_t seq, std::vector<std::pair<std::uint32_t, std::int32_t>>& written) const {
    const auto context = static_cast<std::uint64_t>(b_.context_len[seq]), size = std::uint64_t{limits_.block_tokens};
    const std::uint64_t end = context + length(seq), back = layout_.look_back[g];
    const std::uint64_t first = back >= context ? 0 : context - back;  // the earliest row that something reads or writes
    const std::int32_t* table = b_.blocks[g] + std::uint64_t{seq} * b_.max_blocks;
    const std::string where = "group " + std::to_string(g) + ", sequence " + std::to_string(seq) + ": ";
    need((end + size - 1) / size <= b_.max_blocks, where + std::to_string(end) + " tokens do not fit its blocks");
    for (std::uint64_t i = 0; i < b_.max_blocks; ++i)
      need(table[i] >= -1 && (table[i] < 0 || static_cast<std::uint32_t>(table[i]) < limits_.n_blocks[g]),
           where + "block " + std::to_string(table[i]) + " of " + std::to_string(limits_.n_blocks[g]));
    for (std::uint64_t i = first / size; i <= (end - 1) / size; ++i) {
      need(table[i] >= 0, where + "block " + std::to_string(i) + " is missing");
      if (i >= context / size) written.emplace_back(g, table[i]);
    }
  }

  void slots() const {
    need(b_.state_in != nullptr && b_.state_out != nullptr, "slots are missing");
    std::vector<std::int32_t> saved;
    for (std::uint32_t seq = 0; seq < b_.n_seqs; ++seq) {
      const std::int32_t in = b_.state_in[seq];
      need(in >= -1 && in < static_cast<std::int64_t>(limits_.n_slots),
           "slot " + std::to_string(in) + " of " + std::to_string(limits_.n_slots));
      need(in >= 0 || b_.context_len[seq] == 0, "sequence " + std::to_string(seq) + " has a past but no state");
      for (std::int32_t t = b_.seq_start[seq]; t < b_.seq_start[seq + 1]; ++t) {
        const std::int32_t out = b_.state_out[t];
        need(out >= -1 && out < static_cast<std::int64_t>(limits_.n_slots),
             "slot " + std::to_string(out) + " of " + std::to_string(limits_.n_slots));
        need(out < 0 || uses(MEKIK_USE_STATE_OUT) || t + 1 == b_.seq_start[seq + 1],
             "a state is saved within a sequence's tokens without STATE_OUT");
        if (out >= 0) saved.push_back(out);
      }
    }
    std::sort(saved.begin(), saved.end());
    need(std::adjacent_find(saved.begin(), saved.end()) == saved.end(), "one slot is written twice");
  }

  void tree() const {
    for (std::uint32_t seq = 0; seq < b_.n_seqs; ++seq) {
      need(length(seq) <= 64, "a tree of more than 64 tokens");
      for (std::uint32_t i = 0; i < length(seq); ++i) {
        const std::uint64_t mask = b_.tree[static_cast<std::uint32_t>(b_.seq_start[seq]) + i],
                            up_to = i == 63 ? ~std::uint64_t{0} : (std::uint64_t{2} << i) - 1;
        need((mask >> i & 1) != 0 && (mask & ~up_to) == 0, "a token of a tree sees itself and tokens before it");
        if (layout_.has_slots && mask != up_to) throw Error{MEKIK_E_UNSUPPORTED, "recurrent states cannot follow a tree, only a chain"};
      }
    }
  }

  const ProgramReader& program_;
  const Layout& layout_;
  const mekik_limits& limits_;
  const mekik_batch& b_;
};

}  // namespace

void check_batch(const ProgramReader& program, const Layout& layout, const mekik_limits& limits, const mekik_batch& batch) {
  BatchCheck{program, layout, limits, batch}.run();
}

}  // namespace mekik::reference_backend
