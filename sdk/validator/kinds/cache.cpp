// Victims of random nodes, and a slower tier that gives back what it got.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "support/heap.hpp"
#include "support/instance.hpp"

namespace mekik::validate {

namespace {

mekik_key key_of(std::uint64_t n) {
  mekik_key key{};
  Random r{n};
  for (auto& b : key.sha256) b = static_cast<std::uint8_t>(r());
  return key;
}

// What done() told of one call.
struct Ticket {
  std::atomic<int> calls{0};
  std::atomic<mekik_status> status{-1};
  static void done(void* ctx, mekik_status status) {
    const HostScope scope;
    auto* self = static_cast<Ticket*>(ctx);
    self->status = status;
    ++self->calls;
  }
  bool wait(double seconds = 10) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (calls.load() == 0 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::microseconds{200});
    return calls.load() != 0;
  }
};

class CacheWorkout final : public Workout {
 public:
  explicit CacheWorkout(const WorkoutPlan& plan)
      : plan_{plan}, table_{table_of<mekik_cache_policy>(plan.component)}, random_{plan.mode.seed} {}
  bool begin() override {
    self_ = create<mekik_cache>(plan_, [&](auto host, auto config, auto out) { return table_.create(host, config, out); });
    if (self_ != nullptr) has_tier_ = table_.has != nullptr && asks_for_tier();
    return self_ != nullptr;
  }
  unsigned steps() const override { return static_cast<unsigned>(40 * plan_.mode.scale); }
  void step(unsigned i) override {
    if (i % 2 == 0) {
      Lent lent{plan_.mode};
      const mekik_key* key = lent.one("mekik_key", key_of(below(random_, 50)));
      call(plan_.mode, "touched", [&] { table_.touched(self_, key, now_ += 1000); });
    }
    victims(i);
    if (has_tier_) tier(i);
  }
  void end() override {
    if (has_tier_) last_words();
    call(plan_.mode, "destroy", [&] { table_.destroy(self_); });
    for (const auto& t : tickets_)
      if (t->calls.load() > 1) rule("done() was called " + std::to_string(t->calls.load()) + " times for one call");
      else if (t->calls.load() == 0) rule("done() was not called before destroy() came back");
  }

 private:
  void victims(unsigned i) {
    static constexpr std::uint32_t kSizes[] = {7, 1, 0, 40, 300};
    std::vector<mekik_node> nodes(kSizes[i % 5]);
    std::uint64_t all = 0;
    for (std::size_t j = 0; j < nodes.size(); ++j) {
      mekik_node& n = nodes[j];
      n.key = key_of(100 + j);
      n.parent = key_of(j == 0 ? 0 : 100 + below(random_, j));
      n.bytes = 1000 + 64 * below(random_, 50);
      n.last_use_ns = below(random_, 1'000'000'000);
      n.recompute_ns = below(random_, 50'000'000);
      n.tokens = 16;
      n.uses = static_cast<std::uint32_t>(below(random_, 5));
      n.what = j % 9 == 8 ? MEKIK_WHAT_SLOT : MEKIK_WHAT_BLOCK;
      all += n.bytes;
    }
    const std::uint64_t some[] = {all / 3, 1, all, all * 2, 0, ~std::uint64_t{0}};
    const std::uint64_t bytes = some[i % 6];
    Lent lent{plan_.mode};
    std::uint32_t stride = 0;
    const mekik_node* in = lent.rows("nodes", nodes, stride);
    std::uint32_t* chosen = lent.out<std::uint32_t>("chosen", nodes.size());
    std::uint32_t n = 0;
    call(plan_.mode, "victims", [&] { n = table_.victims(self_, in, static_cast<std::uint32_t>(nodes.size()), stride, bytes, chosen); });
    if (n > nodes.size()) return rule("victims: answered " + std::to_string(n) + " of " + std::to_string(nodes.size()) + " nodes");
    std::vector<bool> seen(nodes.size(), false);
    std::uint64_t freed = 0;
    for (std::uint32_t j = 0; j < n; ++j) {
      transcript.add("victims " + std::to_string(i), chosen[j]);
      if (chosen[j] >= nodes.size())
        return rule("victims: chose node " + std::to_string(chosen[j]) + " of " + std::to_string(nodes.size()) +
                    ", or said it chose more than it wrote");
      if (seen[chosen[j]]) return rule("victims: chose one node twice");
      seen[chosen[j]] = true;
      freed += nodes[chosen[j]].bytes;
    }
    transcript.add("victims " + std::to_string(i) + ", how many", n);
    if (freed < std::min(bytes, all))
      rule("victims: chose nodes of " + std::to_string(freed) + " bytes, asked to free " + std::to_string(bytes) + " of " +
           std::to_string(all));
  }

  Ticket& ticket() {
    tickets_.push_back(std::make_unique<Ticket>());
    return *tickets_.back();
  }
  bool asks_for_tier() {
    Lent lent{plan_.mode};
    const mekik_key* key = lent.one("mekik_key", key_of(1));
    const void* nothing = lent.bytes("data", nullptr, 0);
    Ticket& t = ticket();
    const Answer a = ask(plan_.mode, "store", [&] { return table_.store(self_, key, nothing, 0, Ticket::done, &t); });
    tickets_.pop_back();
    if (a.code == MEKIK_OK) rule("store: answered OK to 0 bytes, which only ask whether there is a tier; INVALID or UNSUPPORTED is right");
    return a.code == MEKIK_E_INVALID;
  }
  std::vector<std::uint8_t> value_of(std::uint64_t n) const {
    Random r{n * 77};
    std::vector<std::uint8_t> out(16 + (n * 4099) % 70000);
    for (auto& b : out) b = static_cast<std::uint8_t>(r());
    return out;
  }
  int has(std::uint64_t n, std::uint64_t& bytes) {
    Lent lent{plan_.mode};
    const mekik_key* key = lent.one("mekik_key", key_of(n));
    std::uint64_t* size = lent.out<std::uint64_t>("bytes", 1);
    std::uint64_t* expected = lent.out<std::uint64_t>("expected_ns", 1);
    int answer = 0;
    call(plan_.mode, "has", [&] { answer = table_.has(self_, key, size, expected); });
    if (answer != 0 && answer != 1) rule("has: answered " + std::to_string(answer) + "; 0 or 1 is right");
    bytes = *size;
    return answer;
  }
  mekik_status fetch(std::uint64_t n, std::uint64_t bytes, std::vector<std::uint8_t>& out, bool cancel) {
    Lent lent{plan_.mode};
    const mekik_key* key = lent.one("mekik_key", key_of(n));
    auto* to = lent.out<std::uint8_t>("fetched data", bytes);
    Ticket& t = ticket();
    const Answer a = ask(plan_.mode, "fetch", [&] { return table_.fetch(self_, key, to, bytes, Ticket::done, &t); });
    if (!a.ok()) {
      tickets_.pop_back();
      return a.code;
    }
    if (cancel) call(plan_.mode, "cancel", [&] { table_.cancel(self_, &t); });
    if (!t.wait()) {
      rule(std::string{"fetch: done() did not come within 10 s"} + (cancel ? " after cancel()" : ""));
      stop();
    }
    out.assign(to, to + bytes);
    return t.status;
  }
  void tier(unsigned i) {
    const std::uint64_t n = 5000 + i + plan_.mode.seed * 100;
    const auto value = value_of(n);
    std::vector<std::uint8_t> back;
    std::uint64_t bytes = 0;
    if (has(n, bytes) != 0) rule("has: knows a key that was never stored");
    if (i == 1) {
      const mekik_status s = fetch(n, 100, back, false);
      if (s != MEKIK_E_INVALID) rule(std::string{"fetch: of an unknown key ended in "} + code_name(s) + "; INVALID is right");
    }
    {
      Lent lent{plan_.mode};
      const mekik_key* key = lent.one("mekik_key", key_of(n));
      const auto* data = lent.in("stored data", value);
      Ticket& t = ticket();
      const Answer a = ask(plan_.mode, "store", [&] { return table_.store(self_, key, data, value.size(), Ticket::done, &t); });
      if (!a.ok()) return tickets_.pop_back(), void(expect_ok(plan_.mode, "store", a));
      if (!t.wait()) {
        rule("store: done() did not come within 10 s");
        stop();
      }
      if (t.status != MEKIK_OK) return;  // a tier may be full, or slow
    }
    if (has(n, bytes) != 1) return;  // it may let go of anything at any time
    if (bytes != value.size()) rule("has: says that a value of " + std::to_string(value.size()) + " bytes has " + std::to_string(bytes));
    const mekik_status s = fetch(n, value.size(), back, i % 4 == 3);
    if (s == MEKIK_OK && back != value) rule("fetch: gave back other bytes than were stored");
    if (i % 8 == 2) {
      const mekik_status short_one = fetch(n, value.size() - 1, back, false);
      if (short_one != MEKIK_E_INVALID)
        rule(std::string{"fetch: of another number of bytes than were stored ended in "} + code_name(short_one) + "; INVALID is right");
    }
    if (table_.ask != nullptr) question(n, value.size());
  }
  void question(std::uint64_t n, std::uint64_t bytes) {
    Lent lent{plan_.mode};
    const mekik_key* keys = lent.in<mekik_key>("keys", {key_of(n), key_of(n + 1'000'000), key_of(n)});
    std::uint32_t stride = 0;
    mekik_known* out = lent.out_rows<mekik_known>("known", 3, stride);
    Ticket& t = ticket();
    const Answer a = ask(plan_.mode, "ask", [&] { return table_.ask(self_, keys, 3, 0, out, stride, Ticket::done, &t); });
    if (!a.ok()) return tickets_.pop_back(), void(expect_ok(plan_.mode, "ask", a));
    if (!t.wait()) {
      rule("ask: done() did not come within 10 s");
      stop();
    }
    if (Lent::at(out, 1, stride).bytes != 0) rule("ask: knows a key that was never stored");
    if (const std::uint64_t said = Lent::at(out, 0, stride).bytes; said != 0 && said != bytes)
      rule("ask: says that a value of " + std::to_string(bytes) + " bytes has " + std::to_string(said));
  }
  // A call that is still going on when the instance ends.
  void last_words() {
    static const std::vector<std::uint8_t> value(100000, 7);
    static mekik_key key = key_of(424242);
    Ticket& t = ticket();
    const Answer a = ask(plan_.mode, "store", [&] { return table_.store(self_, &key, value.data(), value.size(), Ticket::done, &t); });
    if (!a.ok()) tickets_.pop_back();
  }

  const WorkoutPlan plan_;
  const mekik_cache_policy table_;
  Random random_;
  mekik_cache* self_ = nullptr;
  bool has_tier_ = false;
  std::uint64_t now_ = 1'000'000;
  std::vector<std::unique_ptr<Ticket>> tickets_;
};

}  // namespace

std::unique_ptr<Workout> make_cache(const WorkoutPlan& plan) { return std::make_unique<CacheWorkout>(plan); }

}  // namespace mekik::validate
