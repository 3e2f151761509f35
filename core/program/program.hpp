// A program as the core holds it: built from a page and a model, folded, verified, lowered, then handed to a backend.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "config/value.hpp"

namespace mekik::program {

struct OpInfo {
  std::uint32_t code;
  const char* name;
  std::uint32_t min_in, max_in, n_out, n_ints, n_reals;
  const char* doc;
};
const OpInfo* op_info(std::uint32_t code);  // nullptr: no such operation
const OpInfo* op_info(std::string_view name);
enum OpCode : std::uint32_t {
#define MEKIK_OP(code, name, min_in, max_in, n_out, n_ints, n_reals, doc) op_##name = code,
#include <mekik/ops.def>
};

// Rows first, first + step, ... (count of them) of source tensor `source`, each of its last size.
struct RowRun {
  std::uint32_t source;
  std::uint64_t first, count;
  std::int64_t step;
};

// One N-dimensional step on decoded F32 values, for weights whose last axis moves.
struct AxisStep {
  enum class What { view, take, order } what;
  std::vector<std::int64_t> numbers;  // view: sizes; take: axis, start, count; order: axes
};

// A little program over one float, in postfix: for `value = "1 + w"`.
struct ValueStep {
  enum class What { weight, constant, add, subtract, multiply, negate, exponential, logarithm } what;
  double constant = 0;
};

// How a weight of the program is made from tensors of the file. Exactly one of: `host`, `rows`, `parts`.
struct WeightRecipe {
  std::string symbol;                       // of the page: "wq"
  std::int32_t layer = -1;                  // -1: not of a layer
  std::uint64_t experts = 1, n = 1, k = 1;  // what the backend gets; a vector is n = 1
  std::vector<float> host;                  // made on the host: rotary tables, slopes [n * k]
  // With `host`: 1 + the index of a source tensor whose values divide host[0], host[1], ... one by one, in F32; 0: none.
  // Some formats keep rotary frequencies as divisors, and programs are built without reading any weights.
  std::uint32_t host_divisors = 0;
  // n * experts rows in order, columns column0 .. column0 + k of each; quantised rows move without being decoded.
  std::vector<RowRun> rows;
  std::uint64_t column0 = 0;
  // The last axis moves: each part is a source and its steps; the results are joined along `join_axis`, reshaped, and kept in F32.
  struct Part {
    std::uint32_t source;
    std::vector<AxisStep> steps;
  };
  std::vector<Part> parts;
  std::int64_t join_axis = 0;
  std::vector<ValueStep> value;  // not empty: decoded, computed, kept in F32
};

struct Tensor {
  std::string name;
  std::uint32_t role = MEKIK_ROLE_TEMP;
  std::vector<std::int64_t> shape;  // as mekik_tensor
  std::string scheme = "f32";
  std::uint32_t group = 0;    // STATE
  std::uint32_t view_of = 0;  // TEMP: 1 + index, 0 none
  std::uint64_t column = 0;
  std::int32_t weight = -1;  // WEIGHT: index into Program::weights
};

struct Op {
  std::uint32_t code = 0, layer = 0;
  std::vector<std::uint32_t> in, out;  // MEKIK_NONE: absent
  std::vector<std::int64_t> ints;
  std::vector<double> reals;
  config::Origin origin;  // the line of the page, for messages
};

// What a program is for: logits to draw tokens from, one vector per text, or one score (or several) per text.
enum class Task { automatic, generate, embed, score };

// A group of STATE tensors that share a block table: layers with the same window.
struct StateGroup {
  std::uint64_t window = 0;  // 0: all positions are kept
};

struct Program {
  std::string page;
  std::vector<Tensor> tensors;
  std::vector<Op> ops;
  std::vector<WeightRecipe> weights;
  std::vector<StateGroup> groups;
  std::uint32_t n_slots = 0;  // SLOT tensors
  std::uint64_t vocab = 0, width = 0, layers = 0, context = 0;
  std::uint64_t reach = 0;            // tokens to which dynamic scaling stretches `context`; else the same
  std::vector<std::string> assumed;   // "every = 6 (gguf does not store it)": printed at load
  std::vector<std::string> warnings;  // what changes an answer and is not done here
  std::vector<std::string> notes;     // keys of the file that no page row names, what is decoded at load, rotary choices
  std::string position_key;           // what tables depend on beyond the weights (LongRoPE's choice): part of the cache key
};

// The ABI's view of a program. Forms of weights are filled in by whoever opens them (weights::Store).
// The view borrows from `program` and from `forms` (one per Program::weights, may be empty).
class ProgramView {
 public:
  ProgramView(const Program& program, const std::vector<const mekik_form*>& forms);
  const mekik_program* get() const { return &raw_; }

 private:
  std::vector<mekik_tensor> tensors_;
  std::vector<mekik_op> ops_;
  mekik_program raw_{};
};

// The output that the program has: "logits", "embedding", ...; of a program with several, the first.
const Tensor& output_of(const Program& program);
std::uint64_t output_size(const Program& program);  // numbers in a row of it
// Whether it reads this input of the batch ("token_types").
bool reads_input(const Program& program, std::string_view name);
// Whether a sequence must come in one step: attention looks both ways, or a pooled output is made of all of its rows.
bool needs_whole_sequences(const Program& program);

// The passes. Each is a pure function; `verify` is run after every one of them in tests.
Program fold(Program program);
Status verify(const Program& program);
// Composites that a backend does not support become their decomposition: `ask(program)` answers for the operations of that program, by
// index, as long as the program is unchanged. An operation that is no composite and not supported is an error naming the operation, the
// layer and `backend`, with the reason that `why` returns.
using Supports = std::function<bool(std::uint32_t op)>;
Result<Program> lower(Program program, std::string_view backend, const std::function<Supports(const Program&)>& ask,
                      const std::function<std::string()>& why);
// The program as text, one operation a line: `mekik model FILE --program`.
std::string to_text(const Program& program);

}  // namespace mekik::program
