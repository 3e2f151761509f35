#include "engine/draft_model.hpp"

#include <algorithm>

#include "plugin/registry.hpp"

namespace mekik::engine {
namespace {

constexpr std::uint64_t kPollNs = 1'000'000'000;
constexpr std::uint32_t kCatchUpShare = 4;  // this part of a step's tokens is the most that is computed of a prompt at a time

}  // namespace

DraftModel::DraftModel(const Runtime& runtime) : runtime_{runtime} {
  for (std::size_t g = 0; g < runtime_.groups.size(); ++g) pools_.emplace_back(runtime_.limits.n_blocks[g]);
}

bool DraftModel::follow(std::uint64_t seq, std::span<const std::int32_t> tokens) {
  auto& found = sequences_[seq];
  if (found == nullptr) {
    found = std::make_unique<Text>();
    found->request = &request_;
  }
  Text& s = *found;
  s.asked = ++asks_;
  // Of the proposals of last time those that came true stay.
  std::size_t same = std::min(s.sure, tokens.size());
  while (same < s.tokens.size() && same < tokens.size() && s.tokens[same] == tokens[same]) ++same;
  s.tokens.resize(std::min(same, s.tokens.size()));
  const auto fresh = tokens.subspan(s.tokens.size());
  s.foreign = s.foreign || std::any_of(fresh.begin(), fresh.end(),
                                       [&](std::int32_t t) { return t < 0 || static_cast<std::uint32_t>(t) >= runtime_.vocab; });
  s.tokens.insert(s.tokens.end(), tokens.begin() + static_cast<std::ptrdiff_t>(s.tokens.size()), tokens.end());
  s.sure = tokens.size();
  s.computed = std::min(s.computed, static_cast<std::uint32_t>(std::min(same, tokens.size() - 1)));
  for (auto& table : s.blocks)
    while (table.size() > (s.computed + runtime_.limits.block_tokens - 1) / runtime_.limits.block_tokens) table.pop_back();
  if (s.foreign || s.tokens.size() + 1 > runtime_.context) return false;
  if (s.left() <= std::max(1u, runtime_.limits.max_tokens / kCatchUpShare)) return true;
  behind_.push_back(seq);
  return false;
}

void DraftModel::append(std::uint64_t seq, std::int32_t token) { sequences_.at(seq)->tokens.push_back(token); }

std::span<const float> DraftModel::row(std::uint64_t seq) const {
  const Text& s = *sequences_.at(seq);
  return s.rows == 0 ? std::span<const float>{} : std::span{rows_}.subspan(std::size_t{s.row} * runtime_.row_size, runtime_.row_size);
}

// Whoever was asked for before all others gives up its blocks, if it is not the one that needs them, nor one of this round.
bool DraftModel::make_room(const Text& needs) {
  Text* last = nullptr;
  for (auto& [id, s] : sequences_)
    if (s.get() != &needs && !s->blocks.empty() && s->rows == 0 && (last == nullptr || s->asked < last->asked)) last = s.get();
  if (last == nullptr || last->asked >= needs.asked) return false;
  last->drop_state();
  return true;
}

std::uint32_t DraftModel::take_blocks(Text& s, std::uint32_t tokens) {
  const std::uint32_t block = runtime_.limits.block_tokens;
  const auto blocks_for = [&](std::uint32_t n) { return (n + block - 1) / block; };
  s.blocks.resize(pools_.size());
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    while (s.blocks[g].size() + pools_[g].free() < blocks_for(s.computed + tokens) && make_room(s)) {}
    const auto room = (s.blocks[g].size() + pools_[g].free()) * std::uint64_t{block} - s.computed;
    tokens = static_cast<std::uint32_t>(std::min<std::uint64_t>(tokens, room));
  }
  for (std::size_t g = 0; g < pools_.size(); ++g)
    while (s.blocks[g].size() < blocks_for(s.computed + tokens)) s.blocks[g].push_back(pools_[g].take());
  return tokens;
}

// Blocks behind a window, as far as no proposal can be taken back to them.
void DraftModel::let_go(Text& s) {
  const std::size_t sure = std::min<std::size_t>(s.sure, s.computed);
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    const auto window = runtime_.groups[g].window;
    if (window == 0 || sure <= window) continue;
    const auto behind = (sure - window) / runtime_.limits.block_tokens;
    for (std::size_t b = 0; b < std::min<std::size_t>(behind, s.blocks[g].size()); ++b) s.blocks[g][b].reset();
  }
}

Status DraftModel::run(const std::vector<std::uint64_t>& sequences) {
  std::vector<Part> parts;
  std::uint32_t left = runtime_.limits.max_tokens, rows = 0;
  for (auto& [id, s] : sequences_) s->rows = 0;
  const auto add = [&](std::uint64_t seq, std::uint32_t most, bool wants_row) {
    const auto found = sequences_.find(seq);
    if (found == sequences_.end()) return;
    Text& s = *found->second;
    if (parts.size() == runtime_.limits.max_seqs || (wants_row && rows == runtime_.limits.max_rows)) return;
    const std::uint32_t want = std::min({s.left(), left, most}), got = want == 0 ? 0 : take_blocks(s, want);
    if (got == 0) return;
    const bool row = wants_row && got == s.left();
    s.row = rows;
    s.rows = row ? 1 : 0;
    parts.push_back({&s, got, rows, s.rows, {}, {}});
    rows += s.rows;
    left -= got;
  };
  for (const std::uint64_t seq : sequences) add(seq, UINT32_MAX, true);
  const std::uint32_t share = std::max(1u, runtime_.limits.max_tokens / kCatchUpShare);
  if (!behind_.empty()) add(behind_.front(), share, false);
  behind_.clear();
  if (parts.empty()) return {};
  rows_.resize(std::max<std::size_t>(rows_.size(), std::size_t{rows} * runtime_.row_size));
  batch_.fill(parts, runtime_, rows_.data());
  std::uint64_t ticket = 0;
  Status status = plugin::to_status(runtime_.backend->submit(runtime_.exec, batch_.get(), &ticket), "draft model");
  if (status.ok()) {
    for (const Part& part : parts)
      for (std::size_t g = 0; g < pools_.size(); ++g)
        for (const Lease& block : part.sequence->blocks[g])
          if (block) pools_[g].named(block.id(), ticket);
    mekik_status code;
    while ((code = runtime_.backend->wait(runtime_.exec, ticket, kPollNs)) == MEKIK_E_BUSY) plugin::take_failure();
    for (Pool& pool : pools_) pool.completed(ticket);
    status = plugin::to_status(code, "draft model");
  }
  for (const Part& part : parts) {
    Text& s = static_cast<Text&>(*part.sequence);
    if (status.ok()) {
      s.computed += part.tokens;
      let_go(s);
    } else {
      s.drop_state();
      s.rows = 0;
    }
  }
  return status;
}

Status DraftModel::check_invariants() const {
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    std::uint32_t held = 0;
    for (const auto& [id, s] : sequences_)
      for (std::size_t b = 0; !s->blocks.empty() && b < s->blocks[g].size(); ++b) held += s->blocks[g][b] ? 1u : 0u;
    if (held != pools_[g].held()) return internal_error("the draft model holds blocks that no sequence has");
  }
  for (const auto& [id, s] : sequences_)
    if (s->computed > s->tokens.size()) return internal_error("the draft model has computed more than there is");
  return {};
}

}  // namespace mekik::engine
