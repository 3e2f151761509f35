// Ten thousand requests with everything at once: threads that submit and cancel, too few blocks, priorities, tenants, prefixes in memory,
// in the host's memory and on disk, drafts. Every finished answer equals the request alone, nothing waits for ever, memory is bounded.
#include <fstream>
#include <thread>

#include "support/paths.hpp"
#include "support/storm.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // memory that was freed is kept from being used again
#else
constexpr bool kSanitized = false;
#endif

std::uint64_t resident_bytes() {
  std::uint64_t pages = 0, resident = 0;
  std::ifstream{"/proc/self/statm"} >> pages >> resident;
  return resident * 4096;
}

class Storm {
 public:
  Storm(const Setup& setup, const Expected& expected) : expected_{expected}, bench_{setup} {}

  void run(int requests, unsigned seed) {
    std::atomic<bool> stop{false};
    std::thread turner{[&] {
      while (!stop) {
        bench_.clock.now += 200'000;
        if (bench_.loop->step() != engine::Loop::Turn::ran) bench_.loop->sleep(1'000'000);
      }
    }};
    std::vector<std::thread> clients;
    for (unsigned i = 0; i < kClients; ++i) clients.emplace_back([&, i] { client(requests / static_cast<int>(kClients), seed * 10 + i); });
    for (auto& c : clients) c.join();
    CHECK(bench_.loop->wait_until_done(120'000'000'000));
    stop = true;
    bench_.loop->wake();
    turner.join();
    CHECK(wrong_ == 0);
    CHECK(failed_ == 0);
    CHECK(ended_ == begun_);
    CHECK(bench_.loop->check_invariants().ok());
    CHECK(bench_.backend.faults == std::vector<std::string>{});
    check_balance(bench_, true);
  }
  Bench& bench() { return bench_; }

 private:
  static constexpr unsigned kClients = 3;
  static constexpr int kInFlight = 40;

  void client(int requests, unsigned seed) {
    Random random{seed};
    for (int i = 0; i < requests; ++i) {
      while (begun_ - ended_ > kInFlight) std::this_thread::yield();
      const std::size_t which = random() % expected_.size();
      const auto& request = expected_.request(which);
      const auto tokens = std::make_shared<std::vector<std::vector<std::int32_t>>>(request.n);  // shared: events outlive this turn
      begun_ += static_cast<int>(request.n);
      const auto id =
          bench_.loop->submit(request, [this, which, tokens](const engine::Event& e) { receive(which, (*tokens)[e.index], e); });
      if (!id) {
        ended_ += static_cast<int>(request.n);
        ++failed_;
        continue;
      }
      if (random() % 8 != 0) continue;
      if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds{random() % 2000});
      bench_.loop->cancel(*id);
    }
  }

  void receive(std::size_t which, std::vector<std::int32_t>& mine, const engine::Event& e) {
    for (const auto& t : e.tokens) mine.push_back(t.id);
    if (e.finish == engine::Finish::none) return;
    const Answer& answer = expected_.answer(which, e.index);
    if (e.finish == engine::Finish::cancelled) {
      if (mine.size() > answer.tokens.size() || !std::equal(mine.begin(), mine.end(), answer.tokens.begin())) ++wrong_;
    } else if (e.finish != answer.finish) {
      ++failed_;
    } else if (mine != answer.tokens) {
      ++wrong_;
    }
    ++ended_;
  }

  const Expected& expected_;
  std::atomic<int> wrong_{0}, failed_{0}, begun_{0}, ended_{0};
  Bench bench_;
};

}  // namespace

TEST_CASE("ten thousand requests with everything at once") {
  Setup plain, windows, states;
  plain.blocks = {64};
  windows.windows = {0, 9};
  windows.blocks = {64, 40};
  states.slots = 12;
  states.blocks = {64};
  constexpr int kEach = 670;  // fifteen times
  unsigned seed = 1;
  double preemptions = 0, hits = 0, fetched = 0, drafted = 0;
  std::uint64_t after_first = 0;
  for (const Setup& kind : {plain, windows, states}) {
    const Expected expected{kind, requests_with_common_beginnings()};
    for (const auto* scheduler : {"continuous", "static", "priority", "fair", "deadline"}) {
      CAPTURE(kind.slots, kind.blocks.size(), scheduler);
      const TemporaryDirectory directory;
      Setup setup = kind;
      setup.cache_options = "host_memory = \"96KiB\"\ndisk = \"" + directory.path().string() + "\"\ndisk_size = \"1MiB\"";
      setup.scheduler = scheduler;
      setup.max_rows = 16;
      setup.drafter_name = seed % 2 == 0 ? "ngram" : "suffix";
      if (seed % 2 == 0) setup.drafter_options = "min = 1";
      Storm storm{setup, expected};
      storm.run(kEach, seed++);
      preemptions += storm.bench().metric("mekik_num_preemptions_total");
      hits += storm.bench().metric("mekik_prefix_cache_hits_total");
      fetched += storm.bench().metric("mekik_cache_tier_read_bytes_total");
      drafted += storm.bench().metric("mekik_spec_decode_num_draft_tokens_total");
      if (after_first == 0) after_first = resident_bytes();
    }
  }
  CHECK(preemptions > 50);
  CHECK(hits > 1000);
  CHECK(fetched > 0);
  CHECK(drafted > 1000);
  if (!kSanitized) CHECK(resident_bytes() < after_first + (64u << 20));
}
