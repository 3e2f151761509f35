// The cache that keeps nothing: blocks are free as soon as no sequence holds them. Until then sequences share what they have in common.
#include <mekik/plugin.hpp>

#include <array>

namespace {

struct None {
  static constexpr const char* name = "none";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Keeps nothing: prompts share their beginnings only while they run at the same time.";
  static constexpr std::array<mekik_option, 0> options{};
  explicit None(mekik::Config) {}
  void touched(const mekik_key&, std::uint64_t) {}
  std::uint32_t victims(mekik::Strided<const mekik_node> nodes, std::uint64_t, std::uint32_t* chosen) {
    for (std::uint32_t i = 0; i < nodes.size(); ++i) chosen[i] = i;
    return static_cast<std::uint32_t>(nodes.size());
  }
};

}  // namespace

MEKIK_PLUGIN("mekik.cache.none", "1.0", mekik::cache<None>());
