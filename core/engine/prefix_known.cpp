// How much of a prompt that waits is known, for schedulers: they ask at every step, so that it must cost next to nothing.
#include <algorithm>

#include "engine/prefix_index.hpp"

namespace mekik::engine {
namespace {

constexpr std::uint32_t kChildren = 32;  // blocks behind the last whole one that are looked at
constexpr std::uint32_t kBack = 256;     // blocks that are gone back over for one with a state

}  // namespace

// Of the first n blocks of a sequence.
const PrefixIndex::Key& PrefixIndex::chain(Sequence& s, std::size_t n) const {
  auto& keys = s.lookup.keys;
  const std::size_t block = runtime_.limits.block_tokens;
  if (keys.empty()) keys.push_back(root_of(s.request->request));
  while (keys.size() <= n) keys.push_back(key(keys.back(), std::span{s.tokens}.subspan((keys.size() - 1) * block, block)));
  return keys[n];
}

// Whether all is there that a token behind n blocks sees through windows.
bool PrefixIndex::sees(Sequence& s, std::uint32_t n) const {
  const std::uint64_t block = runtime_.limits.block_tokens, length = n * block;
  for (std::size_t g = 0; g < runtime_.groups.size(); ++g) {
    const std::uint64_t window = runtime_.groups[g].window;
    if (window == 0) continue;
    for (std::uint64_t b = first_seen(window, length) / block; b < n; ++b)
      if (const auto at = nodes_.find(chain(s, b + 1)); at == nodes_.end() || !at->second.blocks[g]) return false;
  }
  return true;
}

// Of a sequence whose first n blocks are nodes.
std::uint32_t PrefixIndex::known_tokens(Sequence& s, std::uint32_t n) const {
  const std::uint32_t block = runtime_.limits.block_tokens;
  const std::size_t last = s.tokens.size() - 1;
  if (!runtime_.slots)
    while (n > 0 && !sees(s, n)) --n;
  const auto next = std::span{s.tokens}.subspan(std::size_t{n} * block, std::min<std::size_t>(last - std::size_t{n} * block, block));
  std::uint32_t rows = 0, seen = 0;
  for (auto [at, end] = children_.equal_range(chain(s, n)); at != end && seen < kChildren; ++at, ++seen) {
    const Node& node = nodes_.at(at->second);
    const auto same =
        static_cast<std::uint32_t>(std::mismatch(next.begin(), next.end(), node.tokens.begin(), node.tokens.end()).first - next.begin());
    if (!runtime_.slots) rows = std::max(rows, same);
    for (const State& state : node.states)
      if (state.tokens <= same) rows = std::max(rows, state.tokens);
  }
  if (rows > 0 || !runtime_.slots) return n * block + rows;
  for (std::uint32_t back = 0; n > 0 && back < kBack; --n, ++back)  // a sequence begins at a state only
    if (const auto at = nodes_.find(chain(s, n)); at != nodes_.end() && !at->second.states.empty())
      return (n - 1) * block + at->second.states.back().tokens;
  return 0;
}

std::uint32_t PrefixIndex::known(Sequence& s) const {
  if (!on_ || s.scoring()) return 0;
  Lookup& l = s.lookup;
  if (l.epoch == epoch_) return l.tokens;
  l.epoch = epoch_;
  const std::size_t whole = (s.tokens.size() - 1) / runtime_.limits.block_tokens;
  // Blocks are given up from the end, so that what is before a node is there.
  while (l.blocks > 0 && nodes_.count(chain(s, l.blocks)) == 0) --l.blocks;
  while (l.blocks < whole && nodes_.count(chain(s, l.blocks + 1)) != 0) ++l.blocks;
  l.tokens = known_tokens(s, l.blocks);
  return l.tokens;
}

}  // namespace mekik::engine
