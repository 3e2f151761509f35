// The cache that keeps what was computed until its memory is needed, so that a prompt which begins as an earlier one did starts there.
#include <mekik/plugin.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace {

class Prefix {
 public:
  static constexpr const char* name = "prefix";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Keeps the blocks of prompts and answers; the longest unused go when memory is needed.";
  static constexpr std::array<mekik_option, 0> options{};
  explicit Prefix(mekik::Config) {}

  void touched(const mekik_key&, std::uint64_t) {}  // the host counts uses and times itself

  // Of bytes 0 nothing is unwanted. The order is total, so that the same view always gives the same victims.
  std::uint32_t victims(mekik::Strided<const mekik_node> nodes, std::uint64_t bytes, std::uint32_t* chosen) {
    if (bytes == 0) return 0;
    order_.resize(nodes.size());
    std::iota(order_.begin(), order_.end(), 0u);
    const auto before = [&](std::uint32_t i, std::uint32_t j) {
      const mekik_node &a = nodes[i], &b = nodes[j];
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

 private:
  std::vector<std::uint32_t> order_;
};

}  // namespace

MEKIK_PLUGIN("mekik.cache.prefix", "1.0", mekik::cache<Prefix>());
