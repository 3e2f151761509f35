#include "simulate/backend.hpp"

#include <cmath>
#include <cstring>

#include "simulate/random.hpp"

namespace mekik::simulate {

Shape shape_of(const mekik_batch& batch) {
  Shape out;
  out.tokens = batch.n_tokens;
  out.rows = batch.n_rows;
  for (std::uint32_t s = 0; s < batch.n_seqs; ++s) {
    const double tokens = batch.seq_start[s + 1] - batch.seq_start[s];
    out.context += tokens * (batch.context_len[s] + (tokens - 1) / 2);
  }
  return out;
}

double step_ns(const Costs& costs, const Shape& shape) {
  return costs.step + costs.token * shape.tokens + costs.row * shape.rows + costs.context * shape.context;
}
double host_ns(const Costs& costs, const Shape& shape) { return costs.host_step + costs.host_row * shape.rows; }

SimulatedBackend::SimulatedBackend(const Costs& costs, std::uint32_t vocabulary, const Clock& clock,
                                   std::function<void(std::uint64_t until_ns)> pass)
    : costs_{costs}, vocabulary_{vocabulary}, clock_{clock}, pass_{std::move(pass)} {}

const mekik_backend& SimulatedBackend::table() {
  static const mekik_backend backend = [] {
    mekik_backend b{};
    b.struct_size = sizeof b;
    b.submit = [](mekik_exec* e, const mekik_batch* batch, std::uint64_t* ticket) {
      return reinterpret_cast<SimulatedBackend*>(e)->submit(*batch, ticket);
    };
    b.move = [](mekik_exec* e, const mekik_move*, std::uint32_t, std::uint32_t, std::uint64_t* ticket) {
      *ticket = ++reinterpret_cast<SimulatedBackend*>(e)->ticket_;
      return mekik_status{MEKIK_OK};
    };
    b.wait = [](mekik_exec* e, std::uint64_t ticket, std::uint64_t) { return reinterpret_cast<SimulatedBackend*>(e)->wait(ticket); };
    return b;
  }();
  return backend;
}

mekik_status SimulatedBackend::submit(const mekik_batch& batch, std::uint64_t* ticket) {
  last_ = shape_of(batch);
  ends_ns_ = clock_.now_ns() + static_cast<std::uint64_t>(std::llround(step_ns(costs_, last_)));
  logits_ = batch.logits;
  picks_.clear();
  for (std::uint32_t r = 0; r < batch.n_rows; ++r) {
    const auto token = static_cast<std::size_t>(batch.rows[r]);
    const auto place = static_cast<std::uint64_t>(batch.positions[token]);
    picks_.push_back(static_cast<std::int32_t>(mix(static_cast<std::uint64_t>(batch.token_ids[token]), place) % vocabulary_));
  }
  *ticket = step_ticket_ = ++ticket_;
  return MEKIK_OK;
}

mekik_status SimulatedBackend::wait(std::uint64_t ticket) {
  if (step_ticket_ == 0 || ticket < step_ticket_) return MEKIK_OK;
  step_ticket_ = 0;
  pass_(ends_ns_);
  if (picks_.empty()) return MEKIK_OK;
  std::memset(logits_, 0, picks_.size() * vocabulary_ * sizeof(float));
  for (std::size_t r = 0; r < picks_.size(); ++r) logits_[r * vocabulary_ + static_cast<std::size_t>(picks_[r])] = 1;
  return MEKIK_OK;
}

}  // namespace mekik::simulate
