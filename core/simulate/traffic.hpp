// The clients of a scenario: who asks what and when, and how it went. The same for the simulated engine and the real one.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "simulate/scenario.hpp"

namespace mekik::simulate {

// What became of the requests of a load, or of all. Times in seconds, an entry a request.
struct Tally {
  std::string name;
  std::uint64_t sent = 0;  // attempts of refused clients each
  std::uint64_t finished = 0, cancelled = 0, failed = 0, refused_queue = 0, refused_scheduler = 0, invalid = 0, given_up = 0;
  std::uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  std::vector<double> queue, ttft, tpot, total, gap;  // gap: the longest from one token to the next
  std::uint64_t in_time = 0, with_targets = 0;        // of those that finished
  std::string first_error;
  void add(const Tally& other);
};

class Traffic {
 public:
  struct Engine {
    std::function<Result<engine::RequestId>(engine::Request, engine::OnEvent)> submit;
    std::function<void(engine::RequestId)> cancel;
  };
  static constexpr std::uint64_t kNever = UINT64_MAX;
  // `context`: tokens that a sequence may have. Times count from 0; `epoch_ns` is that moment on the engine's clock.
  Traffic(const Scenario& scenario, std::uint32_t context, std::uint32_t vocabulary, std::uint64_t epoch_ns, Engine engine);
  ~Traffic();

  std::uint64_t next_ns() const;       // when something is due; kNever: nothing, until something ends
  void release(std::uint64_t now_ns);  // sends and cancels what is due
  bool done() const;                   // nothing is due any more, nor under way
  // Real time: until that moment, or something has ended.
  void wait(std::uint64_t now_ns, std::uint64_t until_ns);
  std::vector<Tally> tallies() const;                            // of the loads, in their order
  std::vector<std::pair<std::uint32_t, Tally>> tenants() const;  // by number
  std::uint64_t last_ns() const { return last_ns_; }             // when the last request ended

 private:
  struct Chat;
  struct Sent;
  enum class What { arrive, ask, cancel };
  struct Due {
    std::uint64_t at = 0, order = 0;
    What what = What::arrive;
    std::uint32_t load = 0;
    std::shared_ptr<Chat> chat;  // shared: with the request that is under way
    std::shared_ptr<Sent> sent;  // of a cancel
    bool operator<(const Due& other) const { return at != other.at ? at > other.at : order > other.order; }
  };
  struct Source {  // of a load's arrivals
    std::uint64_t made = 0;
    double at_seconds = 0;
    std::size_t traced = 0;
  };
  void push(Due due);
  void schedule(std::uint32_t load);
  void arrive(std::uint32_t load, std::uint64_t now);
  std::shared_ptr<Chat> chat_of(std::uint32_t load, std::uint64_t number, std::uint64_t user);
  void ask(const std::shared_ptr<Chat>& chat, std::uint64_t now);
  engine::Request request_of(Chat& chat) const;
  void happened(const std::shared_ptr<Sent>& sent, const engine::Event& event);
  void ended(const std::shared_ptr<Sent>& sent, const engine::Event& event);
  void refused(const std::shared_ptr<Chat>& chat, std::uint64_t now, std::uint64_t retry_ns, Tally& tally);
  void next_turn(const std::shared_ptr<Chat>& chat, std::uint64_t now, bool answered);
  Tally& tally(const Chat& chat);
  std::uint64_t bits(const Chat& chat, std::uint64_t purpose) const;

  const Scenario& scenario_;
  const std::uint32_t context_, vocabulary_;
  const std::uint64_t epoch_ns_;
  Engine engine_;
  bool salted_ = false;

  mutable std::mutex mutex_;  // of the following
  std::condition_variable changed_;
  std::priority_queue<Due> due_;
  std::vector<Source> sources_;
  std::vector<Tally> tallies_;
  std::vector<std::pair<std::uint32_t, Tally>> tenants_;
  std::uint64_t order_ = 0, open_ = 0, last_ns_ = 0, ends_ = 0;
};

}  // namespace mekik::simulate
