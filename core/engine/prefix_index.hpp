// Which stored blocks belong to which beginnings of prompts. The cache plugin decides what is kept, this is the rest: keys, references.
#pragma once
#include <mekik/plugin.h>

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "engine/runtime.hpp"
#include "engine/sequence.hpp"

namespace mekik::engine {

// Full blocks are immutable, so that any sequence with the same tokens before and in a block may share it. A node is one block of every
// group (in a windowed group possibly none: it was behind the window when the node was made). The last block of a sequence that ended is
// a node, too: it is not full, so its rows are copied and not shared, and it has no children. [engine thread]
class PrefixIndex {
 public:
  // Off (nothing is ever kept or found) without a cache, with recurrent states, which blocks do not hold, and where sequences come in one
  // step.
  explicit PrefixIndex(const Runtime& runtime);
  bool on() const { return on_; }

  // The block that goes on as the sequence does for `rows` tokens, and then differs: its rows can be copied. One lease per group.
  struct Partial {
    std::uint32_t rows = 0;
    std::vector<Lease> blocks;
  };
  using Sequences = std::vector<std::unique_ptr<Sequence>>;
  // Gives a sequence that holds nothing the stored blocks of its longest known beginning, without its last token, whose logits are needed:
  // whole blocks are shared, `computed` and `blocks` of the sequence are set. Returns what of the next block is known, by the index or by
  // a sequence that is filling it.
  Partial match(Sequence& s, const Sequences& running, std::uint64_t now_ns);
  // Keeps what a sequence has newly filled.
  void insert(Sequence& s, std::uint64_t now_ns);
  // The sequence ends: keeps its last block, too, which is not full.
  void insert_tail(Sequence& s, std::uint64_t now_ns);
  // After sequences let go of blocks: what the cache does not want to keep without need goes.
  void settle();
  // Gives up what nobody else holds until at least one block of `group` is let go of. False: there is none.
  bool evict(std::uint32_t group, const std::vector<Pool>& pools);
  void clear() { nodes_.clear(), children_.clear(); }
  std::size_t size() const { return nodes_.size(); }
  std::uint32_t held(std::uint32_t group) const;                         // blocks that nodes hold
  std::uint32_t evictable(std::uint32_t group, const Pool& pool) const;  // those that nobody else holds
  Status check() const;                                                  // every node counts its children
  // Adds the references that nodes hold: counts[group][block].
  void count(std::vector<std::vector<std::uint32_t>>& counts) const;

 private:
  using Key = std::array<std::uint8_t, 32>;
  struct Node {
    Key parent{};
    std::vector<std::int32_t> tokens;
    std::vector<Lease> blocks;  // per group
    std::uint64_t last_use_ns = 0;
    std::uint32_t children = 0, uses = 0;
  };
  using Nodes = std::map<Key, Node>;
  Key root_of(const Sequence& s) const;
  Key key(const Key& parent, std::span<const std::int32_t> tokens) const;
  bool usable(const std::vector<Node*>& path, const std::vector<Lease>* last, std::uint64_t length) const;
  Partial partial(const std::vector<Node*>& path, const Key& parent, std::span<const std::int32_t> next, const Sequences& running,
                  std::uint64_t now_ns);
  Node* add(const Key& key, const Key& parent, std::span<const std::int32_t> tokens, std::uint64_t now_ns);
  void touch(const Key& key, Node& node, std::uint64_t now_ns) const;
  std::uint32_t drop(std::uint64_t bytes, const std::vector<Pool>* pools);
  bool drop_windowed(std::uint32_t group, const Pool& pool);
  void erase(Nodes::iterator at);

  const Runtime& runtime_;
  bool on_;
  Key root_{};  // SHA-256 of layout id, numeric id and extra key
  Nodes nodes_;
  std::multimap<Key, Key> children_;  // by parent: a node, or a root
};

}  // namespace mekik::engine
