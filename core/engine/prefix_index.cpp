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

PrefixIndex::PrefixIndex(const Runtime& runtime)
    : runtime_{runtime}, on_{static_cast<bool>(runtime.cache) && !runtime.slots && !runtime.whole} {
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

// Whether a sequence can go on after `length` tokens, which the nodes and then `last` hold: of windowed groups all that the next token
// sees must still be there.
bool PrefixIndex::usable(const std::vector<Node*>& path, const std::vector<Lease>* last, std::uint64_t length) const {
  const std::uint64_t block = runtime_.limits.block_tokens;
  for (std::size_t g = 0; g < runtime_.groups.size(); ++g) {
    const std::uint64_t window = runtime_.groups[g].window;
    const std::uint64_t from = window == 0 || length + 1 <= window ? 0 : length + 1 - window;
    for (std::uint64_t b = from / block; b * block < length; ++b)
      if (!(b < path.size() ? path[b]->blocks : *last)[g]) return false;
  }
  return true;
}

void PrefixIndex::touch(const Key& key, Node& node, std::uint64_t now_ns) const {
  node.last_use_ns = now_ns;
  ++node.uses;
  if (runtime_.cache->touched == nullptr) return;
  mekik_key touched{};
  std::memcpy(touched.sha256, key.data(), key.size());
  runtime_.cache->touched(runtime_.cache.get(), &touched, now_ns);
}

// Of the blocks behind `parent` the one that has most of `next` in front.
PrefixIndex::Partial PrefixIndex::partial(const std::vector<Node*>& path, const Key& parent, std::span<const std::int32_t> next,
                                          const Sequences& running, std::uint64_t now_ns) {
  const std::uint32_t block = runtime_.limits.block_tokens;
  const std::uint64_t before = path.size() * std::uint64_t{block};
  std::uint32_t rows = 0;
  const std::vector<Lease>* best = nullptr;
  std::vector<Lease> filling;
  const auto consider = [&](std::span<const std::int32_t> tokens, const std::vector<Lease>& blocks) {
    const auto same =
        static_cast<std::uint32_t>(std::mismatch(next.begin(), next.end(), tokens.begin(), tokens.end()).first - next.begin());
    if (same <= rows || !usable(path, &blocks, before + same)) return false;
    rows = same;
    return true;
  };
  Node* found = nullptr;
  for (auto [at, end] = children_.equal_range(parent); at != end; ++at) {
    Node& node = nodes_.at(at->second);
    if (consider(node.tokens, node.blocks)) best = &(found = &node)->blocks;
  }
  for (const auto& s : running) {
    if (s->state != SequenceState::running || s->keyed_blocks != path.size() || s->computed <= before || s->prefix_key != parent) continue;
    std::vector<Lease> last;
    for (const auto& table : s->blocks) last.push_back(table[path.size()].share());
    if (!consider(std::span{s->tokens}.subspan(before, s->computed - before), last)) continue;
    filling = std::move(last);
    best = &filling;
  }
  Partial out{rows, {}};
  for (std::size_t g = 0; best != nullptr && g < best->size(); ++g) out.blocks.push_back((*best)[g].share());
  if (found != nullptr && best != &filling) found->last_use_ns = now_ns;
  return out;
}

PrefixIndex::Partial PrefixIndex::match(Sequence& s, const Sequences& running, std::uint64_t now_ns) {
  if (!on_ || s.scoring()) return {};
  const std::uint32_t block = runtime_.limits.block_tokens;
  const std::size_t most = (s.tokens.size() - 1) / block;
  Key parent = root_of(s);
  std::vector<Node*> path;
  std::vector<Key> keys{parent};
  while (path.size() < most) {
    parent = key(parent, std::span{s.tokens}.subspan(path.size() * block, block));
    const auto found = nodes_.find(parent);
    if (found == nodes_.end()) break;
    path.push_back(&found->second);
    keys.push_back(parent);
  }
  while (!path.empty() && !usable(path, nullptr, path.size() * std::uint64_t{block})) path.pop_back();
  const std::size_t n = path.size();
  s.blocks.resize(runtime_.groups.size());
  for (std::size_t b = 0; b < n; ++b) {
    for (std::size_t g = 0; g < runtime_.groups.size(); ++g) s.blocks[g].push_back(path[b]->blocks[g].share());
    touch(keys[b + 1], *path[b], now_ns);
  }
  s.computed = static_cast<std::uint32_t>(n) * block;
  s.keyed_blocks = static_cast<std::uint32_t>(n);
  s.prefix_key = keys[n];
  const std::size_t left = s.tokens.size() - 1 - s.computed;
  return partial(path, keys[n], std::span{s.tokens}.subspan(s.computed, std::min<std::size_t>(left, block)), running, now_ns);
}

void PrefixIndex::insert(Sequence& s, std::uint64_t now_ns) {
  if (!on_) return;
  const std::uint32_t block = runtime_.limits.block_tokens;
  if (s.keyed_blocks == 0) s.prefix_key = root_of(s);
  for (; (s.keyed_blocks + 1) * block <= s.computed; ++s.keyed_blocks) {
    const Key parent = s.prefix_key;
    const auto tokens = std::span{s.tokens}.subspan(std::size_t{s.keyed_blocks} * block, block);
    s.prefix_key = key(parent, tokens);
    Node* node = s.keyed_blocks == 0 || nodes_.count(parent) != 0 ? add(s.prefix_key, parent, tokens, now_ns) : nullptr;
    if (node == nullptr) continue;  // behind a block that has been dropped nothing can be found
    // A node that lost the block of a windowed group gets it back from whoever computed it again.
    for (std::size_t g = 0; g < node->blocks.size(); ++g)
      if (!node->blocks[g] && s.blocks[g][s.keyed_blocks]) node->blocks[g] = s.blocks[g][s.keyed_blocks].share();
  }
}

void PrefixIndex::insert_tail(Sequence& s, std::uint64_t now_ns) {
  const std::uint32_t begin = s.keyed_blocks * runtime_.limits.block_tokens;
  if (!on_ || s.computed <= begin || (s.keyed_blocks > 0 && nodes_.count(s.prefix_key) == 0)) return;
  const auto tokens = std::span{s.tokens}.subspan(begin, s.computed - begin);
  for (auto [at, end] = children_.equal_range(s.prefix_key); at != end; ++at) {
    const Node& other = nodes_.at(at->second);
    if (other.tokens.size() >= tokens.size() && std::equal(tokens.begin(), tokens.end(), other.tokens.begin())) return;  // known
  }
  Node* node = add(key(s.prefix_key, tokens), s.prefix_key, tokens, now_ns);
  for (std::size_t g = 0; g < node->blocks.size(); ++g) node->blocks[g] = s.blocks[g][s.keyed_blocks].share();
}

// The node of a block, new or known. `parent` is a node, or the root of the sequence.
PrefixIndex::Node* PrefixIndex::add(const Key& key, const Key& parent, std::span<const std::int32_t> tokens, std::uint64_t now_ns) {
  auto [at, fresh] = nodes_.try_emplace(key);
  Node& node = at->second;
  if (!fresh) return &node;
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
    if (less.size() < tokens.size() && std::equal(less.begin(), less.end(), tokens.begin())) erase(other);
  }
  return &node;
}

// Asks the cache for victims among the nodes without children until `bytes` are free (0: those that it does not want at all). With
// `pools` only among those that nobody else holds: giving up others would free nothing.
std::uint32_t PrefixIndex::drop(std::uint64_t bytes, const std::vector<Pool>* pools) {
  std::vector<mekik_node> view;
  std::vector<Key> keys;
  for (const auto& [key, node] : nodes_) {
    if (node.children > 0) continue;
    mekik_node n{};
    bool others = pools != nullptr;
    for (std::size_t g = 0; g < node.blocks.size(); ++g) {
      if (!node.blocks[g]) continue;
      n.bytes += runtime_.plan.block_bytes[g];
      if (pools != nullptr && (*pools)[g].references(node.blocks[g].id()) == 1) others = false;
    }
    if (others) continue;
    std::memcpy(n.key.sha256, key.data(), key.size());
    std::memcpy(n.parent.sha256, node.parent.data(), node.parent.size());
    n.last_use_ns = node.last_use_ns;
    n.tokens = static_cast<std::uint32_t>(node.tokens.size());
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
    erase(at);
    ++dropped;
  }
  return dropped;
}

void PrefixIndex::erase(Nodes::iterator at) {
  if (const auto up = nodes_.find(at->second.parent); up != nodes_.end()) --up->second.children;
  for (auto [child, end] = children_.equal_range(at->second.parent); child != end; ++child)
    if (child->second == at->first) {
      children_.erase(child);
      break;
    }
  nodes_.erase(at);
}

void PrefixIndex::settle() {
  while (on_ && !nodes_.empty() && drop(0, nullptr) > 0) {}
}

// Of a windowed group a node can do without its block: only who goes on right behind it needs that.
bool PrefixIndex::drop_windowed(std::uint32_t group, const Pool& pool) {
  Node* oldest = nullptr;
  for (auto& [key, node] : nodes_) {
    const Lease& block = node.blocks[group];
    if (!block || node.children == 0 || pool.references(block.id()) != 1) continue;
    if (oldest == nullptr || node.last_use_ns < oldest->last_use_ns) oldest = &node;
  }
  if (oldest == nullptr) return false;
  oldest->blocks[group].reset();
  return true;
}

bool PrefixIndex::evict(std::uint32_t group, const std::vector<Pool>& pools) {
  if (!on_) return false;
  const auto before = pools[group].held();
  while (!nodes_.empty()) {
    if (drop(std::max<std::uint64_t>(runtime_.plan.block_bytes[group], 1), &pools) == 0)
      return runtime_.groups[group].window > 0 && drop_windowed(group, pools[group]);
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
  if (children_.size() != nodes_.size()) return internal_error("the prefix index has nodes that no parent knows");
  for (const auto& [key, node] : nodes_)
    if (const auto has = children_.count(key); node.children != has)
      return internal_error("a node of the prefix index counts " + std::to_string(node.children) + " children and has " +
                            std::to_string(has));
  return {};
}

void PrefixIndex::count(std::vector<std::vector<std::uint32_t>>& counts) const {
  for (const auto& [key, node] : nodes_)
    for (std::size_t g = 0; g < node.blocks.size(); ++g)
      if (node.blocks[g]) ++counts[g][static_cast<std::size_t>(node.blocks[g].id())];
}

}  // namespace mekik::engine
