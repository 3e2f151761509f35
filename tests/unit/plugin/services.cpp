#include <algorithm>
#include <array>
#include <atomic>
#include <cfenv>
#include <cfloat>
#include <cstring>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "config/table.hpp"
#include "plugin/failure.hpp"
#include "plugin/host.hpp"
#include "plugin/registry.hpp"
#include "plugin/tasks.hpp"
#include "support/catch.hpp"

using namespace mekik;
using namespace mekik::plugin;

namespace {

struct Fixture {
  metrics::Metrics metrics;
  Tasks tasks{4};
  Host host{"cache_x", metrics, tasks};
  const mekik_host* raw = host.raw();

  template <class T>
  const T& service(const char* id) {
    const void* found = raw->service(raw, id);
    REQUIRE(found != nullptr);
    CHECK(static_cast<const T*>(found)->struct_size == sizeof(T));
    return *static_cast<const T*>(found);
  }
  double sample(const std::string& name, const std::string& labels) {
    for (const mekik_sample& one : metrics.snapshot().samples)
      if (one.name == name && one.labels == labels) return one.value;
    return -1;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "An unknown service is NULL") {
  CHECK(raw->service(raw, "mekik.log/2") == nullptr);
  CHECK(raw->service(raw, nullptr) == nullptr);
}

TEST_CASE_METHOD(Fixture, "Memory is aligned, accounted by tag, and only what was given is taken back") {
  log::set_level(log::Level::fatal);
  const auto& memory = service<mekik_memory>(MEKIK_MEMORY);
  void* a = memory.alloc(raw, 1000, 4096, "kv");
  void* b = memory.alloc(raw, 24, 0, "kv");
  REQUIRE(a != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(a) % 4096 == 0);
  std::memset(a, 1, 1000);
  for (const std::size_t bytes : {std::size_t{5000}, (std::size_t{3} << 20) + 5}) {
    auto* zeroed = static_cast<unsigned char*>(memory.alloc(raw, bytes, 1 << 21, "x"));
    REQUIRE(zeroed != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(zeroed) % (1 << 21) == 0);
    CHECK(std::all_of(zeroed, zeroed + bytes, [](unsigned char byte) { return byte == 0; }));
    std::memset(zeroed, 1, bytes);
    memory.release(raw, zeroed);
  }
  CHECK(host.memory.bytes() == 1024);
  CHECK(sample("mekik_plugin_memory_bytes", "library=cache_x,tag=kv") == 1024);
  memory.release(raw, a);
  memory.release(raw, a);
  int mine = 0;
  memory.release(raw, &mine);
  memory.release(raw, nullptr);
  CHECK(host.memory.bytes() == 24);
  memory.release(raw, b);
  CHECK(sample("mekik_plugin_memory_bytes", "library=cache_x,tag=kv") == 0);
  CHECK(memory.alloc(raw, 0, 8, "x") == nullptr);
  CHECK(memory.alloc(raw, 8, 3, "x") == nullptr);
  CHECK(memory.alloc(raw, SIZE_MAX, 8, "x") == nullptr);
  for (int i = 0; i < 200; ++i) memory.release(raw, memory.alloc(raw, 8, 8, ("tag" + std::to_string(i)).c_str()));
  CHECK(metrics.snapshot().samples.size() <= 66);
}

TEST_CASE_METHOD(Fixture, "Metrics of a plugin are the process's") {
  log::set_level(log::Level::fatal);
  const auto& service_table = service<mekik_metrics>(MEKIK_METRICS);
  mekik_metric* counter = service_table.counter(raw, "x_total", "Help.", nullptr);
  service_table.record(counter, 2);
  CHECK(sample("x_total", "") == 2);
  const std::array<double, 2> bounds{1, 2};
  service_table.record(service_table.histogram(raw, "h", "Help.", "k=v", bounds.data(), 2), 1.5);
  CHECK(sample("h", "k=v") == 1.5);
  CHECK(service_table.gauge(raw, "x_total", "", nullptr) == nullptr);
  service_table.record(nullptr, 1);
  CHECK(service_table.histogram(raw, "g", "", nullptr, nullptr, 5) == nullptr);
}

TEST_CASE_METHOD(Fixture, "A failure's text stays with its thread and is taken once") {
  CHECK(raw->fail(raw, MEKIK_E_IO, abi_str("disk on fire")) == MEKIK_E_IO);
  std::thread{[] { CHECK(take_failure().empty()); }}.join();
  const Status status = to_status(MEKIK_E_IO, "cache x");
  CHECK(status.code == Code::io);
  CHECK(status.text == "cache x: disk on fire");
  CHECK(to_status(MEKIK_E_BUSY, "cache x").text == "cache x: no reason given");
  CHECK(to_status(42, "cache x").code == Code::internal);
  CHECK(to_status(42, "cache x").text == "cache x: the plugin answered the unknown status 42 (no reason given)");
  raw->fail(raw, MEKIK_E_IO, abi_str("left over"));
  CHECK(to_status(MEKIK_OK, "cache x").ok());
  CHECK(take_failure().empty());
  raw->fail(raw, MEKIK_E_IO, {nullptr, 5});
  CHECK(take_failure().empty());
  raw->fail(raw, MEKIK_E_IO, abi_str(std::string(100000, 'x')));
  CHECK(take_failure().size() == 4096);
}

TEST_CASE_METHOD(Fixture, "A rejection keeps its place although the wrapper reports the reason again") {
  mekik_option row{};
  row.key = "order";
  config::Table table;
  table.label = "[scheduler]";
  config::Table::Option option;
  option.row = &row;
  option.origin = {std::make_shared<const config::Source>(config::Source{"p.toml", "order = 1\n"}), 1, 9};
  table.options.push_back(std::move(option));
  const auto& api = service<mekik_config_api>(MEKIK_CONFIG);
  CHECK(api.reject(abi_config(table), "order", abi_str("needs a cache")) == MEKIK_E_INVALID);
  raw->fail(raw, MEKIK_E_INVALID, abi_str("needs a cache"));
  CHECK(to_status(MEKIK_E_INVALID, "scheduler x").text == "p.toml:1:9: error: 'order' in [scheduler]: needs a cache");
  api.reject(abi_config(table), "order", abi_str("needs a cache"));
  raw->fail(raw, MEKIK_E_IO, abi_str("something else"));
  CHECK(to_status(MEKIK_E_IO, "scheduler x").text == "scheduler x: something else");
}

TEST_CASE_METHOD(Fixture, "Tasks run each once, nested and from many callers, too") {
  const auto& service_table = service<mekik_tasks>(MEKIK_TASKS);
  CHECK(service_table.width(raw) == 4);
  for (const std::uint32_t n : {0u, 1u, 3u, 1000u}) {
    std::vector<std::atomic<int>> runs(n + 1);
    service_table.parallel(
        raw, n, [](void* ctx, std::uint32_t i) { ++(*static_cast<std::vector<std::atomic<int>>*>(ctx))[i]; }, &runs);
    for (std::uint32_t i = 0; i < n; ++i) CHECK(runs[i] == 1);
  }
  struct Nest {
    Tasks& tasks;
    std::atomic<int> inner{0};
  } nest{tasks};
  const auto outer = [](void* ctx, std::uint32_t) {
    auto& self = *static_cast<Nest*>(ctx);
    self.tasks.parallel(
        10, [](void* c, std::uint32_t) { ++static_cast<Nest*>(c)->inner; }, ctx);
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i)
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) tasks.parallel(8, outer, &nest);
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(nest.inner == 3 * 50 * 8 * 10);
}

TEST_CASE("Pool threads compute in the default mode, whatever a task or the caller left behind") {
  Tasks tasks{3};
  struct Seen {
    std::atomic<int> wrong{0};
    std::thread::id caller = std::this_thread::get_id();
  } seen;
  const auto spoil = [](void*, std::uint32_t) { std::fesetround(FE_UPWARD); };
  const auto look = [](void* ctx, std::uint32_t) {
    auto& self = *static_cast<Seen*>(ctx);
    volatile float tiny = FLT_MIN;
    volatile float half = tiny * 0.5f;
    const bool right = half != 0.0f && std::fegetround() == FE_TONEAREST;
    if (!right && std::this_thread::get_id() != self.caller) ++self.wrong;
    std::this_thread::sleep_for(std::chrono::microseconds{50});
  };
  for (int round = 0; round < 20; ++round) {
    tasks.parallel(64, spoil, nullptr);
    tasks.parallel(64, look, &seen);
  }
  std::fesetround(FE_TONEAREST);
  CHECK(seen.wrong == 0);
}
