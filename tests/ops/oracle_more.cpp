// The reference operations that only some families of models need, against numpy (make_vectors.py).
#include "oracle.hpp"

namespace mekik::reference {

TEST_CASE("columns beside each other") {
  std::vector<float> a{1, 2, 3, 4, 5, 6, 7, 8}, b{-1, -2, -3, -4}, out(12);
  concat(rows(a, 2, 2, 2), rows(b, 2, 2, 1), rows(out, 2, 2, 3));
  CHECK(out == std::vector<float>{1, 2, -1, 3, 4, -2, 5, 6, -3, 7, 8, -4});
}

TEST_CASE("means, roots and scaling by position") {
  const Case c{"position_scale"}, r{"roots"};
  auto x = c.floats("x"), y = x;
  const auto positions = c.ids("positions");
  std::vector<float> means(8);
  mean(rows(x, 4, 2, 3), rows(means, 4, 2, 1));
  check_near(means, c["mean"]);
  position_scale(rows(x, 4, 2, 3), positions.data(), 0, 4.0, 0.1, rows(y, 4, 2, 3));
  check_near(y, c["plain"]);
  position_scale(rows(x, 4, 2, 3), positions.data(), 1, 8.0, 0.25, rows(y, 4, 2, 3));
  check_near(y, c["shifted"]);
  auto roots = r.floats("x"), out = roots;
  act(rows(roots, 8, 1, 1), kSqrt, rows(out, 8, 1, 1));
  check_near(out, r["sqrt"]);
  act(rows(roots, 8, 1, 1), kExp, rows(out, 8, 1, 1));
  check_near(out, r["exp"]);
  std::vector<float> one{2.5f};
  mul(rows(x, 4, 2, 3), {one.data(), 0, 0, 1, 1}, rows(y, 4, 2, 3));  // a weight of one number
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == x[i] * 2.5f);
}

TEST_CASE("attention_chunk sees its own chunk") {
  const Case c{"attention_chunk"};
  auto q = c.floats("q"), k = c.floats("k"), v = c.floats("v");
  OneSequence s{5, 3, 22, MEKIK_F32}, all{0, 8, 22, MEKIK_F32};
  s.state.heads = 2;
  all.table = s.table;
  all.batch.max_blocks = s.batch.max_blocks;
  kv_append(rows(k, 8, 2, 6), rows(v, 8, 2, 5), s.state, all.step());
  std::vector<float> y(60);
  attention(rows(q, 3, 4, 6), s.state, c.floats("sinks"), {}, {5, true, 0, 0.3, 0, 3}, s.step(), rows(y, 3, 4, 5));
  check_near(y, c["y"]);
}

TEST_CASE("attention_near sees both ways, as far as its window") {
  const Case c{"attention_near"};
  auto q = c.floats("q"), k = c.floats("k"), v = c.floats("v");
  const auto segments = c.ids("segments");
  std::vector<float> y(72);
  attention_near(rows(q, 6, 4, 4), rows(k, 6, 2, 4), rows(v, 6, 2, 3), {segments.data(), 6, 1, 1, 1}, c.floats("sinks"), c.floats("slopes"),
                 {3, 0.5, 2}, {}, rows(y, 6, 4, 3));
  check_near(y, c["y"]);
}

TEST_CASE("other ways of routing") {
  const Case c{"moe_route_mixer"};
  auto logits = c.floats("logits");
  std::vector<std::int32_t> ids(10), three(15);
  std::vector<float> weights(10), more(15);
  moe_route_mixer(rows(logits, 5, 1, 8), c["width"][0], {ids.data(), 5, 2, 1, 2}, rows(weights, 5, 1, 2));
  CHECK(ids == c.ids("ids"));
  check_near(weights, c["weights"]);
  moe_route(rows(logits, 5, 1, 8), {}, {3, 3, 1, 1, 0, true, 2.5}, {three.data(), 5, 3, 1, 3}, rows(more, 5, 1, 3));
  CHECK(three == c.ids("chosen"));
  check_near(more, c["picked"]);
  const Case s{"moe_spread"};
  auto x = s.floats("x"), mix = s.floats("mix"), scaled = mix;
  std::vector<float> y(30), total(15);
  moe_spread(rows(x, 5, 1, 3), rows(mix, 5, 1, 2), rows(y, 5, 2, 3));
  check_near(y, s["y"]);
  moe_combine(rows(y, 5, 2, 3), nullptr, rows(total, 5, 1, 3));
  check_near(total, s["total"]);
  moe_scale(rows(mix, 5, 1, 2), {ids.data(), 5, 2, 1, 2}, s.floats("s"), rows(scaled, 5, 1, 2));
  check_near(scaled, s["scaled"]);
}

TEST_CASE("gated_delta with a decay for each channel") {
  const Case c{"delta_by_channel"};
  auto q = c.floats("q"), k = c.floats("k"), v = c.floats("v"), decay = c.floats("decay"), beta = c.floats("beta"), out = v;
  TwoSlots s{c.floats("start")};
  gated_delta({rows(q, 4, 2, 3), rows(k, 4, 2, 3), rows(v, 4, 4, 2), rows(decay, 4, 4, 3), rows(beta, 4, 1, 4), false, 0.5}, s.slot,
              s.work.data(), OneSequence{0, 4, 1, MEKIK_F32}.step(), rows(out, 4, 4, 2));
  check_near(out, c["y"]);
  check_near(s.after(), c["after"]);
}

}  // namespace mekik::reference
