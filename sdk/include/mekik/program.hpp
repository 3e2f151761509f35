// mekik/program.hpp - header-only C++20 reading of mekik_program for backends: strides, row shapes, views, operation names.
// Everything borrows from the program; nothing allocates but messages and ProgramCopy. Thread: any.
#pragma once
#include <mekik/plugin.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mekik {

namespace op {  // op::embed, op::linear, ...: the codes of ops.def
enum Code : std::uint32_t {
#define MEKIK_OP(code, name, min_in, max_in, n_out, n_ints, n_reals, doc) name = code,
#include <mekik/ops.def>
};
}  // namespace op

struct OpRow {
  std::uint32_t code;
  const char* name;
  std::uint32_t min_in, max_in, n_out, n_ints, n_reals;
  const char* doc;
};
inline constexpr OpRow kOpRows[] = {
#define MEKIK_OP(code, name, min_in, max_in, n_out, n_ints, n_reals, doc) {code, #name, min_in, max_in, n_out, n_ints, n_reals, doc},
#include <mekik/ops.def>
};
constexpr const OpRow* op_row(std::uint32_t code) {  // nullptr: no such operation
  for (const OpRow& row : kOpRows)
    if (row.code == code) return &row;
  return nullptr;
}

// The program's arrays, by index, with the strides of whoever wrote it. Indices must be in range (see check_tensors).
class ProgramReader {
 public:
  explicit ProgramReader(const mekik_program& program) : raw_{&program} {}
  const mekik_program& raw() const { return *raw_; }
  std::uint32_t n_tensors() const { return raw_->n_tensors; }
  std::uint32_t n_ops() const { return raw_->n_ops; }
  const mekik_tensor& tensor(std::uint32_t i) const {
    return *reinterpret_cast<const mekik_tensor*>(reinterpret_cast<const char*>(raw_->tensors) + std::size_t{i} * raw_->tensor_size);
  }
  const mekik_op& op(std::uint32_t i) const {
    return *reinterpret_cast<const mekik_op*>(reinterpret_cast<const char*>(raw_->ops) + std::size_t{i} * raw_->op_size);
  }
  std::string_view name(std::uint32_t i) const { return tensor(i).name != nullptr ? tensor(i).name : "?"; }

 private:
  const mekik_program* raw_;
};

// Elements of one row: the product of all sizes but the first. 1 for a tensor of rank 1 ("tokens" [T]).
inline std::uint64_t row_size(const mekik_tensor& t) {
  std::uint64_t size = 1;
  for (std::uint32_t d = 1; d < t.rank; ++d) size *= static_cast<std::uint64_t>(t.shape[d]);
  return size;
}
inline std::uint64_t last_size(const mekik_tensor& t) { return t.rank < 2 ? 1 : static_cast<std::uint64_t>(t.shape[t.rank - 1]); }
// Elements of a tensor without a symbolic size: a weight, a slot.
inline std::uint64_t whole_size(const mekik_tensor& t) { return t.rank == 0 ? 0 : static_cast<std::uint64_t>(t.shape[0]) * row_size(t); }

// The tensor that owns the memory of `i`, and the column at which `i` begins in its rows.
struct Root {
  std::uint32_t tensor;
  std::uint64_t column;
};
inline std::optional<Root> root_of(const ProgramReader& program, std::uint32_t i) {  // empty: a chain of views that does not end
  Root root{i, 0};
  for (std::uint32_t depth = 0; depth < 16; ++depth) {
    const mekik_tensor& t = program.tensor(root.tensor);
    if (t.view_of == 0) return root;
    if (t.view_of > program.n_tensors()) return std::nullopt;
    root.column += t.column;
    root.tensor = t.view_of - 1;
  }
  return std::nullopt;
}

// The names of outputs: "logits" goes to mekik_batch.logits, the others to mekik_batch.hidden.
inline bool is_output_name(std::string_view name) { return name == "logits" || name == "hidden" || name == "embedding" || name == "score"; }

// "layer 3, attention (operation 41)": the start of a message about an operation.
inline std::string describe_op(const ProgramReader& program, std::uint32_t i) {
  const mekik_op& o = program.op(i);
  const OpRow* row = op_row(o.code);
  const std::string name = row != nullptr ? row->name : "code " + std::to_string(o.code);
  return "layer " + std::to_string(o.layer) + ", " + name + " (operation " + std::to_string(i) + ")";
}

// What may be wrong with the tensors of a program, whatever its operations. Empty: nothing.
inline std::string check_tensors(const mekik_program& raw) {
  if (raw.struct_size < sizeof(mekik_program) || raw.tensor_size < sizeof(mekik_tensor) || raw.op_size < sizeof(mekik_op))
    return "the program's tables are smaller than this backend knows them";
  if (raw.n_groups > MEKIK_MAX_GROUPS) return "the program has " + std::to_string(raw.n_groups) + " groups of blocks; 8 is the most";
  const ProgramReader program{raw};
  for (std::uint32_t i = 0; i < raw.n_tensors; ++i) {
    const mekik_tensor& t = program.tensor(i);
    const auto wrong = [&](const std::string& why) {
      return "tensor " + std::to_string(i) + " \"" + std::string{program.name(i)} + "\": " + why;
    };
    if (t.role < MEKIK_ROLE_WEIGHT || t.role > MEKIK_ROLE_SLOT) return wrong("unknown role " + std::to_string(t.role));
    if (t.rank < 1 || t.rank > 4) return wrong("rank " + std::to_string(t.rank) + "; it must be 1 to 4");
    std::uint64_t size = 1;
    for (std::uint32_t d = 0; d < t.rank; ++d) {
      const bool symbolic = d == 0 && t.shape[0] < 0 && t.shape[0] >= MEKIK_DIM_ROWS;
      if (symbolic) continue;
      if (t.shape[d] < 1 || t.shape[d] > (std::int64_t{1} << 40) / static_cast<std::int64_t>(size)) return wrong("a size that cannot be");
      size *= static_cast<std::uint64_t>(t.shape[d]);
    }
    if (t.role == MEKIK_ROLE_STATE && t.group >= raw.n_groups)
      return wrong("group " + std::to_string(t.group) + " of " + std::to_string(raw.n_groups));
    if (t.view_of == 0) continue;
    const auto root = root_of(program, i);
    if (t.role != MEKIK_ROLE_TEMP || !root) return wrong("is no view of anything");
    const mekik_tensor& owner = program.tensor(root->tensor);
    if (owner.role != MEKIK_ROLE_TEMP && owner.role != MEKIK_ROLE_INPUT && owner.role != MEKIK_ROLE_OUTPUT)
      return wrong("a view of something that has no rows");
    if (owner.shape[0] != t.shape[0]) return wrong("a view has the rows of what it views");
    if (root->column > row_size(owner) || row_size(t) > row_size(owner) - root->column) return wrong("a view past the end of the row");
  }
  return {};
}

// A program of one's own: what compile() is given is borrowed for the call. Forms are left out (mekik_tensor.form is NULL): their
// owner may let go of them, and weight() brings each again.
class ProgramCopy {
 public:
  // `from` must have passed check_tensors, and every list of its operations must be there.
  explicit ProgramCopy(const mekik_program& from) {
    const ProgramReader reader{from};
    for (std::uint32_t i = 0; i < from.n_tensors; ++i) {
      mekik_tensor t = reader.tensor(i);
      t.name = keep(t.name);
      t.scheme = keep(t.scheme);
      t.form = nullptr;
      tensors_.push_back(t);
    }
    for (std::uint32_t i = 0; i < from.n_ops; ++i) {
      mekik_op o = reader.op(i);
      o.in = keep(o.in, o.n_in, indices_);
      o.out = keep(o.out, o.n_out, indices_);
      o.ints = keep(o.ints, o.n_ints, ints_);
      o.reals = keep(o.reals, o.n_reals, reals_);
      ops_.push_back(o);
    }
    raw_ = from;
    raw_.struct_size = sizeof(mekik_program);
    raw_.tensors = tensors_.data();
    raw_.tensor_size = sizeof(mekik_tensor);
    raw_.ops = ops_.data();
    raw_.op_size = sizeof(mekik_op);
  }
  ProgramCopy(const ProgramCopy&) = delete;
  ProgramCopy& operator=(const ProgramCopy&) = delete;
  ProgramReader reader() const { return ProgramReader{raw_}; }

 private:
  template <class T>
  using Lists = std::vector<std::vector<T>>;
  const char* keep(const char* text) {
    if (text == nullptr) return nullptr;
    texts_.emplace_back(text, text + std::string_view{text}.size() + 1);
    return texts_.back().data();
  }
  template <class T>
  static const T* keep(const T* list, std::uint32_t n, Lists<T>& lists) {
    lists.emplace_back(list, list + n);  // a list's own memory stays where it is when the outer vector grows
    return lists.back().data();
  }
  std::vector<mekik_tensor> tensors_;
  std::vector<mekik_op> ops_;
  Lists<char> texts_;
  Lists<std::uint32_t> indices_;
  Lists<std::int64_t> ints_;
  Lists<double> reals_;
  mekik_program raw_{};
};

}  // namespace mekik
