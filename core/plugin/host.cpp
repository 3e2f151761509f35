#include "plugin/host.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <mekik/version.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "base/log.hpp"
#include "base/text.hpp"
#include "config/table.hpp"
#include "plugin/failure.hpp"
#include "plugin/registry.hpp"

namespace mekik::plugin {

namespace {

constexpr std::size_t kMaxTags = 64;            // a tag is a label of a metric
constexpr std::uint32_t kMaxBounds = 1000;      // of a histogram
constexpr std::size_t kMaxAlign = 1u << 21;     // a large page
constexpr std::size_t kMaxAlloc = 1ull << 46;   // more than any machine has; keeps arithmetic away from overflow
constexpr std::size_t kMaxMessage = 16u << 10;  // of a log line

Host& host_of(const mekik_host* host) { return *static_cast<Host*>(host->self); }
const char* or_empty(const char* text) { return text == nullptr ? "" : text; }
std::string_view bounded(mekik_str text) { return text.ptr == nullptr ? std::string_view{} : view(text).substr(0, kMaxMessage); }

const mekik_log kLog{
    sizeof(mekik_log), 0,
    [](const mekik_host*, std::int32_t level) -> int { return log::enabled(static_cast<log::Level>(std::clamp(level, 0, 5))) ? 1 : 0; },
    [](const mekik_host*, std::int32_t level, mekik_str component, mekik_str message) {
      log::write(static_cast<log::Level>(std::clamp(level, 0, 5)), bounded(component), bounded(message));
    }};

// A metric that cannot be made is said once, at its making; its handle is NULL, and recording to that does nothing.
mekik_metric* made(const mekik_host* host, const char* name, mekik_metric* metric) {
  if (metric == nullptr)
    log::warning(host_of(host).library,
                 "the metric " + mekik::quoted(or_empty(name)) + " cannot be made: wrong name, type, bounds or labels");
  return metric;
}

const mekik_metrics kMetrics{
    sizeof(mekik_metrics),
    0,
    [](const mekik_host* h, const char* name, const char* help, const char* labels) {
      return made(h, name, host_of(h).metrics.counter(or_empty(name), or_empty(help), or_empty(labels)));
    },
    [](const mekik_host* h, const char* name, const char* help, const char* labels) {
      return made(h, name, host_of(h).metrics.gauge(or_empty(name), or_empty(help), or_empty(labels)));
    },
    [](const mekik_host* h, const char* name, const char* help, const char* labels, const double* bounds, std::uint32_t n) {
      if (n > kMaxBounds || (n > 0 && bounds == nullptr)) return made(h, name, nullptr);
      return made(h, name,
                  host_of(h).metrics.histogram(or_empty(name), or_empty(help), std::vector<double>(bounds, bounds + n), or_empty(labels)));
    },
    [](mekik_metric* metric, double value) {
      if (metric != nullptr) metric->record(value);
    }};

const mekik_memory kMemory{
    sizeof(mekik_memory), 0,
    [](const mekik_host* h, std::size_t bytes, std::size_t align, const char* tag) { return host_of(h).memory.alloc(bytes, align, tag); },
    [](const mekik_host* h, void* memory) { host_of(h).memory.release(memory); }};

const mekik_tasks kTasks{
    sizeof(mekik_tasks), 0, [](const mekik_host* h) { return host_of(h).tasks.width(); },
    [](const mekik_host* h, std::uint32_t n, void (*fn)(void*, std::uint32_t), void* ctx) { host_of(h).tasks.parallel(n, fn, ctx); }};

constexpr std::size_t kMapped =
    std::size_t{1} << 20;  // from here on memory comes from the kernel, which zeroes pages when they are touched

void* zeroed(std::size_t bytes, std::size_t align) {
  if (bytes < kMapped) {
    void* memory = ::operator new (bytes, std::align_val_t{align}, std::nothrow);
    if (memory != nullptr) std::memset(memory, 0, bytes);
    return memory;
  }
  void* mapped = mmap(nullptr, bytes + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped), at = (begin + align - 1) / align * align;
  const std::uintptr_t low = at / page * page, end = begin + bytes + align, high = (at + bytes + page - 1) / page * page;
  if (low > begin) munmap(mapped, low - begin);
  if (end > high) munmap(reinterpret_cast<void*>(high), end - high);
  return reinterpret_cast<void*>(at);
}

void free_zeroed(void* memory, std::size_t bytes, std::size_t align) {
  if (bytes < kMapped) ::operator delete (memory, std::align_val_t{align});
  else munmap(memory, bytes);  // aligned to a page at least: mmap's own is, and larger alignments are multiples
}

const config::Table& table_of(const mekik_config* config) { return *reinterpret_cast<const config::Table*>(config); }

const mekik_config_api kConfig{sizeof(mekik_config_api),
                               0,
                               [](const mekik_config* c, const char* key) { return table_of(c).i64(or_empty(key)); },
                               [](const mekik_config* c, const char* key) { return table_of(c).f64(or_empty(key)); },
                               [](const mekik_config* c, const char* key) { return abi_str(table_of(c).text(or_empty(key))); },
                               [](const mekik_config* c, const char* key) { return table_of(c).length(or_empty(key)); },
                               [](const mekik_config* c, const char* key, std::uint32_t i) -> const mekik_config* {
                                 const config::Table* found = table_of(c).table(or_empty(key), i);
                                 return found == nullptr ? nullptr : abi_config(*found);
                               },
                               [](const mekik_config* c, const char* key, mekik_str why) -> mekik_status {
                                 const std::string reason = utf8_replace_invalid(bounded(why));
                                 remember_rejection(table_of(c).rejection(or_empty(key), reason), bounded(why));
                                 return MEKIK_E_INVALID;
                               }};

const void* service(const mekik_host*, const char* id) {
  if (id == nullptr) return nullptr;
  const std::string_view wanted = id;
  if (wanted == MEKIK_LOG) return &kLog;
  if (wanted == MEKIK_METRICS) return &kMetrics;
  if (wanted == MEKIK_MEMORY) return &kMemory;
  if (wanted == MEKIK_TASKS) return &kTasks;
  if (wanted == MEKIK_CONFIG) return &kConfig;
  return nullptr;
}

}  // namespace

const mekik_config* abi_config(const config::Table& table) { return reinterpret_cast<const mekik_config*>(&table); }

mekik_metric* MemoryAccount::gauge_of(const std::string& tag) {
  return metrics_.gauge("mekik_plugin_memory_bytes", "Host memory that a library asked the engine for.",
                        "library=" + library_ + ",tag=" + tag);
}

void* MemoryAccount::alloc(std::size_t bytes, std::size_t align, const char* tag) {
  if (align == 0) align = alignof(std::max_align_t);
  if (bytes == 0 || bytes > kMaxAlloc || align > kMaxAlign || (align & (align - 1)) != 0) return nullptr;
  void* memory = zeroed(bytes, align);
  if (memory == nullptr) return nullptr;
  std::string name = utf8_replace_invalid(std::string_view{or_empty(tag)}.substr(0, 64));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ',' || c == '=' || static_cast<unsigned char>(c) < 0x20; }, '_');
  const std::lock_guard lock{mutex_};
  if (by_tag_.size() >= kMaxTags && by_tag_.find(name) == by_tag_.end()) name = "other";
  blocks_.emplace(memory, Block{bytes, align, name});
  total_ += bytes;
  if (mekik_metric* gauge = gauge_of(name)) gauge->record(static_cast<double>(by_tag_[name] += bytes));
  return memory;
}

void MemoryAccount::release(void* memory) {
  if (memory == nullptr) return;
  const std::lock_guard lock{mutex_};
  const auto it = blocks_.find(memory);
  if (it == blocks_.end()) {
    log::error(library_, "released memory that it does not have; nothing was freed");
    return;
  }
  const Block block = it->second;
  blocks_.erase(it);
  total_ -= block.bytes;
  if (mekik_metric* gauge = gauge_of(block.tag)) gauge->record(static_cast<double>(by_tag_[block.tag] -= block.bytes));
  free_zeroed(memory, block.bytes, block.align);
}

std::size_t MemoryAccount::bytes() const {
  const std::lock_guard lock{mutex_};
  return total_;
}

void MemoryAccount::make_resident(const std::atomic<bool>& stop) const {
  constexpr std::size_t kStep = std::size_t{16} << 20;
  std::vector<std::pair<char*, std::size_t>> large;
  {
    const std::lock_guard lock{mutex_};
    for (const auto& [memory, block] : blocks_)
      if (block.bytes >= kMapped) large.emplace_back(static_cast<char*>(memory), block.bytes);
  }
  // A kernel that does not know the advice, or has no memory left, leaves pages to be made when they are touched.
  for (const auto& [memory, bytes] : large)
    for (std::size_t at = 0; at < bytes && !stop; at += kStep) madvise(memory + at, std::min(kStep, bytes - at), MADV_POPULATE_WRITE);
}

void make_resident(const mekik_host* host, const std::atomic<bool>& stop) { host_of(host).memory.make_resident(stop); }

Host::Host(std::string name, metrics::Metrics& registry, Tasks& pool)
    : library{std::move(name)}, metrics{registry}, tasks{pool}, memory{library, registry} {
  raw_.struct_size = sizeof(mekik_host);
  raw_.abi_minor = MEKIK_ABI_MINOR;
  raw_.self = this;
  raw_.name = "mekik";
  raw_.version = MEKIK_VERSION;
  raw_.fail = [](const mekik_host*, mekik_status code, mekik_str why) {
    remember_failure(bounded(why));
    return code;
  };
  raw_.service = service;
}

}  // namespace mekik::plugin
