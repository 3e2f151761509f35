// Operations of families that are not as ops.def says: refused before anything runs, with a reason.
#include "programs.hpp"
#include "subject.hpp"
#include "support/catch.hpp"

namespace mekik::test {

namespace {

void refused(const char* what, const std::function<void(ProgramBuilder&)>& build) {
  INFO(what);
  ProgramBuilder b{4};
  build(b);
  std::string why;
  CHECK_FALSE(supports_all(subject(), b, &why));
  CHECK(why.size() > 20);
}

ProgramBuilder::Id route(ProgramBuilder& b, std::vector<std::int64_t> ints) {
  const auto ids = b.ids({kT, ints[0]}), weights = b.temp({kT, ints[0]});
  b.op(op::moe_route, {random_rows(b, {8}), kNone}, {ids, weights}, std::move(ints), {1.0});
  return ids;
}

}  // namespace

TEST_CASE("wrong mixtures of experts are not supported") {
  refused("more experts than there are", [&](auto& b) { route(b, {9, 0, 1, 1, 0, 0}); });
  refused("an unknown score", [&](auto& b) { route(b, {2, 7, 1, 1, 0, 0}); });
  refused("groups that do not divide", [&](auto& b) { route(b, {2, 0, 3, 1, 0, 0}); });
  refused("more than the groups have", [&](auto& b) { route(b, {3, 0, 4, 1, 0, 0}); });
  const auto experts = [&](auto& b, std::uint64_t n_experts, std::uint64_t k, std::int64_t top) {
    b.op(op::moe_linear, {random_rows(b, {32}), b.weight("f32", n_experts, 4, k), route(b, {2, 0, 1, 1, 0, 0}), kNone},
         {b.temp({kT, top, 4})});
  };
  refused("fewer experts than the route names", [&](auto& b) { experts(b, 7, 32, 2); });
  refused("experts of another width", [&](auto& b) { experts(b, 8, 33, 2); });
  refused("a result of another size", [&](auto& b) { experts(b, 8, 32, 3); });
  refused("ids that no route made", [](auto& b) {
    b.op(op::moe_linear, {random_rows(b, {32}), b.weight("f32", 8, 4, 32), b.input("tokens"), kNone}, {b.temp({kT, 1, 4})});
  });
  refused("a scale of fewer experts", [&](auto& b) {
    b.op(op::moe_scale, {random_rows(b, {2}), route(b, {2, 0, 1, 1, 0, 0}), b.noise(1, 7, 0, 1)}, {b.temp({kT, 2})});
  });
  refused("rows for another number of experts", [](auto& b) {
    b.op(op::moe_spread, {random_rows(b, {32}), random_rows(b, {2})}, {b.temp({kT, 3, 32})});
  });
}

TEST_CASE("wrong recurrences are not supported") {
  const auto conv = [](auto& b, std::uint64_t channels, std::int64_t slot, std::int64_t kind) {
    b.op(op::conv_state, {random_rows(b, {32}), b.noise(channels, 4, 0, 1), kNone, b.slot({32, slot})}, {b.temp({kT, 32})}, {kind});
  };
  refused("taps of other channels", [&](auto& b) { conv(b, 31, 3, 1); });
  refused("a slot of another size", [&](auto& b) { conv(b, 32, 4, 1); });
  refused("an unknown activation", [&](auto& b) { conv(b, 32, 3, 16); });
  const auto scan = [](auto& b, std::int64_t groups, std::uint64_t a, std::int64_t slot) {
    b.op(op::ssm_scan,
         {random_rows(b, {4, 8}), random_rows(b, {4}), b.noise(1, a, 0, 1), random_rows(b, {groups, 6}), random_rows(b, {groups, 6}),
          b.noise(1, 4, 0, 1), b.slot({4, 8, slot})},
         {b.temp({kT, 4, 8})});
  };
  refused("groups that do not divide the heads", [&](auto& b) { scan(b, 3, 4, 6); });
  refused("A of another size", [&](auto& b) { scan(b, 2, 5, 6); });
  refused("a slot of other states", [&](auto& b) { scan(b, 2, 4, 7); });
  const auto delta = [](auto& b, std::int64_t hv, std::int64_t gates, std::int64_t spread) {
    b.op(op::gated_delta,
         {random_rows(b, {2, 8}), random_rows(b, {2, 8}), random_rows(b, {hv, 6}), random_rows(b, {gates}), random_rows(b, {gates}),
          b.slot({hv, 8, 6})},
         {b.temp({kT, hv, 6})}, {spread}, {1.0});
  };
  refused("value heads that key heads do not divide", [&](auto& b) { delta(b, 3, 3, 0); });
  refused("gates of other heads", [&](auto& b) { delta(b, 4, 5, 0); });
  refused("an unknown spread", [&](auto& b) { delta(b, 4, 4, 2); });
}

TEST_CASE("wrong attentions and places are not supported") {
  const auto latent = [](auto& b, std::int64_t state, std::uint64_t rank, std::int64_t v) {
    b.op(op::mla_attention,
         {random_rows(b, {2, 8}), random_rows(b, {2, 4}), b.weight("f32", 2, rank, 8), b.weight("f32", 2, 6, 16), b.state(1, state, "f16")},
         {b.temp({kT, 2, v})}, {16, 4, 0}, {1.0});
  };
  refused("a state of other latents", [&](auto& b) { latent(b, 21, 16, 6); });
  refused("a projection of another rank", [&](auto& b) { latent(b, 20, 15, 6); });
  refused("values of another width", [&](auto& b) { latent(b, 20, 16, 7); });
  refused("chunks of no rows", [](auto& b) {
    b.op(op::attention_chunk, {random_rows(b, {2, 8}), b.state(2, 16, "f16"), kNone, kNone}, {b.temp({kT, 2, 8})}, {8, 1, 0}, {1.0, 0.0});
  });
  refused("slopes of other heads", [](auto& b) {
    b.op(op::attention_near,
         {random_rows(b, {2, 8}), random_rows(b, {2, 8}), random_rows(b, {2, 8}), b.input("segments"), kNone, b.noise(1, 3, 0, 1)},
         {b.temp({kT, 2, 8})}, {4}, {1.0, 0.0});
  });
  refused("a place that is no position", [](auto& b) {
    b.op(op::position_scale, {random_rows(b, {32}), b.input("tokens")}, {b.temp({kT, 32})}, {0}, {4.0, 0.1});
  });
  refused("heads that do not divide", [](auto& b) {
    b.op(op::attention_full, {random_rows(b, {3, 8}), random_rows(b, {2, 8}), random_rows(b, {2, 8}), b.input("segments")},
         {b.temp({kT, 3, 8})}, {}, {1.0});
  });
}

}  // namespace mekik::test
