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

}  // namespace

PrefixIndex::PrefixIndex(const Runtime& runtime) : runtime_{runtime}, on_{static_cast<bool>(runtime.cache) && !runtime.slots} {
  std::vector<std::uint8_t> bytes(runtime.plan.layout_id, runtime.plan.layout_id + 32);
  bytes.insert(bytes.end(), runtime.plan.numeric_id, runtime.plan.numeric_id + 32);
  bytes.insert(bytes.end(), runtime.extra_key.begin(), runtime.extra_key.end());
  root_ = sha256(bytes);
}

PrefixIndex::Key PrefixIndex::key(const Key& parent, std::span<const std::int32_t> tokens) const {
  std::vector<std::uint8_t> bytes(parent.begin(), parent.end());
  for (const auto t : tokens)
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint32_t>(t) >> shift));
  return sha256(bytes);
}

// A tenant sees only what the tenant itself has put in.
PrefixIndex::Key PrefixIndex::root_of(const Sequence& s) const {
  const auto tenant = s.request->request.tenant;
  if (tenant == 0) return root_;
  const std::array<std::int32_t, 2> halves{static_cast<std::int32_t>(tenant), static_cast<std::int32_t>(tenant >> 32)};
  return key(root_, halves);
}

// Whether a sequence can go on after the first n nodes: of windowed groups all that the next token sees must still be there.
bool PrefixIndex::usable(const std::vector<Node*>& path, std::size_t n) const {
  const std::uint64_t block = runtime_.limits.block_tokens, length = n * block;
  for (std::size_t g = 0; g < runtime_.groups.size(); ++g) {
    const std::uint64_t window = runtime_.groups[g].window;
    const std::uint64_t from = window == 0 || length + 1 <= window ? 0 : length + 1 - window;
    for (std::size_t b = from / block; b < n; ++b)
      if (!path[b]->blocks[g]) return false;
  }
  return true;
}

std::uint32_t PrefixIndex::match(Sequence& s, std::uint64_t now_ns) {
  if (!on_ || s.scoring()) return 0;
  const std::uint32_t block = runtime_.limits.block_tokens;
  const std::size_t most = (s.tokens.size() - 1) / block;
  Key parent = root_of(s);
  std::vector<Node*> path;
  std::vector<Key> keys;
  while (path.size() < most) {
    parent = key(parent, std::span{s.tokens}.subspan(path.size() * block, block));
    const auto found = nodes_.find(parent);
    if (found == nodes_.end()) break;
    path.push_back(&found->second);
    keys.push_back(parent);
  }
  std::size_t n = path.size();
  while (n > 0 && !usable(path, n)) --n;
  s.blocks.resize(runtime_.groups.size());
  for (std::size_t b = 0; b < n; ++b) {
    for (std::size_t g = 0; g < runtime_.groups.size(); ++g) s.blocks[g].push_back(path[b]->blocks[g].share());
    path[b]->last_use_ns = now_ns;
    ++path[b]->uses;
    mekik_key touched{};
    std::memcpy(touched.sha256, keys[b].data(), keys[b].size());
    if (runtime_.cache->touched != nullptr) runtime_.cache->touched(runtime_.cache.get(), &touched, now_ns);
  }
  s.computed = static_cast<std::uint32_t>(n) * block;
  s.keyed_blocks = static_cast<std::uint32_t>(n);
  s.prefix_key = n > 0 ? keys[n - 1] : root_of(s);
  return s.computed;
}

void PrefixIndex::insert(Sequence& s, std::uint64_t now_ns) {
  if (!on_) return;
  const std::uint32_t block = runtime_.limits.block_tokens;
  if (s.keyed_blocks == 0) s.prefix_key = root_of(s);
  for (; (s.keyed_blocks + 1) * block <= s.computed; ++s.keyed_blocks) {
    const Key parent = s.prefix_key;
    s.prefix_key = key(parent, std::span{s.tokens}.subspan(std::size_t{s.keyed_blocks} * block, block));
    // Behind a block that has been dropped nothing can be found; and children must be counted by the parent that they have.
    const auto up = nodes_.find(parent);
    if (s.keyed_blocks > 0 && up == nodes_.end()) continue;
    auto [at, fresh] = nodes_.try_emplace(s.prefix_key);
    auto& node = at->second;
    if (fresh) {
      node.parent = parent;
      node.tokens = block;
      node.last_use_ns = now_ns;
      node.blocks.resize(runtime_.groups.size());
      if (up != nodes_.end()) ++up->second.children;
    }
    // A node that lost the block of a windowed group gets it back from whoever computed it again.
    for (std::size_t g = 0; g < node.blocks.size(); ++g)
      if (!node.blocks[g] && s.blocks[g][s.keyed_blocks]) node.blocks[g] = s.blocks[g][s.keyed_blocks].share();
  }
}

// Asks the cache for victims among the nodes without children until `bytes` are free (0: those that it does not want at all).
std::uint32_t PrefixIndex::drop(std::uint64_t bytes) {
  std::vector<mekik_node> view;
  std::vector<Key> keys;
  for (const auto& [key, node] : nodes_) {
    if (node.children > 0) continue;
    mekik_node n{};
    std::memcpy(n.key.sha256, key.data(), key.size());
    std::memcpy(n.parent.sha256, node.parent.data(), node.parent.size());
    for (std::size_t g = 0; g < node.blocks.size(); ++g) n.bytes += node.blocks[g] ? runtime_.plan.block_bytes[g] : 0;
    n.last_use_ns = node.last_use_ns;
    n.tokens = node.tokens;
    n.children = node.children;
    n.uses = node.uses;
    n.what = MEKIK_WHAT_BLOCK;
    view.push_back(n);
    keys.push_back(key);
  }
  if (view.empty()) return 0;
  std::vector<std::uint32_t> chosen(view.size());
  const auto n = std::min<std::uint32_t>(static_cast<std::uint32_t>(chosen.size()),
                                         runtime_.cache->victims(runtime_.cache.get(), view.data(), static_cast<std::uint32_t>(view.size()),
                                                                 sizeof(mekik_node), bytes, chosen.data()));
  std::uint32_t dropped = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (chosen[i] >= keys.size()) continue;  // the plugin's mistake frees nothing
    const auto at = nodes_.find(keys[chosen[i]]);
    if (at == nodes_.end() || at->second.children > 0) continue;
    if (const auto up = nodes_.find(at->second.parent); up != nodes_.end()) --up->second.children;
    nodes_.erase(at);
    ++dropped;
  }
  return dropped;
}

void PrefixIndex::settle() {
  while (on_ && !nodes_.empty() && drop(0) > 0) {}
}

bool PrefixIndex::evict(std::uint32_t group, const std::vector<Pool>& pools) {
  if (!on_) return false;
  const auto before = pools[group].held();
  while (!nodes_.empty()) {
    if (drop(std::max<std::uint64_t>(runtime_.plan.block_bytes[group], 1)) == 0) return false;
    if (pools[group].held() < before) return true;
  }
  return false;
}

std::uint32_t PrefixIndex::held(std::uint32_t group) const {
  return static_cast<std::uint32_t>(
      std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& entry) { return static_cast<bool>(entry.second.blocks[group]); }));
}

std::uint32_t PrefixIndex::evictable(std::uint32_t group, const Pool& pool) const {
  return static_cast<std::uint32_t>(std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    const auto& block = entry.second.blocks[group];
    return block && pool.references(block.id()) == 1;
  }));
}

Status PrefixIndex::check() const {
  std::map<Key, std::uint32_t> children;
  for (const auto& entry : nodes_) ++children[entry.second.parent];
  for (const auto& [key, node] : nodes_)
    if (const auto at = children.find(key); node.children != (at == children.end() ? 0 : at->second))
      return internal_error("a node of the prefix index counts " + std::to_string(node.children) + " children and has others");
  return {};
}

void PrefixIndex::count(std::vector<std::vector<std::uint32_t>>& counts) const {
  for (const auto& [key, node] : nodes_)
    for (std::size_t g = 0; g < node.blocks.size(); ++g)
      if (node.blocks[g]) ++counts[g][static_cast<std::size_t>(node.blocks[g].id())];
}

}  // namespace mekik::engine
