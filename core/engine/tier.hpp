// The cache plugin's slower tier: what sequences that ended or were preempted had computed goes there, and comes back for prompts that
// begin the same, and for those that go on.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/prefix_index.hpp"
#include "engine/runtime.hpp"
#include "engine/swap_costs.hpp"
#include "engine/telemetry.hpp"

namespace mekik::engine {

// Values of the tier, each under a SHA-256 key: of a node its blocks; of a state its slot; of a parent a note which tokens a sequence
// went on with there, so that also a part of a block is found again. The plugin answers for their bytes; that they are what was asked for
// is checked here, too. Whatever fails is computed. [engine thread, unless said]
class Tier {
 public:
  // What the loop does for it: wait for a ticket, make room in a pool, wake up.
  struct Hooks {
    std::function<Status(std::uint64_t ticket)> wait;
    std::function<Lease(std::uint32_t group)> take_block;
    std::function<Lease()> take_slot;
    std::function<void()> wake;
  };
  Tier(const Runtime& runtime, PrefixIndex& prefixes, Telemetry& telemetry, Hooks hooks);
  ~Tier();  // waits for what is on its way
  bool on() const { return on_; }

  // A sequence that waits: gets what the tier has of it beyond what is in memory, when that pays. One that was preempted gets what it
  // had, and its blocks are taken for it beforehand.
  void fetch(const Sequence& s, std::uint64_t now_ns);
  bool fetching(std::uint64_t sequence) const;  // it waits for that
  void forget(std::uint64_t sequence);          // it has ended
  bool release();                               // others need the blocks that were taken: true, if there were any
  // What the nodes of a sequence hold is to be stored. Call after PrefixIndex::insert_tail. `swap`: it goes on later, so they are stored
  // before they are given up.
  void offer(const Sequence& s, bool swap);
  // What swapping a sequence would store, if that pays; else 0. Remembers that in the sequence.
  std::uint64_t swap_bytes(Sequence& s, std::uint64_t now_ns) const;
  // Goes on with all of that. True: there is more to do.
  bool turn(bool idle, std::uint64_t now_ns);
  // Before the end: stores what is left, for at most so long.
  void flush(std::uint64_t most_ns);
  // Adds the references that fetches hold: counts[group][block].
  void count(std::vector<std::vector<std::uint32_t>>& counts) const;

 private:
  using Key = PrefixIndex::Key;
  enum class What : std::uint32_t { node = 1, note = 2, state = 3 };
  // What the plugin works on. It stays where it is until it is done.
  struct Call {
    Tier* tier = nullptr;
    std::atomic<bool> done{false};
    mekik_status status = MEKIK_OK;
    std::uint64_t done_ns = 0;
  };
  struct Value {
    What what = What::node;
    Key parent{};
    std::uint32_t at = 0;              // tokens before the node
    std::vector<std::int32_t> tokens;  // of the node; of a state those up to it; of a note none
    std::uint64_t bytes = 0, expected_ns = 0;
    std::vector<Lease> blocks{};  // taken for it
  };
  struct Operation : Call {
    Value value;
    std::uint64_t bytes = 0;
    std::unique_ptr<std::uint8_t[]> memory;
  };
  struct Question : Call {
    std::vector<Value> values;
    std::vector<mekik_key> keys;
    std::vector<mekik_known> known;
  };
  // First which whole blocks there are, then how they end, then, when a note has said it, what is behind them.
  enum class Stage { blocks, ends, rest };
  struct Fetch {
    std::uint64_t sequence = 0, deadline_ns = 0, chosen_ns = 0, placed_bytes = 0, placing_ns = 0, last_done_ns = 0;
    bool waited_for = true;
    std::uint32_t stopped_at = 0;      // of a preempted sequence; 0: it is a new one
    std::vector<std::int32_t> tokens;  // without the last
    std::vector<Key> keys;             // of the root, then of whole blocks
    std::uint32_t in_memory = 0;       // whole blocks in front
    Stage stage = Stage::blocks;
    bool asking = false;
    Question question;
    std::vector<Value> nodes;                           // whole blocks that the tier has
    std::deque<Value> wanted;                           // in their order
    std::list<Operation> operations;                    // of the first ones
    std::vector<std::pair<std::uint32_t, Lease>> pins;  // by group: what a preempted sequence goes on from
  };
  struct Offer {
    What what;
    Key key;  // of the node; of a note the parent
    std::uint32_t tokens;
  };
  static void completed(void* call, mekik_status status);
  static mekik_key key_of(const Value& value);
  // tier_fetch.cpp
  void ask(Fetch& fetch, bool chain);
  bool needed(const Fetch& fetch, std::uint32_t group, std::uint32_t block) const;
  bool lacks(const Fetch& fetch, const PrefixIndex::Node& node, std::uint32_t block) const;
  void pin(Fetch& fetch, const PrefixIndex::Node& node);
  void look_in_memory(Fetch& fetch);
  void answered(Fetch& fetch);
  void ask_ends(Fetch& fetch);
  void choose(Fetch& fetch);
  bool take(Fetch& fetch, Value& value);
  void begin(Fetch& fetch);
  void read_note(Fetch& fetch, const Operation& note);
  void place(Fetch& fetch, std::uint64_t& room, std::uint64_t now_ns);
  bool place(Fetch& fetch, Operation& operation, std::uint64_t now_ns);
  bool check(const Operation& operation) const;
  bool advance(Fetch& fetch, std::uint64_t& room, std::uint64_t now_ns);
  void give_up(Fetch& fetch);
  // tier.cpp
  bool store(const Offer& offer);
  void leaving(const Key& key, PrefixIndex::Node& node);
  void failed(const char* what, mekik_status code);
  std::uint64_t in_flight() const;

  const Runtime& runtime_;
  PrefixIndex& prefixes_;
  Telemetry& telemetry_;
  Hooks hooks_;
  bool on_;
  SwapCosts costs_;
  std::list<Fetch> fetches_;
  std::list<Operation> stores_;
  std::deque<Offer> offers_;
  std::uint64_t late_said_ns_ = 0;
  std::mutex mutex_;  // of `completed`'s wake-up
  std::condition_variable ended_;
};

}  // namespace mekik::engine
