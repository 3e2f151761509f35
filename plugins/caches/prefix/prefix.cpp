// The cache that keeps what was computed until its memory is needed, so that a prompt which begins as an earlier one did starts there.
#include <unistd.h>
#include <mekik/plugin.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tiers.hpp"

namespace {

class Prefix {
 public:
  static constexpr const char* name = "prefix";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Keeps the blocks and states of prompts and answers until their memory is needed.";
  static constexpr std::array options{
      mekik::opt::choice("victims", "lru", "lru|cost",
                         "What goes when memory is needed: the longest unused, or what takes least time to compute again for its bytes and "
                         "its last use."),
      mekik::opt::size(
          "host_memory", "0", 0, 1e15,
          "Memory of the host for what the backend's memory has no room for, beside what the memory plan says; of use where that is "
          "another, and for sequences that are preempted. 0: none."),
      mekik::opt::path("disk", nullptr, "A directory where prompts and answers are kept beyond a restart, also for other processes."),
      mekik::opt::size("disk_size", nullptr, 1 << 20, 1e15, "Bytes that the directory may take, by default 8GiB; the longest unused goes."),
      mekik::opt::text("redis", nullptr,
                       "A Redis server through which several machines share what they computed: redis://[user@]host[:port][/db] or "
                       "unix:path[?db=n]. Who can write there can change answers."),
      mekik::opt::path("redis_password_file", nullptr, "A file that holds the server's password and nothing else."),
      mekik::opt::text("redis_prefix", nullptr, "In front of the names of all values there, by default mekik:."),
      mekik::opt::duration("redis_timeout", nullptr, 1e6, 60e9,
                           "Who does not answer in this time, by default 250ms, and 100ms more for a MiB, is not asked for a while."),
      mekik::opt::duration("redis_ttl", nullptr, 0, 1e18,
                           "So long values live there after they were last stored, by default 24h; 0: for ever."),
  };
  explicit Prefix(mekik::Config config)
      : by_cost_{config.text("victims") == "cost"},
        host_bytes_{host_memory(config)},
        tiers_{{host_bytes_, std::string{config.text("disk")}, disk_budget(config), redis(config)}} {}

  void touched(const mekik_key&, std::uint64_t) {}  // the host counts uses and times itself

  // Of bytes 0 nothing is unwanted. The order is total, so that the same view always gives the same victims.
  std::uint32_t victims(mekik::Strided<const mekik_node> nodes, std::uint64_t bytes, std::uint32_t* chosen) {
    if (bytes == 0) return 0;
    order_.resize(nodes.size());
    std::iota(order_.begin(), order_.end(), 0u);
    worth_.clear();
    if (by_cost_) {
      std::uint64_t newest = 0;
      for (std::uint32_t i = 0; i < nodes.size(); ++i) newest = std::max(newest, nodes[i].last_use_ns);
      for (std::uint32_t i = 0; i < nodes.size(); ++i) worth_.push_back(worth(nodes[i], newest));
    }
    const auto before = [&](std::uint32_t i, std::uint32_t j) {
      const mekik_node &a = nodes[i], &b = nodes[j];
      if (by_cost_ && worth_[i] != worth_[j]) return worth_[i] < worth_[j];
      if (a.last_use_ns != b.last_use_ns) return a.last_use_ns < b.last_use_ns;
      return std::lexicographical_compare(std::begin(a.key.sha256), std::end(a.key.sha256), std::begin(b.key.sha256),
                                          std::end(b.key.sha256));
    };
    std::sort(order_.begin(), order_.end(), before);
    std::uint32_t n = 0;
    for (std::uint64_t freed = 0; n < order_.size() && freed < bytes; ++n) {
      chosen[n] = order_[n];
      freed += nodes[order_[n]].bytes;
    }
    return n;
  }

  bool has(const mekik_key& key, std::uint64_t& bytes, std::uint64_t& expected_ns) const { return tiers_.has(key, bytes, expected_ns); }
  void store(const mekik_key& key, const void* data, std::uint64_t bytes, mekik_done done, void* ctx) {
    tiers_.store(key, data, bytes, done, ctx);
  }
  void fetch(const mekik_key& key, void* data, std::uint64_t bytes, mekik_done done, void* ctx) {
    tiers_.fetch(key, data, bytes, done, ctx);
  }
  void ask(std::span<const mekik_key> keys, bool chain, mekik::Strided<mekik_known> out, mekik_done done, void* ctx) {
    tiers_.ask(keys, chain, out, done, ctx);
  }
  void cancel(void* ctx) { tiers_.cancel(ctx); }
  std::uint64_t host_bytes() const { return host_bytes_; }

 private:
  static std::uint64_t host_memory(const mekik::Config& config) {
    const auto given = static_cast<std::uint64_t>(config.i64("host_memory"));
    const auto machine = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    if (given >= machine)
      config.reject("host_memory", "the machine has " + std::to_string(machine >> 20) + "MiB in all; take less, or use disk");
    return given;
  }

  static std::uint64_t disk_budget(const mekik::Config& config) {
    const auto given = static_cast<std::uint64_t>(config.i64("disk_size"));
    if (given != 0 && config.text("disk").empty()) config.reject("disk_size", "there is no directory to which it applies; give disk, too");
    return given != 0 ? given : kDiskBytes;
  }

  static std::optional<mekik::prefix_cache::RedisOptions> redis(const mekik::Config& config) {
    if (config.text("redis").empty()) {
      for (const char* key : {"redis_password_file", "redis_prefix", "redis_timeout", "redis_ttl"})
        if (config.length(key) > 0) config.reject(key, "there is no server to which it applies; give redis, too");
      return {};
    }
    mekik::prefix_cache::RedisOptions out;
    try {
      out = mekik::prefix_cache::parse_redis(std::string{config.text("redis")});
    } catch (const std::invalid_argument& e) {
      config.reject("redis", std::string{"this address cannot be used: "} + e.what());
    }
    if (mekik::prefix_cache::make_redis(out) == nullptr)
      config.reject("redis", "this mekik was built without hiredis; install libhiredis-dev (Debian) and build again, or use disk");
    out.prefix = config.length("redis_prefix") > 0 ? std::string{config.text("redis_prefix")} : "mekik:";
    out.timeout_ns = config.length("redis_timeout") > 0 ? static_cast<std::uint64_t>(config.i64("redis_timeout")) : 250'000'000;
    out.ttl_ns =
        config.length("redis_ttl") > 0 ? static_cast<std::uint64_t>(config.i64("redis_ttl")) : std::uint64_t{86400} * 1'000'000'000;
    if (const std::string path{config.text("redis_password_file")}; !path.empty()) {
      std::ifstream file{path, std::ios::binary};
      std::getline(file, out.password);
      if (!file && out.password.empty()) config.reject("redis_password_file", path + " cannot be read, or is empty");
      if (!out.password.empty() && out.password.back() == '\r') out.password.pop_back();
    }
    if (!out.user.empty() && out.password.empty()) config.reject("redis", "a user needs a password; write it into a redis_password_file");
    return out;
  }

  static constexpr std::uint64_t kDiskBytes = std::uint64_t{8} << 30;
  // Time that it saves for each byte, over the time since it last did.
  static double worth(const mekik_node& node, std::uint64_t newest) {
    const double age = static_cast<double>(newest - node.last_use_ns) + kShortNs;
    return static_cast<double>(node.recompute_ns) * (node.uses + 1.0) / (static_cast<double>(std::max<std::uint64_t>(node.bytes, 1)) * age);
  }

  static constexpr double kShortNs = 1e9;  // uses as close together as this count as at one time
  const bool by_cost_;
  const std::uint64_t host_bytes_;
  std::vector<std::uint32_t> order_;
  std::vector<double> worth_;
  mekik::prefix_cache::Tiers tiers_;
};

}  // namespace

MEKIK_PLUGIN("mekik.cache.prefix", "1.0", mekik::cache<Prefix>());
