// mekik/testing.hpp - a host to test a plugin with: configuration, log, memory and tasks, in one header and without the engine.
//
//   mekik::testing::FakeHost host{2};                                     // two threads
//   mekik::testing::Library library{"backend_mine.so", host};             // loads it and calls init
//   const mekik_component& c = library.component(MEKIK_KIND_BACKEND, "mine");
//   host.configure(c).set("math", "exact");                               // every option at its default, then some others
//   ... static_cast<const mekik_backend*>(c.table)->open(host.get(), ..., host.config(), &device)
// Misuse throws std::runtime_error. mekik/testing_kinds.hpp calls the functions of each kind so; a plugin's own tests need no more.
#pragma once
#include <dlfcn.h>
#include <mekik/plugin.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace mekik::testing {

// What a plugin reads through mekik.config/1: a table of options. Values are spelled as in TOML; quotes may be left out.
class FakeConfig {
 public:
  FakeConfig() = default;
  FakeConfig(const mekik_option* rows, std::uint32_t n, std::uint32_t size) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto& row = *reinterpret_cast<const mekik_option*>(reinterpret_cast<const char*>(rows) + std::size_t{i} * size);
      options_[row.key].row = row;
      if (row.fallback != nullptr && (row.flags & MEKIK_OPT_LIST) == 0) set(row.key, row.fallback);
    }
  }
  FakeConfig& set(const std::string& key, const std::string& text) {
    Option& o = option(key);
    o.items.assign(1, value_of(o.row, text));
    return *this;
  }
  FakeConfig& set_list(const std::string& key, const std::vector<std::string>& texts) {
    Option& o = option(key);
    o.items.clear();
    for (const std::string& text : texts) o.items.push_back(value_of(o.row, text));
    return *this;
  }
  // A further table of the option `key`, with its own options at their defaults.
  FakeConfig& add_table(const std::string& key) {
    Option& o = option(key);
    o.tables.push_back(std::make_unique<FakeConfig>(o.row.fields, o.row.n_fields, o.row.field_size));
    return *o.tables.back();
  }
  static constexpr mekik_config_api api(mekik_status (*reject)(const mekik_config*, const char*, mekik_str)) {
    return {sizeof(mekik_config_api),
            0,
            [](const mekik_config* c, const char* key) { return static_cast<std::int64_t>(item(c, key).number); },
            [](const mekik_config* c, const char* key) { return item(c, key).number; },
            [](const mekik_config* c, const char* key) {
              const std::string& text = item(c, key).text;
              return mekik_str{text.data(), text.size()};
            },
            [](const mekik_config* c, const char* key) -> std::uint32_t {
              const Option* o = find(c, key);
              return o == nullptr ? 0 : static_cast<std::uint32_t>(o->items.size() + o->tables.size());
            },
            [](const mekik_config* c, const char* key, std::uint32_t i) -> const mekik_config* {
              const Option* o = find(c, key);
              return o == nullptr || i >= o->tables.size() ? nullptr : reinterpret_cast<const mekik_config*>(o->tables[i].get());
            },
            reject};
  }

 private:
  struct Value {
    std::string text;
    double number = 0;
  };
  struct Option {
    mekik_option row{};
    std::vector<Value> items;
    std::vector<std::unique_ptr<FakeConfig>> tables;
  };
  Option& option(const std::string& key) {
    const auto at = options_.find(key);
    if (at == options_.end()) throw std::runtime_error{"the component has no option \"" + key + "\""};
    return at->second;
  }
  static Value value_of(const mekik_option& row, std::string text) {
    if (text.size() > 1 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
    Value v{text, std::strtod(text.c_str(), nullptr) * unit_of(text)};
    if (row.type == MEKIK_OPT_BOOL) v.number = text == "true" ? 1 : 0;
    if (row.type == MEKIK_OPT_CHOICE) v.number = choice_of(row, text);
    return v;
  }
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
  static const Option* find(const mekik_config* config, std::string_view key) {
    const auto& options = reinterpret_cast<const FakeConfig*>(config)->options_;
    const auto at = options.find(key);
    return at == options.end() ? nullptr : &at->second;
  }
  // Of "key", or of element i of a list, "key.i".
  static const Value& item(const mekik_config* config, std::string_view key) {
    static const Value none{};
    std::size_t i = 0;
    const Option* o = find(config, key);
    if (const auto dot = key.rfind('.'); o == nullptr && dot != key.npos) {
      o = find(config, key.substr(0, dot));
      i = std::strtoul(std::string{key.substr(dot + 1)}.c_str(), nullptr, 10);
    }
    return o == nullptr || i >= o->items.size() ? none : o->items[i];
  }
  std::map<std::string, Option, std::less<>> options_;
};

class FakeHost {
 public:
  explicit FakeHost(std::uint32_t threads = 1) : threads_{threads} {
    raw_ = {sizeof(mekik_host), MEKIK_ABI_MINOR, this, "mekik fake host", "0", fail, find};
  }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;
  const mekik_host* get() const { return &raw_; }
  const mekik_config* config() const { return reinterpret_cast<const mekik_config*>(&config_); }
  FakeConfig& options() { return config_; }

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

  void fail_allocation(std::uint64_t nth) { fail_at_ = nth; }             // the n-th from now answers NULL; 0: none
  void without(const std::string& service) { missing_.insert(service); }  // as a host that lacks it
  // A series by its name, or "name{labels}": the sum, the level, or the number of observations; 0 before the first.
  double metric(const std::string& name) const {
    const std::lock_guard lock{mutex_};
    const auto at = metrics_.find(name);
    return at == metrics_.end() ? 0 : at->second.value;
  }

  // Every option of a component at its default; then set() some.
  FakeConfig& configure(const mekik_component& c) {
    config_ = FakeConfig{c.options, c.n_options, c.option_size};
    return config_;
  }

 private:
  enum class Metric { counter, gauge, histogram };
  struct Series {
    FakeHost* host;
    Metric kind;
    double value;
  };
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
    if (self.bytes_ + bytes > self.limit_ || (self.fail_at_ > 0 && --self.fail_at_ == 0)) return nullptr;
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

  static mekik_metric* series(const mekik_host* h, Metric kind, const char* name, const char* labels) {
    FakeHost& self = of(h);
    const std::lock_guard lock{self.mutex_};
    const std::string key = std::string{name} + (labels != nullptr && *labels != 0 ? "{" + std::string{labels} + "}" : "");
    return reinterpret_cast<mekik_metric*>(&self.metrics_.try_emplace(key, Series{&self, kind, 0}).first->second);
  }
  static void record(mekik_metric* metric, double value) {
    auto& s = *reinterpret_cast<Series*>(metric);
    const std::lock_guard lock{s.host->mutex_};
    if (s.kind == Metric::gauge) s.value = value;
    else s.value += s.kind == Metric::histogram ? 1 : value;
  }
  static const void* find(const mekik_host* h, const char* id) {
    static constexpr mekik_log log{sizeof(mekik_log), 0, [](const mekik_host*, std::int32_t) { return 1; }, write};
    static constexpr mekik_memory memory{sizeof(mekik_memory), 0, alloc, release};
    static constexpr mekik_tasks tasks{sizeof(mekik_tasks), 0, [](const mekik_host* host) { return of(host).threads_; }, run};
    static constexpr mekik_metrics metrics{
        sizeof(mekik_metrics),
        0,
        [](const mekik_host* host, const char* n, const char*, const char* l) { return series(host, Metric::counter, n, l); },
        [](const mekik_host* host, const char* n, const char*, const char* l) { return series(host, Metric::gauge, n, l); },
        [](const mekik_host* host, const char* n, const char*, const char* l, const double*, std::uint32_t) {
          return series(host, Metric::histogram, n, l);
        },
        record};
    static constexpr mekik_config_api config = FakeConfig::api([](const mekik_config*, const char* key, mekik_str why) -> mekik_status {
      failure() = std::string{key} + ": " + std::string{why.ptr, why.len};
      return MEKIK_E_INVALID;
    });
    const std::string name{id};
    if (of(h).missing_.count(name) != 0) return nullptr;
    if (name == MEKIK_LOG) return &log;
    if (name == MEKIK_METRICS) return &metrics;
    if (name == MEKIK_MEMORY) return &memory;
    if (name == MEKIK_TASKS) return &tasks;
    return name == MEKIK_CONFIG ? &config : nullptr;
  }

  mekik_host raw_{};
  std::uint32_t threads_;
  FakeConfig config_;
  std::map<std::string, Series> metrics_;
  std::set<std::string> missing_;
  mutable std::mutex mutex_;
  std::vector<std::string> log_;
  std::atomic<std::uint64_t> bytes_{0}, peak_{0};
  std::uint64_t limit_ = ~std::uint64_t{0};
  std::atomic<std::uint64_t> fail_at_{0};
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
