#include "engine/prefix_index.hpp"

#include <openssl/sha.h>

#include <algorithm>
#include <cstring>

namespace mekik::engine {
namespace {

std::array<std::uint8_t, 32> sha256(std::span<const std::uint8_t> bytes) {
  std::array<std::uint8_t, 32> out{};
  SHA256(bytes.data(), bytes.size(), out.data());
  return out;
}

void add_tokens(std::vector<std::uint8_t>& bytes, std::span<const std::int32_t> tokens) {
  for (const auto t : tokens)
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint32_t>(t) >> shift));
}

std::uint32_t same_tokens(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return static_cast<std::uint32_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

const char* miss_name(PrefixIndex::Miss miss) {
  switch (miss) {
    case PrefixIndex::Miss::new_prompt:
      return "new_prompt";
    case PrefixIndex::Miss::diverged:
      return "diverged";
    case PrefixIndex::Miss::evicted:
      return "evicted";
    case PrefixIndex::Miss::state:
      return "state";
    case PrefixIndex::Miss::none:
      break;
  }
  return "none";
}

PrefixIndex::PrefixIndex(const Runtime& runtime) : runtime_{runtime}, on_{static_cast<bool>(runtime.cache) && !runtime.whole} {
  std::vector<std::uint8_t> bytes(runtime.plan.layout_id, runtime.plan.layout_id + 32);
  bytes.insert(bytes.end(), runtime.plan.numeric_id, runtime.plan.numeric_id + 32);
  bytes.insert(bytes.end(), runtime.extra_key.begin(), runtime.extra_key.end());
  root_ = sha256(bytes);
}

PrefixIndex::Key PrefixIndex::key(const Key& parent, std::span<const std::int32_t> tokens) {
  std::vector<std::uint8_t> bytes(parent.begin(), parent.end());
  add_tokens(bytes, tokens);
  return sha256(bytes);
}

// Of the state after `tokens`. No block has it: its length is no multiple of a token's.
PrefixIndex::Key PrefixIndex::state_key(const Key& parent, std::span<const std::int32_t> tokens) {
  std::vector<std::uint8_t> bytes(parent.begin(), parent.end());
  add_tokens(bytes, tokens);
  bytes.push_back('s');
  return sha256(bytes);
}

PrefixIndex::Key PrefixIndex::note_key(const Key& parent) {
  std::vector<std::uint8_t> bytes(parent.begin(), parent.end());
  bytes.push_back('n');
  return sha256(bytes);
}

PrefixIndex::Node* PrefixIndex::node(const Key& key) {
  const auto at = nodes_.find(key);
  return at == nodes_.end() ? nullptr : &at->second;
}

bool PrefixIndex::covers(const Key& parent, std::span<const std::int32_t> rest) const {
  const auto state_after = [&](const Node& node, std::size_t n) {
    return !runtime_.slots || std::any_of(node.states.begin(), node.states.end(), [n](const State& s) { return s.tokens == n; });
  };
  if (rest.empty()) {
    const auto at = nodes_.find(parent);
    return runtime_.slots ? at != nodes_.end() && state_after(at->second, at->second.tokens.size()) : true;
  }
  for (auto [at, end] = children_.equal_range(parent); at != end; ++at)
    if (const Node& node = nodes_.at(at->second); same_tokens(rest, node.tokens) == rest.size() && state_after(node, rest.size()))
      return true;
  return false;
}

PrefixIndex::Node* PrefixIndex::place(const Key& parent, std::span<const std::int32_t> tokens, std::vector<Lease> blocks,
                                      std::uint64_t now_ns) {
  Node* node = add(key(parent, tokens), parent, tokens, now_ns);
  for (std::size_t g = 0; g < node->blocks.size(); ++g)
    if (!node->blocks[g] && blocks[g]) node->blocks[g] = Kept{std::move(blocks[g])};
  return node;
}

bool PrefixIndex::place_state(const Key& root, const Key& parent, std::span<const std::int32_t> tokens, Lease slot, std::uint64_t now_ns) {
  Node* node = node_of(root, parent, tokens, now_ns);
  if (node == nullptr) return false;
  place_state(*node, static_cast<std::uint32_t>((tokens.size() - 1) % runtime_.limits.block_tokens + 1), std::move(slot), now_ns);
  return true;
}

// Whoever has another salt does not see it.
PrefixIndex::Key PrefixIndex::root_of(const Request& request) const {
  if (request.salt == 0) return root_;
  const std::array<std::int32_t, 2> halves{static_cast<std::int32_t>(request.salt), static_cast<std::int32_t>(request.salt >> 32)};
  return key(root_, halves);
}

// Whether a sequence can go on after `length` tokens, which the nodes and then a block that has(group) hold: of windowed groups all that
// the next token sees must still be there.
template <class Has>
bool PrefixIndex::usable(std::span<Node* const> path, std::uint64_t length, Has&& has) const {
  const std::uint64_t block = runtime_.limits.block_tokens;
  for (std::size_t g = 0; g < runtime_.groups.size(); ++g) {
    for (std::uint64_t b = first_seen(runtime_.groups[g].window, length) / block; b * block < length; ++b)
      if (!(b < path.size() ? static_cast<bool>(path[b]->blocks[g]) : has(g))) return false;
  }
  return true;
}

void PrefixIndex::touch(const Key& key, std::uint64_t& last_use_ns, std::uint32_t& uses, std::uint64_t now_ns) const {
  last_use_ns = now_ns;
  ++uses;
  if (runtime_.cache->touched == nullptr) return;
  mekik_key touched{};
  std::memcpy(touched.sha256, key.data(), key.size());
  runtime_.cache->touched(runtime_.cache.get(), &touched, now_ns);
}

// Of the blocks behind `parent` the one that has most of `next` in front; with recurrent states, up to a state.
PrefixIndex::Found PrefixIndex::find(std::span<Node* const> path, const Key& parent, std::span<const std::int32_t> next,
                                     const Sequences& running) {
  const std::uint64_t before = path.size() * std::uint64_t{runtime_.limits.block_tokens};
  Found found;
  for (auto [at, end] = children_.equal_range(parent); at != end; ++at) {
    Node& node = nodes_.at(at->second);
    std::uint32_t same = same_tokens(next, node.tokens);
    found.seen = std::max(found.seen, same);
    std::size_t state = node.states.size();
    if (runtime_.slots) {
      while (state > 0 && node.states[state - 1].tokens > same) --state;
      same = state == 0 ? 0 : node.states[--state].tokens;
    }
    if (same <= found.rows || !usable(path, before + same, [&](std::size_t g) { return static_cast<bool>(node.blocks[g]); })) continue;
    found.rows = same;
    found.node = &node;
    found.state = state;
  }
  for (const auto& s : running) {
    if (s->state != SequenceState::running || s->keyed_blocks != path.size() || s->computed <= before || s->prefix_key != parent) continue;
    std::uint32_t same = same_tokens(next, std::span{s->tokens}.subspan(before, s->computed - before));
    found.seen = std::max(found.seen, same);
    std::size_t state = s->checkpoints.size();
    if (runtime_.slots) {
      while (state > 0 && s->checkpoints[state - 1].tokens > before + same) --state;
      same = state == 0 ? 0 : static_cast<std::uint32_t>(s->checkpoints[--state].tokens - before);
    }
    if (same <= found.rows || !usable(path, before + same, [&](std::size_t g) { return static_cast<bool>(s->blocks[g][path.size()]); }))
      continue;
    found.rows = same;
    found.node = nullptr;
    found.sequence = s.get();
    found.state = state;
  }
  return found;
}

PrefixIndex::Match PrefixIndex::match(Sequence& s, const Sequences& running, std::uint64_t now_ns) {
  if (!on_ || s.scoring()) return {};
  const std::uint32_t block = runtime_.limits.block_tokens;
  const std::size_t last = s.tokens.size() - 1;
  std::vector<Node*> path;
  while (path.size() < last / block) {
    const auto found = nodes_.find(chain(s, path.size() + 1));
    if (found == nodes_.end()) break;
    path.push_back(&found->second);
  }
  chain(s, path.size());
  const auto keys = std::span<const Key>{s.lookup.keys}.first(path.size() + 1);
  const auto find_at = [&](std::size_t n) {
    const auto next = std::span{s.tokens}.subspan(n * block, std::min<std::size_t>(last - n * block, block));
    return find(std::span{path}.first(n), keys[n], next, running);
  };
  const auto none = [](std::size_t) { return false; };
  std::size_t n = path.size();
  if (!runtime_.slots)
    while (n > 0 && !usable(std::span{path}.first(n), n * std::uint64_t{block}, none)) --n;
  Found found = find_at(n);
  Match out;
  out.seen = static_cast<std::uint32_t>(n * block) + found.seen;
  if (runtime_.slots)
    while (found.rows == 0 && n > 0) found = find_at(--n);
  out.miss = why(s, keys, static_cast<std::uint32_t>(n * block) + found.rows, out.seen);
  if (runtime_.slots && found.rows > 0) {
    out.state =
        found.node != nullptr ? found.node->states[found.state].slot.share() : found.sequence->checkpoints[found.state].slot.share();
    if (found.node != nullptr) {
      State& state = found.node->states[found.state];
      touch(state_key(keys[n], std::span{s.tokens}.subspan(n * block, found.rows)), state.last_use_ns, state.uses, now_ns);
    }
  }
  if (found.rows == block && found.node != nullptr) {  // all of it, up to a state: shared like those before
    found = {};
    ++n;
  }
  s.blocks.resize(runtime_.groups.size());
  const std::uint64_t length = n * std::uint64_t{block} + found.rows;
  for (std::size_t b = 0; b < n; ++b) {
    // Blocks behind a window are left to who needs the room.
    for (std::size_t g = 0; g < runtime_.groups.size(); ++g)
      s.blocks[g].push_back(b < first_seen(runtime_.groups[g].window, length) / block ? Lease{} : path[b]->blocks[g].share());
    touch(keys[b + 1], path[b]->last_use_ns, path[b]->uses, now_ns);
  }
  s.computed = static_cast<std::uint32_t>(n) * block;
  s.keyed_blocks = static_cast<std::uint32_t>(n);
  s.prefix_key = keys[n];
  if (found.node != nullptr && take_over(s, keys[n], *found.node, found.rows)) return out;
  out.rows = found.rows;
  for (std::size_t g = 0; found.rows > 0 && g < runtime_.groups.size(); ++g)
    out.blocks.push_back(found.node != nullptr ? found.node->blocks[g].share() : found.sequence->blocks[g][n].share());
  if (found.node != nullptr) found.node->last_use_ns = now_ns;
  return out;
}

// The block in which a preempted sequence had stopped is its own again, if nobody else has come to need it: a copy would take one more than
// the sequence had, and there may be none.
bool PrefixIndex::take_over(Sequence& s, const Key& parent, Node& node, std::uint32_t rows) {
  if (s.stopped_at == 0 || s.computed + rows != s.stopped_at || rows != node.tokens.size() || node.children > 0 || node.states.size() > 1)
    return false;
  for (const Kept& block : node.blocks)
    if (!block.alone()) return false;
  for (std::size_t g = 0; g < node.blocks.size(); ++g) s.blocks[g].push_back(node.blocks[g].release());
  s.computed += rows;
  erase(nodes_.find(key(parent, node.tokens)));
  return true;
}

// `keys`: of the blocks that are known, in front the root's.
PrefixIndex::Miss PrefixIndex::why(const Sequence& s, std::span<const Key> keys, std::uint32_t known, std::uint32_t seen) const {
  const std::uint32_t block = runtime_.limits.block_tokens;
  const std::size_t last = s.tokens.size() - 1, path = keys.size() - 1;
  if (known == last) return Miss::none;
  if (path < last / block) {
    const Key next = key(keys.back(), std::span{s.tokens}.subspan(path * block, block));
    std::uint64_t head = 0;
    std::memcpy(&head, next.data(), sizeof head);
    if (evicted_.count(head) != 0) return Miss::evicted;
  }
  if (seen > known) return runtime_.slots ? Miss::state : Miss::evicted;  // a block of a window
  return known == 0 ? Miss::new_prompt : Miss::diverged;
}

// The node at the end of `all` tokens, of which those of whole blocks are before it and end in `parent`. nullptr: what is before it has
// been dropped, so that it could not be found.
PrefixIndex::Node* PrefixIndex::node_of(const Key& root, const Key& parent, std::span<const std::int32_t> all, std::uint64_t now_ns) {
  const std::size_t block = runtime_.limits.block_tokens, before = (all.size() - 1) / block;
  Key up = parent;
  if (runtime_.groups.empty()) {  // nodes without blocks cost little, and are made when they lead somewhere
    up = root;
    for (std::size_t b = 0; b < before; ++b) {
      const Key next = key(up, all.subspan(b * block, block));
      add(next, up, all.subspan(b * block, block), now_ns);
      up = next;
    }
  } else if (before > 0 && nodes_.count(up) == 0) {
    return nullptr;
  }
  const auto tokens = all.subspan(before * block);
  for (auto [at, end] = children_.equal_range(up); at != end; ++at) {
    Node& other = nodes_.at(at->second);
    if (same_tokens(tokens, other.tokens) == tokens.size()) return &other;
  }
  return add(key(up, tokens), up, tokens, now_ns);
}

PrefixIndex::Node* PrefixIndex::node_of(const Sequence& s, std::uint32_t n, std::uint64_t now_ns) {
  return node_of(root_of(s.request->request), s.prefix_key, std::span{s.tokens}.first(n), now_ns);
}

void PrefixIndex::insert(Sequence& s, std::uint64_t now_ns) {
  if (!on_) return;
  const std::uint32_t block = runtime_.limits.block_tokens;
  if (s.keyed_blocks == 0) s.prefix_key = root_of(s.request->request);
  while ((s.keyed_blocks + 1) * block <= s.computed) {
    const std::uint32_t begin = s.keyed_blocks * block;
    const bool leads = !s.checkpoints.empty() && s.checkpoints.front().tokens <= begin + block;
    keep(s, leads || !runtime_.groups.empty() ? node_of(s, begin + block, now_ns) : nullptr, now_ns);
    s.prefix_key = key(s.prefix_key, std::span{s.tokens}.subspan(begin, block));
    ++s.keyed_blocks;
  }
  // Without blocks nothing is written any more where a node is, so that it need not wait until it is full.
  if (runtime_.groups.empty() && !s.checkpoints.empty() && s.checkpoints.back().tokens <= s.computed)
    keep(s, node_of(s, s.checkpoints.back().tokens, now_ns), now_ns);
}

void PrefixIndex::insert_tail(Sequence& s, std::uint64_t now_ns) {
  const bool stateful = runtime_.slots && s.computed % runtime_.plan.slot_every == 0;
  if (!on_ || s.computed == 0 || (!stateful && s.checkpoints.empty() && runtime_.groups.empty())) return;
  if (s.computed == s.keyed_blocks * runtime_.limits.block_tokens) {
    const auto at = nodes_.find(s.prefix_key);
    Node* node = at != nodes_.end() ? &at->second : runtime_.groups.empty() ? node_of(s, s.computed, now_ns) : nullptr;
    if (stateful && node != nullptr) place_state(*node, runtime_.limits.block_tokens, s.slot.share(), now_ns);
    return;
  }
  Node* node = node_of(s, s.computed, now_ns);
  keep(s, node, now_ns);
  if (stateful && node != nullptr) place_state(*node, s.computed - s.keyed_blocks * runtime_.limits.block_tokens, s.slot.share(), now_ns);
}

// Gives the node, which is that behind the sequence's last one, what it lacks of the sequence's block, and the checkpoints in there. They
// go where there is no node.
void PrefixIndex::keep(Sequence& s, Node* node, std::uint64_t now_ns) {
  const std::uint32_t block = runtime_.limits.block_tokens, begin = s.keyed_blocks * block;
  // Also a block of a windowed group that the node had lost and that was computed again; not where the node has more tokens than it.
  const bool whole = node != nullptr && s.computed - begin >= node->tokens.size();
  for (std::size_t g = 0; whole && g < node->blocks.size(); ++g)
    if (const Lease& own = s.blocks[g][s.keyed_blocks]; !node->blocks[g] && own) node->blocks[g] = Kept{own.share()};
  std::size_t n = 0;
  for (; n < s.checkpoints.size() && s.checkpoints[n].tokens <= std::min(begin + block, s.computed); ++n)
    if (node != nullptr) place_state(*node, s.checkpoints[n].tokens - begin, std::move(s.checkpoints[n].slot), now_ns);
  s.checkpoints.erase(s.checkpoints.begin(), s.checkpoints.begin() + static_cast<std::ptrdiff_t>(n));
}

void PrefixIndex::place_state(Node& node, std::uint32_t tokens, Lease slot, std::uint64_t now_ns) {
  const auto at = std::find_if(node.states.begin(), node.states.end(), [&](const State& s) { return s.tokens >= tokens; });
  if (at != node.states.end() && at->tokens == tokens) {
    at->last_use_ns = std::max(at->last_use_ns, now_ns);  // it has the same bits
    return;
  }
  node.states.insert(at, State{tokens, Kept{std::move(slot)}, now_ns, 0});
  ++epoch_;
}

// The node of a block, new or known. `parent` is a node, or the root of the sequence.
PrefixIndex::Node* PrefixIndex::add(const Key& key, const Key& parent, std::span<const std::int32_t> tokens, std::uint64_t now_ns) {
  auto [at, fresh] = nodes_.try_emplace(key);
  Node& node = at->second;
  if (!fresh) return &node;
  ++epoch_;
  node.parent = parent;
  node.tokens.assign(tokens.begin(), tokens.end());
  node.last_use_ns = now_ns;
  node.blocks.resize(runtime_.groups.size());
  if (const auto up = nodes_.find(parent); up != nodes_.end()) ++up->second.children;
  children_.emplace(parent, key);
  // What ended inside of this block before is in it.
  for (auto [child, end] = children_.equal_range(parent); child != end;) {
    const auto other = nodes_.find((child++)->second);
    const std::vector<std::int32_t>& less = other->second.tokens;
    if (less.size() >= tokens.size() || !std::equal(less.begin(), less.end(), tokens.begin())) continue;
    for (State& state : other->second.states) {
      const auto place = std::find_if(node.states.begin(), node.states.end(), [&](const State& s) { return s.tokens > state.tokens; });
      node.states.insert(place, std::move(state));
    }
    erase(other);
  }
  return &node;
}

void PrefixIndex::clear() {
  nodes_.clear();
  children_.clear();
  ++epoch_;
}

Status PrefixIndex::check() const {
  if (children_.size() != nodes_.size()) return internal_error("the prefix index has nodes that no parent knows");
  for (const auto& [key, node] : nodes_) {
    if (const auto has = children_.count(key); node.children != has)
      return internal_error("a node of the prefix index counts " + std::to_string(node.children) + " children and has " +
                            std::to_string(has));
    for (std::size_t i = 0; i < node.states.size(); ++i) {
      const std::uint32_t tokens = node.states[i].tokens;
      if (tokens == 0 || tokens > node.tokens.size() || (i > 0 && tokens <= node.states[i - 1].tokens))
        return internal_error("the states of a node of the prefix index are out of order");
    }
    if (runtime_.groups.empty() && node.children == 0 && node.states.empty())
      return internal_error("a node of the prefix index leads to no state");
  }
  return {};
}

void PrefixIndex::count(std::vector<std::vector<std::uint32_t>>& counts, std::vector<std::uint32_t>& slots) const {
  for (const auto& [key, node] : nodes_) {
    for (std::size_t g = 0; g < node.blocks.size(); ++g)
      if (node.blocks[g]) ++counts[g][static_cast<std::size_t>(node.blocks[g].id())];
    for (const State& state : node.states) ++slots[static_cast<std::size_t>(state.slot.id())];
  }
}

}  // namespace mekik::engine
