// mekik/testing.hpp - a host to test a plugin with: configuration, log, memory and tasks, in one header and without the engine.
//
//   mekik::testing::FakeHost host{2};                                     // two threads
//   mekik::testing::Library library{"backend_mine.so", host};             // loads it and calls init
//   const mekik_component& c = library.component(MEKIK_KIND_BACKEND, "mine");
//   host.configure(c).set("math", "exact");
//   ... static_cast<const mekik_backend*>(c.table)->open(host.get(), ..., host.config(), &device)
// Misuse throws std::runtime_error.
#pragma once
#include <dlfcn.h>
#include <mekik/plugin.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace mekik::testing {

class FakeHost {
 public:
  explicit FakeHost(std::uint32_t threads = 1) : threads_{threads} {
    raw_ = {sizeof(mekik_host), MEKIK_ABI_MINOR, this, "mekik fake host", "0", fail, find};
  }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;
  const mekik_host* get() const { return &raw_; }
  const mekik_config* config() const { return reinterpret_cast<const mekik_config*>(&values_); }

  void set_threads(std::uint32_t threads) { threads_ = threads; }
  // What the plugin said through fail() on this thread last; clears it.
  static std::string take_failure() { return std::exchange(failure(), {}); }
  std::vector<std::string> log() const {
    const std::lock_guard lock{mutex_};
    return log_;
  }
  std::uint64_t bytes_in_use() const { return bytes_; }
  std::uint64_t peak_bytes() const { return peak_; }
  void set_memory_limit(std::uint64_t bytes) { limit_ = bytes; }  // alloc answers NULL beyond it

  // Every option of a component at its default; then set() some.
  FakeHost& configure(const mekik_component& c) {
    values_.clear();
    for (std::uint32_t i = 0; i < c.n_options; ++i) {
      const auto& row = *reinterpret_cast<const mekik_option*>(reinterpret_cast<const char*>(c.options) + std::size_t{i} * c.option_size);
      values_[row.key].row = row;
      if (row.fallback != nullptr && (row.flags & MEKIK_OPT_LIST) == 0) set(row.key, row.fallback);
    }
    return *this;
  }
  // A value as TOML spells it; quotes may be left out.
  FakeHost& set(const std::string& key, std::string text) {
    const auto at = values_.find(key);
    if (at == values_.end()) throw std::runtime_error{"the component has no option \"" + key + "\""};
    if (text.size() > 1 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
    Value& v = at->second;
    v.text = text;
    v.number = std::strtod(text.c_str(), nullptr) * unit_of(text);
    if (v.row.type == MEKIK_OPT_BOOL) v.number = text == "true" ? 1 : 0;
    if (v.row.type == MEKIK_OPT_CHOICE) v.number = choice_of(v.row, text);
    return *this;
  }

 private:
  struct Value {
    mekik_option row{};
    std::string text;
    double number = 0;
  };
  using Values = std::map<std::string, Value, std::less<>>;

  static double unit_of(const std::string& text) {
    constexpr std::pair<const char*, double> units[] = {
        {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1.0}, {"s", 1e9}};
    for (const auto& [name, factor] : units)
      if (text.ends_with(name)) return factor;
    return 1;
  }
  static double choice_of(const mekik_option& row, const std::string& text) {
    const std::string all = std::string{"|"} + (row.choices != nullptr ? row.choices : "") + "|";
    const std::size_t at = all.find("|" + text + "|");
    if (at == std::string::npos) throw std::runtime_error{"\"" + text + "\" is no choice of " + row.key};
    return static_cast<double>(std::count(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(at), '|'));
  }
  static const Value& value(const mekik_config* config, const char* key) {
    static const Value none{};
    const auto& values = *reinterpret_cast<const Values*>(config);
    const auto at = values.find(std::string_view{key});
    return at == values.end() ? none : at->second;
  }
  static std::string& failure() {
    thread_local std::string text;
    return text;
  }
  static FakeHost& of(const mekik_host* h) { return *static_cast<FakeHost*>(h->self); }

  static mekik_status fail(const mekik_host*, mekik_status code, mekik_str why) {
    failure() = std::string{why.ptr, why.len};
    return code;
  }
  static void write(const mekik_host* h, std::int32_t level, mekik_str who, mekik_str what) {
    const std::lock_guard lock{of(h).mutex_};
    of(h).log_.push_back(std::to_string(level) + " " + std::string{who.ptr, who.len} + ": " + std::string{what.ptr, what.len});
  }
  // Each block carries its size in front, so that release() can count it back.
  static void* alloc(const mekik_host* h, std::size_t bytes, std::size_t align, const char*) {
    FakeHost& self = of(h);
    const std::size_t front = std::max<std::size_t>(align, 64);
    if (self.bytes_ + bytes > self.limit_) return nullptr;
    auto* base = static_cast<char*>(std::aligned_alloc(front, (bytes + front + front - 1) / front * front));
    if (base == nullptr) return nullptr;
    std::memset(base, 0, bytes + front);
    *reinterpret_cast<std::size_t*>(base + front - 16) = front;
    *reinterpret_cast<std::size_t*>(base + front - 8) = bytes;
    const std::uint64_t now = self.bytes_ += bytes;
    std::uint64_t peak = self.peak_;
    while (now > peak && !self.peak_.compare_exchange_weak(peak, now)) continue;
    return base + front;
  }
  static void release(const mekik_host* h, void* data) {
    if (data == nullptr) return;
    auto* at = static_cast<char*>(data);
    of(h).bytes_ -= *reinterpret_cast<std::size_t*>(at - 8);
    std::free(at - *reinterpret_cast<std::size_t*>(at - 16));
  }
  static void run(const mekik_host* h, std::uint32_t n, void (*fn)(void*, std::uint32_t), void* ctx) {
    std::atomic<std::uint32_t> next{0};
    const auto work = [&] {
      for (std::uint32_t i = next++; i < n; i = next++) fn(ctx, i);
    };
    std::vector<std::thread> others;
    for (std::uint32_t t = 1; t < std::min(of(h).threads_, n); ++t) others.emplace_back(work);
    work();
    for (std::thread& t : others) t.join();
  }

  static const void* find(const mekik_host*, const char* id) {
    static constexpr mekik_log log{sizeof(mekik_log), 0, [](const mekik_host*, std::int32_t) { return 1; }, write};
    static constexpr mekik_memory memory{sizeof(mekik_memory), 0, alloc, release};
    static constexpr mekik_tasks tasks{sizeof(mekik_tasks), 0, [](const mekik_host* h) { return of(h).threads_; }, run};
    static constexpr mekik_config_api config{
        sizeof(mekik_config_api),
        0,
        [](const mekik_config* c, const char* key) { return static_cast<std::int64_t>(value(c, key).number); },
        [](const mekik_config* c, const char* key) { return value(c, key).number; },
        [](const mekik_config* c, const char* key) {
          return mekik_str{value(c, key).text.data(), value(c, key).text.size()};
        },
        [](const mekik_config*, const char*) { return std::uint32_t{0}; },
        [](const mekik_config*, const char*, std::uint32_t) -> const mekik_config* { return nullptr; },
        [](const mekik_config*, const char* key, mekik_str why) -> mekik_status {
          failure() = std::string{key} + ": " + std::string{why.ptr, why.len};
          return MEKIK_E_INVALID;
        }};
    const std::string_view name{id};
    if (name == MEKIK_LOG) return &log;
    if (name == MEKIK_MEMORY) return &memory;
    if (name == MEKIK_TASKS) return &tasks;
    return name == MEKIK_CONFIG ? &config : nullptr;
  }

  mekik_host raw_{};
  std::uint32_t threads_;
  Values values_;
  mutable std::mutex mutex_;
  std::vector<std::string> log_;
  std::atomic<std::uint64_t> bytes_{0}, peak_{0};
  std::uint64_t limit_ = ~std::uint64_t{0};
};

// A plugin, initialised with a host that must outlive it. It is never unloaded, as in the engine.
class Library {
 public:
  Library(const std::string& path, FakeHost& host) : Library{open(path), path, host} {}
  Library(const mekik_plugin* plugin, const std::string& path, FakeHost& host) : plugin_{plugin} {
    if (plugin->magic != MEKIK_MAGIC) throw std::runtime_error{path + " is not a mekik plugin"};
    if (plugin->init(host.get(), str(path)) != MEKIK_OK) throw std::runtime_error{path + ": " + FakeHost::take_failure()};
  }
  ~Library() { plugin_->deinit(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  const mekik_component& component(std::string_view kind, std::string_view name) const {
    for (std::uint32_t i = 0; i < plugin_->count(); ++i) {
      const mekik_component* c = plugin_->component(i);
      if (kind == c->kind && name == c->name) return *c;
    }
    throw std::runtime_error{"no component " + std::string{name} + " of kind " + std::string{kind}};
  }

 private:
  static const mekik_plugin* open(const std::string& path) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr) throw std::runtime_error{dlerror()};
    void* entry = dlsym(handle, "mekik_plugin_v0");
    if (entry == nullptr) throw std::runtime_error{path + " has no symbol mekik_plugin_v0"};
    return static_cast<const mekik_plugin*>(entry);
  }
  const mekik_plugin* plugin_;
};

}  // namespace mekik::testing
