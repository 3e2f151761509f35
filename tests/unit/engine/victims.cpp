// What the cache plugin gives up.
#include "support/catch.hpp"
#include "support/engine_bench.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

// Indices in the order in which `count` nodes go.
std::vector<std::uint32_t> victims(const std::string& options, const std::vector<mekik_node>& nodes, std::uint64_t bytes) {
  const auto made = engine::make_instance<mekik_cache_policy, mekik_cache>(shared_plugins().registry, use("cache", "prefix", options));
  REQUIRE(made.ok());
  std::vector<std::uint32_t> out(nodes.size());
  const auto n = static_cast<std::uint32_t>(nodes.size());
  out.resize((*made)->victims(made->get(), nodes.data(), n, sizeof(mekik_node), bytes, out.data()));
  return out;
}

mekik_node node(std::uint8_t name, std::uint64_t bytes, std::uint64_t last_use_s, std::uint64_t recompute_ms, std::uint32_t uses = 0) {
  mekik_node n{};
  n.key.sha256[0] = name;
  n.bytes = bytes;
  n.last_use_ns = last_use_s * 1'000'000'000;
  n.recompute_ns = recompute_ms * 1'000'000;
  n.uses = uses;
  return n;
}

}  // namespace

TEST_CASE("the longest unused goes, or what costs least to compute again") {
  const std::vector<mekik_node> nodes{node(1, 100, 50, 1), node(2, 100, 10, 90), node(3, 100, 50, 80), node(4, 1000, 50, 80),
                                      node(5, 100, 50, 2, 1)};
  using Order = std::vector<std::uint32_t>;
  CHECK(victims("", nodes, 0).empty());
  CHECK(victims("", nodes, 1) == Order{1});
  CHECK(victims("victims = \"lru\"", nodes, 250) == Order{1, 0, 2});
  CHECK(victims("victims = \"cost\"", nodes, 1) == Order{0});
  CHECK(victims("victims = \"cost\"", nodes, 1400) == Order{0, 1, 4, 3, 2});
  CHECK(victims("victims = \"cost\"", nodes, 0).empty());
}
