#include "engine/evaluate.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "engine/vectors.hpp"
#include "sample/draw.hpp"

namespace mekik::engine {

namespace {

// The block tables of the only sequence: block i of a group is stored in block i modulo the pool; the ones behind a window are gone.
class Tables {
 public:
  explicit Tables(const Model& model) : model_{model} {}

  void fill(std::uint32_t first_token, std::uint32_t tokens_after) {
    const std::uint32_t bt = model_.limits().block_tokens;
    const std::uint32_t blocks = (tokens_after + bt - 1) / bt;
    const auto& groups = model_.program().groups;
    rows_.resize(groups.size());
    pointers_.clear();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      rows_[g].assign(model_.limits().max_blocks, -1);
      const std::uint64_t window = groups[g].window;
      const std::uint32_t oldest = window == 0 || first_token + 1 <= window ? 0 : static_cast<std::uint32_t>(first_token + 1 - window) / bt;
      for (std::uint32_t b = oldest; b < blocks; ++b) rows_[g][b] = static_cast<std::int32_t>(b % model_.limits().n_blocks[g]);
      pointers_.push_back(rows_[g].data());
    }
  }
  const std::int32_t* const* get() const { return pointers_.data(); }

 private:
  const Model& model_;
  std::vector<std::vector<std::int32_t>> rows_;
  std::vector<const std::int32_t*> pointers_;
};

}  // namespace

Status evaluate(Model& model, std::span<const std::int32_t> tokens, bool all, const std::function<void(std::span<const float>)>& on_row) {
  if (tokens.empty()) return invalid("at least one token is needed");
  const program::Program& program = model.program();
  const bool vectors = program::output_of(program).name != "logits";
  if (vectors && all) return unsupported("the model gives one " + program::output_of(program).name + " for all tokens, not a row for each");
  if (tokens.size() > model.context())
    return invalid(std::to_string(tokens.size()) + " tokens are more than the context of " + std::to_string(model.context()) +
                   "; raise model.context or cache.memory, or give fewer");
  for (const std::int32_t id : tokens)
    if (id < 0 || static_cast<std::uint32_t>(id) >= model.vocab())
      return invalid("token " + std::to_string(id) + " is outside the vocabulary (0 to " + std::to_string(model.vocab() - 1) + ")");

  const mekik_limits& limits = model.limits();
  const std::uint32_t step = all ? std::min(limits.max_tokens, limits.max_rows) : limits.max_tokens;
  Tables tables{model};
  const std::size_t size = program::output_size(program);
  std::vector<float> output(std::size_t{all ? step : 1} * size);
  std::vector<std::int32_t> positions, rows, state_out;
  for (std::uint32_t at = 0; at < tokens.size(); at += step) {
    const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(step, tokens.size() - at));
    const bool last = at + n == tokens.size();
    positions.resize(n);
    for (std::uint32_t i = 0; i < n; ++i) positions[i] = static_cast<std::int32_t>(at + i);
    rows.clear();
    for (std::uint32_t i = all ? 0 : n - 1; i < n && (all || last || vectors); ++i) rows.push_back(static_cast<std::int32_t>(i));
    state_out.assign(n, -1);
    state_out.back() = 0;
    tables.fill(at, at + n);
    const std::int32_t seq_start[2] = {0, static_cast<std::int32_t>(n)}, context_len = static_cast<std::int32_t>(at),
                       state_in = at == 0 ? -1 : 0;
    mekik_batch batch{};
    batch.struct_size = sizeof batch;
    batch.n_tokens = n;
    batch.n_seqs = 1;
    batch.n_rows = static_cast<std::uint32_t>(rows.size());
    batch.max_blocks = limits.max_blocks;
    batch.n_axes = 1;
    batch.token_ids = tokens.data() + at;
    batch.positions = positions.data();
    batch.seq_start = seq_start;
    batch.context_len = &context_len;
    batch.blocks = tables.get();
    batch.rows = rows.data();
    batch.state_in = &state_in;
    batch.state_out = state_out.data();
    (vectors ? batch.hidden : batch.logits) = output.data();
    if (vectors) batch.uses = MEKIK_USE_HIDDEN;
    std::uint64_t ticket = 0;
    MEKIK_CHECK_OK(plugin::to_status(model.backend().submit(model.exec(), &batch, &ticket), "step"));
    mekik_status waited = MEKIK_E_BUSY;
    while (waited == MEKIK_E_BUSY) waited = model.backend().wait(model.exec(), ticket, 1'000'000'000);
    MEKIK_CHECK_OK(plugin::to_status(waited, "step"));
    for (std::size_t r = 0; r < rows.size() && (last || all); ++r) {
      const std::span<const float> row = std::span<const float>{output}.subspan(r * size, size);
      MEKIK_CHECK_OK(vectors ? check_finite(row) : sample::check_logits(row));
      on_row(row);
    }
  }
  return {};
}

}  // namespace mekik::engine
