// A backend without a model: it stores each token in the block that it is told, and its logits are a function of what it reads back
// through the block tables. A wrong, shared or recycled block changes the answer or is reported as a fault.
#pragma once
#include <mekik/plugin.h>

#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace mekik::test {

inline std::uint64_t mix(std::uint64_t x) {  // SplitMix64's finaliser
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

class FakeBackend {
 public:
  // Called with a sequence's tokens up to a row (those that every group still holds) and the row's logits; may change them.
  using Hook = std::function<void(std::span<const std::int32_t> tokens, std::span<float> logits)>;

  FakeBackend(const mekik_limits& limits, std::vector<std::uint64_t> windows, std::uint32_t vocab, bool slots)
      : limits_{limits}, windows_{std::move(windows)}, vocab_{vocab}, slots_on_{slots}, slots_(limits.n_slots) {
    for (std::size_t g = 0; g < windows_.size(); ++g)
      store_.emplace_back(std::size_t{limits.n_blocks[g]} * limits.block_tokens, Row{-1, -1});
  }
  mekik_exec* exec() { return reinterpret_cast<mekik_exec*>(this); }
  std::uint64_t block_bytes() const { return limits_.block_tokens * sizeof(Row); }
  static std::uint64_t slot_bytes() { return sizeof(std::uint64_t); }
  static const mekik_backend& table() {
    static const mekik_backend backend = [] {
      mekik_backend b{};
      b.struct_size = sizeof b;
      b.submit = [](mekik_exec* e, const mekik_batch* batch, std::uint64_t* ticket) { return self(e).submit(*batch, ticket); };
      b.move = [](mekik_exec* e, const mekik_move* m, std::uint32_t n, std::uint32_t, std::uint64_t* ticket) {
        return self(e).move({m, n}, ticket);
      };
      b.state_read = [](mekik_exec* e, std::uint32_t what, std::uint32_t group, std::int32_t id, void* to, std::uint64_t bytes,
                        std::uint64_t* ticket) {
        const auto place = self(e).place(what, group, id, bytes);
        std::memcpy(to, place.data(), place.size());
        *ticket = ++self(e).ticket_;
        return mekik_status{MEKIK_OK};
      };
      b.state_write = [](mekik_exec* e, std::uint32_t what, std::uint32_t group, std::int32_t id, const void* from, std::uint64_t bytes,
                         std::uint64_t* ticket) {
        const auto place = self(e).place(what, group, id, bytes);
        std::memcpy(place.data(), from, place.size());
        *ticket = ++self(e).ticket_;
        return mekik_status{MEKIK_OK};
      };
      b.wait = [](mekik_exec* e, std::uint64_t ticket, std::uint64_t) { return self(e).wait(ticket); };
      return b;
    }();
    return backend;
  }

  Hook hook;
  mekik_status fail_submit = MEKIK_OK, fail_wait = MEKIK_OK, fail_move = MEKIK_OK;  // the next such call fails once
  std::uint32_t polls = 0;                                                          // waits that answer "not yet" first
  std::vector<std::string> faults;                                                  // what the loop did wrong
  std::uint64_t submits = 0, moves = 0, tokens_run = 0;
  std::vector<std::uint32_t> batch_tokens;  // of each submit

 private:
  struct Row {
    std::int32_t token, position;
  };
  struct Pending {
    std::uint64_t ticket;
    float* logits;
    std::vector<float> values;
  };
  static FakeBackend& self(mekik_exec* e) { return *reinterpret_cast<FakeBackend*>(e); }
  void fault(std::string what) {
    if (faults.size() < 20) faults.push_back(std::move(what));
  }
  std::span<std::uint8_t> place(std::uint32_t what, std::uint32_t group, std::int32_t id, std::uint64_t bytes) {
    const bool slot = what == MEKIK_WHAT_SLOT;
    const std::size_t size = slot ? sizeof slots_[0] : limits_.block_tokens * sizeof(Row);
    if (bytes != size) fault("a block or slot of another size");
    auto* begin = slot ? reinterpret_cast<std::uint8_t*>(&slots_[static_cast<std::size_t>(id)])
                       : reinterpret_cast<std::uint8_t*>(&store_[group][static_cast<std::size_t>(id) * limits_.block_tokens]);
    return {begin, size};
  }
  Row* row(const mekik_batch& b, std::uint32_t group, std::uint32_t seq, std::uint32_t position) {
    const auto at = position / limits_.block_tokens;
    if (at >= b.max_blocks) return fault("position behind the block table"), nullptr;
    const auto block = b.blocks[group][seq * b.max_blocks + at];
    if (block < 0 || static_cast<std::uint32_t>(block) >= limits_.n_blocks[group]) return nullptr;
    return &store_[group][static_cast<std::size_t>(block) * limits_.block_tokens + position % limits_.block_tokens];
  }

  mekik_status submit(const mekik_batch& b, std::uint64_t* ticket) {
    if (fail_submit != MEKIK_OK) return std::exchange(fail_submit, MEKIK_OK);
    if (b.n_tokens == 0 || b.n_tokens > limits_.max_tokens) fault("batch of " + std::to_string(b.n_tokens) + " tokens");
    if (b.n_seqs > limits_.max_seqs) fault("batch of " + std::to_string(b.n_seqs) + " sequences");
    if (b.n_rows > limits_.max_rows) fault("batch of " + std::to_string(b.n_rows) + " rows");
    if (b.max_blocks > limits_.max_blocks) fault("a table of " + std::to_string(b.max_blocks) + " blocks");
    ++submits;
    tokens_run += b.n_tokens;
    batch_tokens.push_back(b.n_tokens);
    Pending out{++ticket_, b.logits, std::vector<float>(std::size_t{b.n_rows} * vocab_)};
    std::uint32_t next_row = 0;
    const std::vector<std::uint64_t> before = slots_;  // what the step starts from is read before anything is written
    std::vector<bool> written(slots_.size(), false);
    for (std::uint32_t s = 0; s < b.n_seqs; ++s) {
      const auto begin = static_cast<std::uint32_t>(b.seq_start[s]), end = static_cast<std::uint32_t>(b.seq_start[s + 1]);
      const auto context = static_cast<std::uint32_t>(b.context_len[s]);
      if (begin >= end) fault("a sequence without tokens");
      std::uint64_t state = 0;
      if (slots_on_ && b.state_in[s] >= 0) state = before[static_cast<std::size_t>(b.state_in[s])];
      if (slots_on_ && (b.state_in[s] < 0) != (context == 0)) fault("a sequence that goes on without its state");
      for (auto t = begin; t < end; ++t) {
        const auto position = context + t - begin;
        if (b.positions[t] != static_cast<std::int32_t>(position)) fault("a wrong position");
        if (b.token_ids[t] < 0 || static_cast<std::uint32_t>(b.token_ids[t]) >= vocab_) fault("a token that the vocabulary does not have");
        for (std::uint32_t g = 0; g < windows_.size(); ++g) {
          if (auto* r = row(b, g, s, position)) *r = {b.token_ids[t], b.positions[t]};
          else fault("no block to store a token in");
        }
        state = mix(state ^ static_cast<std::uint64_t>(b.token_ids[t]));
        if (slots_on_ && b.state_out[t] >= 0) {
          const auto to = static_cast<std::size_t>(b.state_out[t]);
          if (t + 1 < end && (b.uses & MEKIK_USE_STATE_OUT) == 0) fault("a state on the way without STATE_OUT");
          if (written[to]) fault("two states in one slot");
          written[to] = true;
          slots_[to] = state;
        } else if (slots_on_ && t + 1 == end) {
          fault("a state that goes nowhere");
        }
        if (next_row < b.n_rows && b.rows[next_row] == static_cast<std::int32_t>(t))
          head(b, s, position, state, std::span{out.values}.subspan(std::size_t{next_row++} * vocab_, vocab_));
      }
    }
    if (next_row != b.n_rows) fault("rows out of order");
    pending_.push_back(std::move(out));
    *ticket = ticket_;
    return MEKIK_OK;
  }

  void head(const mekik_batch& b, std::uint32_t seq, std::uint32_t position, std::uint64_t state, std::span<float> logits) {
    std::uint64_t h = slots_on_ ? state : 0;
    std::vector<std::int32_t> tokens;
    for (std::uint32_t g = 0; g < windows_.size(); ++g) {
      const auto window = windows_[g];
      const std::uint32_t from = window == 0 || position + 1 <= window ? 0 : static_cast<std::uint32_t>(position + 1 - window);
      if (g == 0) tokens.clear();
      for (auto p = from; p <= position; ++p) {
        const auto* r = row(b, g, seq, p);
        if (r == nullptr || r->position != static_cast<std::int32_t>(p)) {
          fault("position " + std::to_string(p) + " of group " + std::to_string(g) + " is not where its table says");
          continue;
        }
        h = mix(h ^ static_cast<std::uint64_t>(r->token) << 20 ^ static_cast<std::uint64_t>(r->position));
        if (g == 0) tokens.push_back(r->token);
      }
    }
    for (std::uint32_t v = 0; v < vocab_; ++v) logits[v] = static_cast<float>(mix(h ^ v) >> 40) * 0x1p-21f - 4;
    if (hook) hook(tokens, logits);
  }

  mekik_status move(std::span<const mekik_move> moves_asked, std::uint64_t* ticket) {
    if (fail_move != MEKIK_OK) return std::exchange(fail_move, MEKIK_OK);
    for (const auto& m : moves_asked) {
      ++moves;
      if (m.what == MEKIK_WHAT_SLOT) {
        slots_[static_cast<std::size_t>(m.to)] = slots_[static_cast<std::size_t>(m.from)];
        continue;
      }
      const auto n = limits_.block_tokens;
      const bool rows = m.what == MEKIK_WHAT_ROWS;
      if (rows && (m.from_row + m.n_rows > n || m.to_row + m.n_rows > n)) fault("rows past the end of a block");
      const auto at = [&](std::int32_t block, std::uint32_t row) {
        return store_[m.group].begin() + static_cast<std::ptrdiff_t>(block) * n + (rows ? row : 0);
      };
      std::copy_n(at(m.from, m.from_row), rows ? m.n_rows : n, at(m.to, m.to_row));
    }
    *ticket = ++ticket_;
    return MEKIK_OK;
  }

  mekik_status wait(std::uint64_t ticket) {
    if (polled_ < polls) return ++polled_, MEKIK_E_BUSY;
    polled_ = 0;
    for (; !pending_.empty() && pending_.front().ticket <= ticket; pending_.pop_front()) {
      const auto& p = pending_.front();
      if (!p.values.empty()) std::memcpy(p.logits, p.values.data(), p.values.size() * sizeof(float));
    }
    return std::exchange(fail_wait, MEKIK_OK);
  }

  mekik_limits limits_;
  std::vector<std::uint64_t> windows_;
  std::uint32_t vocab_;
  bool slots_on_;
  std::vector<std::vector<Row>> store_;  // per group, block after block
  std::vector<std::uint64_t> slots_;
  std::deque<Pending> pending_;
  std::uint64_t ticket_ = 0;
  std::uint32_t polled_ = 0;
};

}  // namespace mekik::test
