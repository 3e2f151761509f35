// The cache plugin's slower tier: what ended sequences had computed goes there, and comes back for prompts that begin the same.
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

  // [any] What the tier says that it has of a prompt. Costs one question a block.
  TierPrefix look(const Request& request) const;
  // A new sequence: gets what the tier has of it beyond what is in memory, when that pays.
  void fetch(const Sequence& s, std::uint64_t now_ns);
  bool fetching(std::uint64_t sequence) const;  // it waits for that
  void forget(std::uint64_t sequence);          // it has ended
  // What the nodes of a sequence hold is to be stored. Call after PrefixIndex::insert_tail.
  void offer(const Sequence& s);
  // Goes on with all of that. True: there is more to do.
  bool turn(bool idle, std::uint64_t now_ns);
  // Before the end: stores what is left, for at most so long.
  void flush(std::uint64_t most_ns);

 private:
  using Key = PrefixIndex::Key;
  enum class What : std::uint32_t { node = 1, note = 2, state = 3 };
  struct Operation {
    Tier* tier = nullptr;
    What what = What::node;
    Key parent{};
    std::vector<std::int32_t> tokens;  // of the node; of a state those up to it; of a note none
    std::uint32_t at = 0;              // tokens before the node
    std::unique_ptr<std::uint8_t[]> memory;
    std::uint64_t bytes = 0;
    std::atomic<bool> done{false};
    mekik_status status = MEKIK_OK;
  };
  struct Fetch {
    Key root{};
    std::uint64_t sequence = 0, deadline_ns = 0;
    bool waited_for = true;
    std::vector<std::int32_t> tokens;  // of the prompt, without the last
    std::list<Operation> operations;
  };
  struct Offer {
    What what;
    Key key;  // of the node; of a note the parent
    std::uint32_t tokens;
  };
  static void completed(void* operation, mekik_status status);
  bool begin(Fetch& fetch, What what, const Key& parent, std::uint32_t at, std::span<const std::int32_t> tokens);
  void read_note(Fetch& fetch, const Operation& note);
  void place(Fetch& fetch, std::uint64_t now_ns);
  bool place(const Fetch& fetch, const Operation& operation, std::uint64_t now_ns);
  bool store(const Offer& offer);
  bool check(const Operation& operation) const;
  void failed(const char* what, mekik_status code);
  std::uint64_t in_flight() const;

  const Runtime& runtime_;
  PrefixIndex& prefixes_;
  Telemetry& telemetry_;
  Hooks hooks_;
  bool on_;
  std::list<Fetch> fetches_;
  std::list<Operation> stores_;
  std::deque<Offer> offers_;
  std::mutex mutex_;  // of `completed`'s wake-up
  std::condition_variable ended_;
};

}  // namespace mekik::engine
