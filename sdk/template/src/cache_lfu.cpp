// When memory is needed, what was used least often goes, and of these what was unused longest: system prompts outlive a burst of others.
#include <mekik/plugin.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

struct Lfu {
  static constexpr const char *name = "lfu", *version = "1.0", *summary = "Keeps what is used most often.";
  explicit Lfu(mekik::Config) {}

  std::uint32_t victims(mekik::Strided<const mekik_node> nodes, std::uint64_t bytes, std::uint32_t* chosen) {
    std::vector<std::uint32_t> order(nodes.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](std::uint32_t i, std::uint32_t j) {
      const mekik_node &a = nodes[i], &b = nodes[j];
      if (a.uses != b.uses) return a.uses < b.uses;
      if (a.last_use_ns != b.last_use_ns) return a.last_use_ns < b.last_use_ns;
      return std::memcmp(a.key.sha256, b.key.sha256, sizeof a.key.sha256) < 0;  // the same nodes always give the same victims
    });
    std::uint32_t n = 0;
    for (std::uint64_t freed = 0; n < order.size() && freed < bytes; freed += nodes[order[n++]].bytes) chosen[n] = order[n];
    return n;
  }
};

MEKIK_PLUGIN("org.example.lfu", "1.0", mekik::cache<Lfu>());
