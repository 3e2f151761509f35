// What the prefix index gives up, as the cache plugin chooses.
#include <algorithm>
#include <cstring>

#include "engine/prefix_index.hpp"

namespace mekik::engine {
namespace {

constexpr std::size_t kRemembered = 65536;  // keys of what was given up, to tell why a prompt was not known
constexpr std::uint64_t kShare = 128;       // this part of a pool is freed at once: choosing takes a look at all nodes

constexpr std::size_t kFew = 256;                   // nodes that are looked at whenever a sequence ends, and
constexpr std::uint64_t kSettleNs = 1'000'000'000;  // more so often, by a cache that wanted all of them last time

}  // namespace

mekik_node PrefixIndex::view(const Key& key, const Node& node, std::uint64_t bytes) const {
  mekik_node n{};
  std::memcpy(n.key.sha256, key.data(), key.size());
  std::memcpy(n.parent.sha256, node.parent.data(), node.parent.size());
  n.bytes = bytes;
  n.last_use_ns = node.last_use_ns;
  n.tokens = static_cast<std::uint32_t>(node.tokens.size());
  n.children = node.children;
  n.uses = node.uses;
  n.what = MEKIK_WHAT_BLOCK;
  n.recompute_ns = token_ns_ * n.tokens;
  return n;
}

// The plugin's choice, as valid indices.
std::vector<std::uint32_t> PrefixIndex::ask(const std::vector<mekik_node>& nodes, std::uint64_t bytes) const {
  if (nodes.empty()) return {};
  std::vector<std::uint32_t> chosen(nodes.size());
  const auto size = static_cast<std::uint32_t>(nodes.size());
  const auto n = runtime_.cache->victims(runtime_.cache.get(), nodes.data(), size, sizeof(mekik_node), bytes, chosen.data());
  chosen.resize(std::min(size, n));
  std::erase_if(chosen, [&](std::uint32_t i) { return i >= size; });  // the plugin's mistake frees nothing
  return chosen;
}

// Asks the cache for victims among the nodes without children until `bytes` are free (0: those that it does not want at all). With
// `pools` only among those that nobody else holds: giving up others would free nothing.
std::uint32_t PrefixIndex::drop(std::uint64_t bytes, const std::vector<Pool>* pools) {
  std::vector<mekik_node> nodes;
  std::vector<Key> keys;
  for (const auto& [key, node] : nodes_) {
    if (node.children > 0) continue;
    std::uint64_t size = node.states.size() * runtime_.plan.slot_bytes;
    bool others = pools != nullptr;
    for (std::size_t g = 0; g < node.blocks.size(); ++g) {
      if (!node.blocks[g]) continue;
      size += runtime_.plan.block_bytes[g];
      if (pools != nullptr && (*pools)[g].only_kept(node.blocks[g].id())) others = false;
    }
    if (others) continue;
    nodes.push_back(view(key, node, size));
    keys.push_back(key);
  }
  std::uint32_t dropped = 0;
  for (const std::uint32_t i : ask(nodes, bytes)) {
    const auto at = nodes_.find(keys[i]);
    if (at == nodes_.end() || at->second.children > 0) continue;
    if (leaving_) leaving_(keys[i], at->second);
    remember(keys[i]);
    const auto up = nodes_.find(at->second.parent);
    erase(at);
    if (up != nodes_.end()) prune(up);
    ++dropped;
  }
  return dropped;
}

// The same among states; with `slots` only those that no sequence goes on from just now.
std::uint32_t PrefixIndex::drop_states(std::uint64_t bytes, const Pool* slots) {
  std::vector<mekik_node> states;
  std::vector<std::pair<Key, std::uint32_t>> places;  // node and tokens in it
  for (const auto& [key, node] : nodes_) {
    for (std::size_t i = 0; i < node.states.size(); ++i) {
      const State& state = node.states[i];
      if (slots != nullptr && !slots->only_kept(state.slot.id())) continue;
      mekik_node n = view(state_key(node.parent, std::span{node.tokens}.first(state.tokens)), node, runtime_.plan.slot_bytes);
      n.what = MEKIK_WHAT_SLOT;
      n.last_use_ns = state.last_use_ns;
      n.uses = state.uses;
      n.tokens = state.tokens - (i == 0 ? 0 : node.states[i - 1].tokens);
      n.recompute_ns = token_ns_ * n.tokens;
      states.push_back(n);
      places.emplace_back(key, state.tokens);
    }
  }
  std::uint32_t dropped = 0;
  for (const std::uint32_t i : ask(states, bytes)) {
    const auto at = nodes_.find(places[i].first);
    if (at == nodes_.end()) continue;
    ++epoch_;
    if (leaving_) leaving_(at->first, at->second);
    dropped += static_cast<std::uint32_t>(std::erase_if(at->second.states, [&](const State& s) { return s.tokens == places[i].second; }));
    prune(at);
  }
  return dropped;
}

void PrefixIndex::erase(Nodes::iterator at) {
  ++epoch_;
  if (const auto up = nodes_.find(at->second.parent); up != nodes_.end()) --up->second.children;
  for (auto [child, end] = children_.equal_range(at->second.parent); child != end; ++child)
    if (child->second == at->first) {
      children_.erase(child);
      break;
    }
  nodes_.erase(at);
}

// Nodes without blocks are there for the states that they lead to.
void PrefixIndex::prune(Nodes::iterator at) {
  while (runtime_.groups.empty() && at != nodes_.end() && at->second.children == 0 && at->second.states.empty()) {
    const auto up = nodes_.find(at->second.parent);
    erase(at);
    at = up;
  }
}

void PrefixIndex::remember(const Key& key) {
  std::uint64_t head = 0;
  std::memcpy(&head, key.data(), sizeof head);
  if (!evicted_.insert(head).second) return;
  evicted_order_.push_back(head);
  if (evicted_order_.size() <= kRemembered) return;
  evicted_.erase(evicted_order_.front());
  evicted_order_.pop_front();
}

void PrefixIndex::settle(std::uint64_t now_ns) {
  if (!on_ || (nodes_.size() > kFew && !picky_ && now_ns - settled_ns_ < kSettleNs)) return;
  picky_ = false;
  settled_ns_ = now_ns;
  while (!nodes_.empty() && drop(0, nullptr) + drop_states(0, nullptr) > 0) picky_ = true;
}

// Of a windowed group a node can do without its block: only who goes on right behind it needs that.
bool PrefixIndex::drop_windowed(std::uint32_t group, const Pool& pool) {
  Node* oldest = nullptr;
  for (auto& [key, node] : nodes_) {
    const Kept& block = node.blocks[group];
    if (!block || node.children == 0 || !pool.only_kept(block.id())) continue;
    if (oldest == nullptr || node.last_use_ns < oldest->last_use_ns) oldest = &node;
  }
  if (oldest == nullptr) return false;
  oldest->blocks[group].reset();
  ++epoch_;
  return true;
}

bool PrefixIndex::evict(std::uint32_t group, const std::vector<Pool>& pools) {
  if (!on_ || pools[group].only_kept() == 0) return false;
  const auto before = pools[group].held();
  const std::uint64_t bytes =
      std::max<std::uint64_t>(runtime_.plan.block_bytes[group], 1) * std::max<std::uint64_t>(1, pools[group].size() / kShare);
  while (!nodes_.empty()) {
    if (drop(bytes, &pools) == 0) return runtime_.groups[group].window > 0 && drop_windowed(group, pools[group]);
    if (pools[group].held() < before) return true;
  }
  return false;
}

bool PrefixIndex::evict_state(const Pool& slots) {
  if (!on_ || slots.only_kept() == 0) return false;
  const auto before = slots.held();
  drop_states(std::max<std::uint64_t>(runtime_.plan.slot_bytes, 1), &slots);
  return slots.held() < before;
}

void PrefixIndex::forget_state(std::int32_t slot) {
  for (auto at = nodes_.begin(); at != nodes_.end(); ++at) {
    if (std::erase_if(at->second.states, [&](const State& s) { return s.slot.id() == slot; }) == 0) continue;
    ++epoch_;
    return prune(at);
  }
}

}  // namespace mekik::engine
