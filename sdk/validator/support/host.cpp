#include "support/host.hpp"

#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

#include "run/shared.hpp"
#include "support/call.hpp"
#include "support/config.hpp"
#include "support/heap.hpp"
#include "support/traps.hpp"

namespace mekik::validate {

namespace {

thread_local Failure failure;

std::string text_of(mekik_str s, const char* what) {
  if (s.ptr == nullptr && s.len != 0) {
    fault(called() + ": gave the host a text without memory (" + what + ")");
    return {};
  }
  const std::string out{s.ptr == nullptr ? "" : s.ptr, s.len};
  if (!is_utf8(out)) fault(called() + ": gave the host a text that is not UTF-8 (" + what + ")");
  return out;
}

// Letters, digits, '_' and ':', as every system of metrics takes them.
bool is_metric_name(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != ':') return false;
  return true;
}

}  // namespace

Failure take_failure() { return std::exchange(failure, {}); }
void remember_rejection(mekik_str why) { failure = {true, MEKIK_E_INVALID, text_of(why, "reject")}; }

bool is_utf8(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    const std::size_t n = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    if (n == 0 || i + n > s.size()) return false;
    for (std::size_t j = 1; j < n; ++j)
      if ((static_cast<unsigned char>(s[i + j]) & 0xC0) != 0x80) return false;
    i += n;
  }
  return true;
}

Host& Host::of(const mekik_host* host) {
  if (host == nullptr) {
    fault(called() + ": gave a service no mekik_host");
    stop();
  }
  return *static_cast<Host*>(host->self);
}

Host::Host(const Mode& mode) : mode_{mode} {
  make_tables();
  const auto text = [&](const char* what, const char* name) {
    texts_.push_back(lend(std::strlen(what) + 1, 1, name));
    std::memcpy(data(texts_.back()), what, std::strlen(what) + 1);
    freeze(texts_.back());
    return static_cast<const char*>(data(texts_.back()));
  };
  table_ = lend(sizeof(mekik_host), alignof(mekik_host), "mekik_host");
  mekik_host raw{};
  raw.struct_size = sizeof raw;
  raw.abi_minor = MEKIK_ABI_MINOR;
  raw.self = this;
  raw.name = text("mekik-validate", "mekik_host.name");
  raw.version = text("0.0.0", "mekik_host.version");
  raw.fail = [](const mekik_host* h, mekik_status code, mekik_str why) {
    const HostScope scope;
    of(h);
    if (code == MEKIK_OK) fault(called() + ": called fail() with the status OK");
    failure = {true, code, text_of(why, "fail")};
    return code;
  };
  raw.service = [](const mekik_host* h, const char* id) {
    const HostScope scope;
    return of(h).find(id);
  };
  std::memcpy(data(table_), &raw, sizeof raw);
  freeze(table_);
}

// Each table in pages of its own, read-only, a trap behind its last member.
void Host::make_tables() {
  const auto add = [&](const char* id, const auto& table) {
    Piece* p = lend(sizeof table, alignof(std::decay_t<decltype(table)>), id);
    std::memcpy(data(p), &table, sizeof table);
    freeze(p);
    services_[id] = p;
  };
  add(MEKIK_LOG, mekik_log{sizeof(mekik_log), 0,
                           [](const mekik_host* h, std::int32_t level) -> int {
                             of(h);
                             return level % 2;
                           },
                           [](const mekik_host* h, std::int32_t level, mekik_str who, mekik_str what) {
                             const HostScope scope;
                             of(h);
                             if (level < 0 || level > 5)
                               fault(called() + ": logged at the level " + std::to_string(level) + ", which is none");
                             text_of(who, "log, component");
                             text_of(what, "log, message");
                           }});
  add(MEKIK_METRICS, mekik_metrics{sizeof(mekik_metrics), 0,
                                   [](const mekik_host* h, const char* name, const char* help, const char* labels) {
                                     return of(h).metric(name, help, labels, false, nullptr, 0);
                                   },
                                   [](const mekik_host* h, const char* name, const char* help, const char* labels) {
                                     return of(h).metric(name, help, labels, false, nullptr, 0);
                                   },
                                   [](const mekik_host* h, const char* name, const char* help, const char* labels, const double* bounds,
                                      std::uint32_t n) { return of(h).metric(name, help, labels, true, bounds, n); },
                                   [](mekik_metric* m, double value) {
                                     const HostScope scope;
                                     if (m == nullptr) return;
                                     Host* host = nullptr;
                                     std::memcpy(&host, m, sizeof host);  // traps where it is no handle of ours
                                     const std::lock_guard lock{host->lock_};
                                     if (host->metrics_.count(m) == 0)
                                       fault(called() + ": recorded to a metric that the host did not make");
                                     if (!std::isfinite(value)) fault(called() + ": recorded a value that is no number to a metric");
                                   }});
  add(MEKIK_MEMORY, mekik_memory{sizeof(mekik_memory), 0,
                                 [](const mekik_host* h, std::size_t bytes, std::size_t align, const char* tag) {
                                   const HostScope scope;
                                   if (tag != nullptr) text_of({tag, std::strlen(tag)}, "memory, tag");
                                   return of(h).alloc(bytes, align);
                                 },
                                 [](const mekik_host* h, void* memory) {
                                   const HostScope scope;
                                   of(h).release(memory);
                                 }});
  add(MEKIK_TASKS,
      mekik_tasks{sizeof(mekik_tasks), 0, [](const mekik_host* h) { return of(h).mode_.width; },
                  [](const mekik_host* h, std::uint32_t n, void (*fn)(void*, std::uint32_t), void* ctx) { of(h).run(n, fn, ctx); }});
  add(MEKIK_CONFIG, Config::api());
}

Host::~Host() { end(); }
void Host::end() {
  for (auto& [id, p] : services_) revoke(p);
  for (Piece* p : texts_) revoke(p);
  revoke(table_);
}

std::set<std::string> Host::asked() const {
  const std::lock_guard lock{lock_};
  return asked_;
}

const void* Host::find(const char* id) {
  if (id == nullptr) {
    fault(called() + ": asked for a service without an id");
    return nullptr;
  }
  const std::lock_guard lock{lock_};
  asked_.insert(id);
  const auto at = services_.find(id);
  return at == services_.end() || mode_.missing.count(id) != 0 || mode_.missing.count("*") != 0 ? nullptr : data(at->second);
}

void* Host::alloc(std::size_t bytes, std::size_t align) {
  const std::uint64_t n = ++allocations_;
  if (align != 0 && (align & (align - 1)) != 0) fault(called() + ": asked mekik.memory/1 for an alignment of " + std::to_string(align));
  if (n == mode_.fail_alloc || bytes > (std::size_t{4} << 30)) {
    refused_ = true;
    return nullptr;
  }
  if (bytes == 0) return nullptr;
  Piece* p = lend(bytes, align == 0 ? 16 : align, "a block of mekik.memory/1", mode_.flush);
  std::memset(data(p), 0, bytes < (1u << 16) ? bytes : 0);
  if (bytes >= (1u << 16)) std::memset(data(p), 0, 4096 < bytes ? 4096 : bytes);  // fresh pages are zero already
  const std::lock_guard lock{lock_};
  memory_[data(p)] = p;
  ++blocks_;
  bytes_ += static_cast<std::int64_t>(bytes);
  if (bytes_ > peak_) peak_ = bytes_.load();
  return data(p);
}

void Host::release(void* memory) {
  if (memory == nullptr) return;
  const std::lock_guard lock{lock_};
  const auto at = memory_.find(memory);
  if (at == memory_.end()) {
    fault(called() + ": released memory that mekik.memory/1 had not given, or released it twice");
    return;
  }
  --blocks_;
  bytes_ -= static_cast<std::int64_t>(size(at->second));
  if (const std::string wrong = revoke(at->second); !wrong.empty()) fault(called() + ": " + wrong);
  memory_.erase(at);
}

mekik_metric* Host::metric(const char* name, const char* help, const char* labels, bool histogram, const double* bounds, std::uint32_t n) {
  const HostScope scope;
  if (name == nullptr || !is_metric_name(name))
    fault(called() + ": a metric's name \"" + (name != nullptr ? name : "(null)") + "\" cannot be");
  if (help != nullptr) text_of({help, std::strlen(help)}, "help of a metric");
  if (labels != nullptr && labels[0] != '\0' && std::strchr(labels, '=') == nullptr)
    fault(called() + ": the labels \"" + std::string{labels} + "\" of a metric are not k=v,k=v");
  for (std::uint32_t i = 0; histogram && i < n; ++i)
    if (!std::isfinite(bounds[i]) || (i > 0 && bounds[i] <= bounds[i - 1])) {
      fault(called() + ": the bounds of a histogram do not ascend");
      break;
    }
  Piece* p = lend(64, 64, "a metric (opaque)");
  Host* self = this;
  std::memcpy(data(p), &self, sizeof self);
  freeze(p);
  const std::lock_guard lock{lock_};
  metrics_[data(p)] = {name != nullptr ? name : "", p};
  return static_cast<mekik_metric*>(data(p));
}

void Host::run(std::uint32_t n, void (*fn)(void*, std::uint32_t), void* ctx) {
  const HostScope scope;
  const std::uint32_t width = std::max(1u, std::min(mode_.width, n));
  std::atomic<std::uint32_t> next{0};
  const auto work = [&] {
    const HostScope ours;
    for (std::uint32_t i = next++; i < n; i = next++) {
      try {
        const PluginScope theirs;
        fn(ctx, mode_.backwards ? n - 1 - i : i);
      } catch (...) {
        fault(called() + ": a task threw an exception through mekik.tasks/1");
      }
    }
  };
  std::vector<std::thread> others;
  for (std::uint32_t t = 1; t < width; ++t)
    others.emplace_back([&] {
      signal_stack();
      work();
    });
  work();
  for (std::thread& t : others) t.join();
}

}  // namespace mekik::validate
