// Which stored blocks and states belong to which beginnings of prompts. The cache plugin decides what is kept, this is the rest: keys,
// references.
#pragma once
#include <mekik/plugin.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <unordered_set>
#include <vector>

#include "engine/runtime.hpp"
#include "engine/sequence.hpp"

namespace mekik::engine {

// The first position that the token behind `length` others sees through a window; 0: there is none. Any thread.
constexpr std::uint64_t first_seen(std::uint64_t window, std::uint64_t length) {
  return window == 0 || length + 1 <= window ? 0 : length + 1 - window;
}

// Full blocks are immutable, so that any sequence with the same tokens before and in a block may share it. A node is one block of every
// group (in a windowed group possibly none: it was behind the window when the node was made). The last block of a sequence that ended is
// a node, too: it is not full, so its rows are copied and not shared, and it has no children. Recurrent states are kept at some tokens of
// a node; with them a sequence can only begin at such a token. A model whose layers are all recurrent has nodes without blocks, and only
// those that lead to a state. [engine thread]
class PrefixIndex {
 public:
  using Key = std::array<std::uint8_t, 32>;
  struct State {
    std::uint32_t tokens = 0;  // of the node, after which it is
    Kept slot;
    std::uint64_t last_use_ns = 0;
    std::uint32_t uses = 0;
    bool offered = false;  // to the slower tier
    bool wanted = false;   // there, before it goes
  };
  struct Node {
    Key parent{};
    std::vector<std::int32_t> tokens;
    std::vector<Kept> blocks;   // per group
    std::vector<State> states;  // ascending
    std::uint64_t last_use_ns = 0;
    std::uint32_t children = 0, uses = 0;
    bool offered = false, wanted = false;  // as of a state
  };
  // Off (nothing is ever kept or found) without a cache and where sequences come in one step.
  explicit PrefixIndex(const Runtime& runtime);
  bool on() const { return on_; }

  // Why a prompt's tokens were not all known.
  enum class Miss { none, new_prompt, diverged, evicted, state };
  struct Match {
    std::uint32_t rows = 0;     // of the next block: others have the same, in `blocks`, from where they can be copied
    std::vector<Lease> blocks;  // one per group
    Lease state;                // with recurrent states: the one after the last known token, which others have, too
    std::uint32_t seen = 0;     // tokens that others had the same; more than those that can be taken over: no state was kept there
    Miss miss = Miss::none;
  };
  using Sequences = std::vector<std::unique_ptr<Sequence>>;
  // Gives a sequence that holds nothing the stored blocks of its longest known beginning, without its last token, whose logits are needed:
  // whole blocks are shared, `computed` and `blocks` of the sequence are set. Returns what of the next block is known, by the index or by
  // a sequence that is filling it.
  Match match(Sequence& s, const Sequences& running, std::uint64_t now_ns);
  // How many tokens match() would about give a sequence that waits. Costs little when asked again: nothing while the index is the same,
  // else a few steps from where the last answer was.
  std::uint32_t known(Sequence& s) const;
  std::uint64_t epoch() const { return epoch_; }  // changes with what is kept
  // Keeps what a sequence has newly filled, with its checkpoints in there.
  void insert(Sequence& s, std::uint64_t now_ns);
  // The sequence gives up what it holds: keeps its last block, too, which is not full, and its state.
  void insert_tail(Sequence& s, std::uint64_t now_ns);
  // After sequences let go of blocks: what the cache does not want to keep without need goes, at once or within a second of the next end.
  void settle(std::uint64_t now_ns);
  // Gives up what nobody else holds until at least one block of `group` is let go of. False: there is none.
  bool evict(std::uint32_t group, const std::vector<Pool>& pools);
  // The same for a state.
  bool evict_state(const Pool& slots);
  // Nobody is to go on from this state any more: the sequence that has it, too, has it alone then.
  void forget_state(std::int32_t slot);
  // What computing a token takes, by which victims may be chosen.
  void set_token_ns(std::uint64_t ns) { token_ns_ = token_ns_ == 0 ? ns : (3 * token_ns_ + ns) / 4; }
  std::uint64_t token_ns() const { return token_ns_; }  // 0: not known yet
  void clear();
  // Names of what is kept: of the beginning of a request's tokens, of the block behind another, of the state after `tokens` of such a
  // block, of the note which block a sequence went on with. [any]
  Key root_of(const Request& request) const;
  static Key key(const Key& parent, std::span<const std::int32_t> tokens);
  static Key state_key(const Key& parent, std::span<const std::int32_t> tokens);
  static Key note_key(const Key& parent);
  Node* node(const Key& key);  // nullptr: there is none
  // Whether match() would find all of `rest` behind `parent`, with the state after it.
  bool covers(const Key& parent, std::span<const std::int32_t> rest) const;
  // Called before a node or a state of it is given up for others.
  void on_leaving(std::function<void(const Key&, Node&)> leaving) { leaving_ = std::move(leaving); }
  // What the slower tier had: a block behind `parent`, which is a node or a root; a state after `tokens`, of which whole blocks end in
  // `parent`. What is there already stays.
  Node* place(const Key& parent, std::span<const std::int32_t> tokens, std::vector<Lease> blocks, std::uint64_t now_ns);
  bool place_state(const Key& root, const Key& parent, std::span<const std::int32_t> tokens, Lease slot, std::uint64_t now_ns);
  std::size_t size() const { return nodes_.size(); }
  Status check() const;  // every node counts its children
  // Adds the references that nodes hold: counts[group][block], slots[slot].
  void count(std::vector<std::vector<std::uint32_t>>& counts, std::vector<std::uint32_t>& slots) const;

 private:
  using Nodes = std::map<Key, Node>;
  struct Found {
    std::uint32_t rows = 0, seen = 0;
    Node* node = nullptr;  // that has the rows, or
    const Sequence* sequence = nullptr;
    std::size_t state = 0;  // index of the node's, or of the sequence's checkpoint
  };
  template <class Has>
  bool usable(std::span<Node* const> path, std::uint64_t length, Has&& has) const;
  Found find(std::span<Node* const> path, const Key& parent, std::span<const std::int32_t> next, const Sequences& running);
  const Key& chain(Sequence& s, std::size_t n) const;  // prefix_known.cpp
  bool sees(Sequence& s, std::uint32_t n) const;
  std::uint32_t known_tokens(Sequence& s, std::uint32_t n) const;
  bool take_over(Sequence& s, const Key& parent, Node& node, std::uint32_t rows);
  Miss why(const Sequence& s, std::span<const Key> keys, std::uint32_t known, std::uint32_t seen) const;
  Node* node_of(const Key& root, const Key& parent, std::span<const std::int32_t> all, std::uint64_t now_ns);
  Node* node_of(const Sequence& s, std::uint32_t n, std::uint64_t now_ns);
  void place_state(Node& node, std::uint32_t tokens, Lease slot, std::uint64_t now_ns);
  Node* add(const Key& key, const Key& parent, std::span<const std::int32_t> tokens, std::uint64_t now_ns);
  void keep(Sequence& s, Node* node, std::uint64_t now_ns);
  void touch(const Key& key, std::uint64_t& last_use_ns, std::uint32_t& uses, std::uint64_t now_ns) const;
  // prefix_victims.cpp
  mekik_node view(const Key& key, const Node& node, std::uint64_t bytes) const;
  std::vector<std::uint32_t> ask(const std::vector<mekik_node>& nodes, std::uint64_t bytes) const;
  std::uint32_t drop(std::uint64_t bytes, const std::vector<Pool>* pools);
  std::uint32_t drop_states(std::uint64_t bytes, const Pool* slots);
  bool drop_windowed(std::uint32_t group, const Pool& pool);
  void erase(Nodes::iterator at);
  void prune(Nodes::iterator at);
  void remember(const Key& key);

  const Runtime& runtime_;
  bool on_;
  Key root_{};  // SHA-256 of layout id, numeric id and extra key
  Nodes nodes_;
  std::uint64_t epoch_ = 1, settled_ns_ = 0;
  bool picky_ = true;  // the cache did not want something last time
  std::function<void(const Key&, Node&)> leaving_;
  std::multimap<Key, Key> children_;  // by parent: a node, or a root
  std::uint64_t token_ns_ = 0;
  std::unordered_set<std::uint64_t> evicted_;  // the last of them, by the first bytes of their keys
  std::deque<std::uint64_t> evicted_order_;
};

const char* miss_name(PrefixIndex::Miss miss);  // "new_prompt", ...

}  // namespace mekik::engine
