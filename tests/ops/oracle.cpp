// The reference operations against expectations made in numpy by make_vectors.py, and against what can be said by hand.
#include "oracle.hpp"

#include "forms.hpp"

namespace mekik::reference {

TEST_CASE("activations") {
  const Case c{"act"};
  const auto x = c.floats("x");
  for (std::int64_t kind = 0; kind <= 9; ++kind) {
    const Numbers& wanted = c["y" + std::to_string(kind)];
    for (std::size_t i = 0; i < x.size(); ++i) {
      CAPTURE(kind, x[i]);
      CHECK(activate(kind, x[i]) == Approx(wanted[i]).epsilon(1e-6).margin(1e-12));
    }
  }
  const Case s{"swiglu_clamped"};
  auto g = s.floats("g"), u = s.floats("u"), y = g;
  glu(rows(g, 1, 1, 12), rows(u, 1, 1, 12), kSwigluClamped, s["limit"][0], s["alpha"][0], rows(y, 1, 1, 12));
  check_near(y, s["y"]);
}

TEST_CASE("norms and softmax") {
  const Case c{"norms"};
  auto x = c.floats("x"), y = x;
  const auto w = c.floats("w"), b = c.floats("b");
  const Rows in = rows(x, 3, 2, 8), out = rows(y, 3, 2, 8);
  rms_norm(in, w, 1e-5, out);
  check_near(y, c["rms"]);
  layer_norm(in, w, b, 1e-5, out);
  check_near(y, c["layer"]);
  l2_norm(in, 1e-6, out);
  check_near(y, c["l2"]);
  softmax(in, out);
  check_near(y, c["softmax"]);
}

TEST_CASE("simple operations, by hand") {
  std::vector<float> a{1, -2, 3, 4, 5, -6}, b{10, 20}, y(6), half{0.5f, 0.25f, 2, 1, 1, 1};
  const Rows x = rows(a, 2, 1, 3), out = rows(y, 2, 1, 3);
  add(x, rows(half, 2, 1, 3), out);
  CHECK(y == std::vector<float>{1.5f, -1.75f, 5, 5, 6, -5});
  mul(x, rows(b, 2, 1, 1), out);
  CHECK(y == std::vector<float>{10, -20, 30, 80, 100, -120});
  add(x, {half.data(), 0, 0, 1, 3}, out);  // a weight: the same for each row
  CHECK(y == std::vector<float>{1.5f, -1.75f, 5, 4.5f, 5.25f, -4});
  scale(x, 2, 1, out);
  CHECK(y == std::vector<float>{3, -3, 7, 9, 11, -11});
  clamp(x, -3, 3.5, out);
  CHECK(y == std::vector<float>{1, -2, 3, 3.5f, 3.5f, -3});
  softcap(x, 2, out);
  CHECK(y[2] == Approx(2 * std::tanh(1.5)));
  std::vector<std::int32_t> best(2), order{1, 1, 0};
  std::vector<float> ties{3, 7, 7, 7, 1, 7}, taken(9);
  argmax(rows(ties, 2, 1, 3), {best.data(), 2, 1, 1, 1});
  CHECK(best == std::vector<std::int32_t>{1, 0});
  take_rows(x, {order.data(), 3, 1, 1, 1}, rows(taken, 3, 1, 3));
  CHECK(taken == std::vector<float>{4, 5, -6, 4, 5, -6, 1, -2, 3});
  const Rows one = rows(half, 1, 1, 3);
  put_rows(x, &one, {order.data(), 1, 1, 1, 1}, true, out);
  CHECK(y == std::vector<float>{1, -2, 3, 4.5f, 5.25f, -4});
  put_rows(x, &one, {order.data(), 1, 1, 1, 1}, false, out);
  CHECK(y == std::vector<float>{1, -2, 3, 0.5f, 0.25f, 2});
  cast(rows(b, 2, 1, 1), MEKIK_BF16, rows(y, 2, 1, 1));
  CHECK(y[0] == 10);
}

TEST_CASE("embeddings and pooling, by hand") {
  const test::TestWeight table{{1, 2, 3, 4, 5, 6}, 1, 3, 2};
  std::vector<std::uint64_t> memory(8);
  Weight w{table.form(), memory.data()};
  const mekik_form_rows place = w.expert(0);
  REQUIRE(table.rows(0, 0, 3, place) == MEKIK_OK);
  std::vector<std::int32_t> ids{2, 0, 1, 1};
  std::vector<float> y(8), mix{0.5f, 2, 1, -1}, mixed(4);
  embed({ids.data(), 4, 1, 1, 1}, w, rows(y, 4, 1, 2));
  CHECK(y == std::vector<float>{5, 6, 1, 2, 3, 4, 3, 4});
  embed_mix({ids.data(), 2, 2, 1, 2}, rows(mix, 2, 1, 2), w, rows(mixed, 2, 1, 2));
  CHECK(mixed == std::vector<float>{4.5f, 7, 0, 0});
  OneSequence s{0, 4, 1, MEKIK_F32};
  std::vector<float> pooled(2);
  const auto pools_to = [&](std::int64_t kind, const std::vector<float>& wanted) {
    pool(rows(y, 4, 1, 2), kind, s.step(), rows(pooled, 1, 1, 2));
    CHECK(pooled == wanted);
  };
  pools_to(kMean, {3, 4});
  pools_to(kCls, {5, 6});
  pools_to(kLast, {3, 4});
  pools_to(kMax, {5, 6});
  pools_to(kWeightedMean, {2.8f, 3.8f});  // (5 + 2 * 1 + 3 * 3 + 4 * 3) / 10
  pools_to(kMeanSqrtLen, {6, 8});         // 12 / 2
}

namespace {

// A weight of F32 numbers.
struct Floats {
  Floats(const std::vector<float>& values, std::uint64_t experts, std::uint64_t n, std::uint64_t k)
      : source{values, experts, n, k}, memory(values.size() / 2 + experts), weight{source.form(), memory.data()} {
    for (std::uint64_t e = 0; e < experts; ++e) REQUIRE(source.rows(e, 0, n, weight.expert(e)) == MEKIK_OK);
  }
  test::TestWeight source;
  std::vector<std::uint64_t> memory;
  Weight weight;
};

}  // namespace

TEST_CASE("linear") {
  const Case c{"linear"};
  auto x = c.floats("x");
  std::vector<float> y(33);
  linear(rows(x, 3, 1, 21), Floats{c.floats("w"), 1, 11, 21}.weight, c.floats("b"), rows(y, 3, 1, 11), {});
  check_near(y, c["y"]);
}

TEST_CASE("rope") {
  for (const std::string name : {"rope", "rope_axes"}) {
    const Case c{name};
    auto x = c.floats("x"), y = x;
    const auto positions = c.ids("positions");
    for (const std::int64_t pairs : {0, 1}) {
      rope(rows(x, 4, 2, 10), c.floats("table"), {positions.data(), static_cast<std::uint32_t>(positions.size() / 4), 4}, 8, pairs, 1.25,
           rows(y, 4, 2, 10));
      check_near(y, c["y" + std::to_string(pairs)], 3e-7);
    }
  }
}

TEST_CASE("attention over stored rows") {
  const Case c{"attention"};
  auto q = c.floats("q");
  const auto run = [&](std::uint32_t num, AttentionOptions options, const Flat& sinks, const Flat& slopes) {
    OneSequence s{5, 3, 22, num};
    s.state.heads = 2;
    OneSequence all{0, 8, 22, num};
    all.table = s.table;
    all.batch.max_blocks = s.batch.max_blocks;
    auto k = c.floats("k"), v = c.floats("v");
    kv_append(rows(k, 8, 2, 6), rows(v, 8, 2, 5), s.state, all.step());
    std::vector<float> y(60);
    options.dv = 5;
    options.scale = 0.3;
    attention(rows(q, 3, 4, 6), s.state, sinks, slopes, options, s.step(), rows(y, 3, 4, 5));
    return y;
  };
  check_near(run(MEKIK_F32, {0, true, 0, 0, 0}, {}, {}), c["plain"]);
  check_near(run(MEKIK_F16, {0, true, 0, 0, 0}, {}, {}), c["f16"]);
  check_near(run(MEKIK_F32, {0, true, 3, 0, 0}, {}, {}), c["window"]);
  check_near(run(MEKIK_F32, {0, true, 0, 0, 1.5}, {}, {}), c["cap"]);
  check_near(run(MEKIK_F32, {0, true, 0, 0, 0}, c.floats("sinks"), {}), c["sinks_y"]);
  check_near(run(MEKIK_F32, {0, true, 4, 0, 0}, {}, c.floats("slopes")), c["slopes_y"]);
  check_near(run(MEKIK_F32, {0, false, 0, 0, 0}, {}, {}), c["two_way"]);
}

TEST_CASE("a tree sees its ancestors, a span sees itself both ways") {
  // Three tokens after a context of none: token 2 is a sibling of token 1. Values are one-hot, scores all equal.
  std::vector<float> q(3, 0.0f), k(3, 0.0f), v{1, 0, 0, 0, 1, 0, 0, 0, 1}, y(9);
  OneSequence s{0, 3, 4, MEKIK_F32};
  kv_append(rows(k, 3, 1, 1), rows(v, 3, 1, 3), s.state, s.step());
  const std::vector<std::uint64_t> tree{1, 3, 5};
  s.batch.tree = tree.data();
  attention(rows(q, 3, 1, 1), s.state, {}, {}, {3, true, 0, 1, 0}, s.step(), rows(y, 3, 1, 3));
  CHECK(y == std::vector<float>{1, 0, 0, 0.5f, 0.5f, 0, 0.5f, 0, 0.5f});
  attention(rows(q, 3, 1, 1), s.state, {}, {}, {3, true, 1, 1, 0}, s.step(), rows(y, 3, 1, 3));  // depth counts for a window
  CHECK(y == std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1});
  s.batch.tree = nullptr;
  const std::vector<std::int32_t> spans{4, 4, -1};
  s.batch.spans = spans.data();
  attention(rows(q, 3, 1, 1), s.state, {}, {}, {3, true, 0, 1, 0}, s.step(), rows(y, 3, 1, 3));
  check_near(y, {0.5, 0.5, 0, 0.5, 0.5, 0, 1 / 3.0, 1 / 3.0, 1 / 3.0});
}

TEST_CASE("attention_full") {
  const Case c{"attention_full"};
  auto q = c.floats("q"), k = c.floats("k"), v = c.floats("v");
  const auto segments = c.ids("segments");
  std::vector<float> y(36);
  attention_full(rows(q, 6, 2, 4), rows(k, 6, 1, 4), rows(v, 6, 1, 3), {segments.data(), 6, 1, 1, 1}, 0.5, {}, rows(y, 6, 2, 3));
  check_near(y, c["y"]);
}

TEST_CASE("mla_attention equals the expanded form") {
  const Case c{"mla"};
  auto qn = c.floats("q_nope"), qr = c.floats("q_rot"), latent = c.floats("c"), kr = c.floats("k_rot");
  OneSequence s{5, 2, 10, MEKIK_F32}, all{0, 7, 10, MEKIK_F32};
  all.table = s.table;
  all.batch.max_blocks = s.batch.max_blocks;
  kv_append(rows(latent, 7, 1, 6), rows(kr, 7, 1, 4), s.state, all.step());
  std::vector<float> y(12);
  mla_attention(rows(qn, 2, 2, 5), rows(qr, 2, 2, 4), Floats{c.floats("k_b"), 2, 6, 5}.weight, Floats{c.floats("v_b"), 2, 3, 6}.weight,
                s.state, {6, 4, 0, 0.2}, s.step(), rows(y, 2, 2, 3));
  check_near(y, c["y"]);
}

TEST_CASE("routing and experts") {
  for (int i = 0; i < 4; ++i) {
    const Case c{"moe_route" + std::to_string(i)};
    const auto o = c.ids("options");
    const auto top = static_cast<std::size_t>(o[0]);
    auto logits = c.floats("logits");
    std::vector<std::int32_t> ids(5 * top);
    std::vector<float> weights(5 * top);
    moe_route(rows(logits, 5, 1, 8), o[1] == 1 ? c.floats("bias") : Flat{}, {o[0], o[1], o[2], o[3], o[4], o[5] != 0, c["options"][6]},
              {ids.data(), 5, top, 1, top}, rows(weights, 5, 1, top));
    CHECK(ids == c.ids("ids"));
    check_near(weights, c["weights"]);
  }
  std::vector<float> equal{1, 1, 1, 1}, weights(2);
  std::vector<std::int32_t> ids(2);
  moe_route(rows(equal, 1, 1, 4), {}, {2, 0, 1, 1, 0, false, 1.0}, {ids.data(), 1, 2, 1, 2}, rows(weights, 1, 1, 2));
  CHECK(ids == std::vector<std::int32_t>{0, 1});  // ties to the lower index
  const Case c{"moe_linear"};
  auto x = c.floats("x"), mix = c.floats("mix");
  const auto chosen = c.ids("ids");
  std::vector<float> y(30), combined(15);
  moe_linear(rows(x, 3, 1, 6), Floats{c.floats("w"), 4, 5, 6}.weight, {chosen.data(), 3, 2, 1, 2}, c.floats("b"), rows(y, 3, 2, 5), {});
  check_near(y, c["y"]);
  const Rows shares = rows(mix, 3, 1, 2);
  moe_combine(rows(y, 3, 2, 5), &shares, rows(combined, 3, 1, 5));
  check_near(combined, c["combined"]);
}

TEST_CASE("recurrent operations, token by token") {
  const Case conv{"conv"};
  auto x = conv.floats("x"), y = x;
  TwoSlots tail{conv.floats("past")};
  conv_state(rows(x, 6, 1, 3), conv.floats("w"), conv.floats("b"), kSilu, tail.slot, tail.work.data(),
             OneSequence{0, 6, 1, MEKIK_F32}.step(), rows(y, 6, 1, 3));
  check_near(y, conv["y"]);
  check_near(tail.after(), conv["after"], 0);
  for (const std::string name : {"ssm", "ssm_columns"}) {
    const Case c{name};
    auto in = c.floats("x"), dt = c.floats("dt"), b = c.floats("b"), cc = c.floats("c"), out = in;
    TwoSlots s{c.floats("start")};
    ssm_scan({rows(in, 4, 4, 3), rows(dt, 4, 1, 4), rows(b, 4, 2, 5), rows(cc, 4, 2, 5), c.floats("a"), c.floats("d")}, s.slot,
             s.work.data(), OneSequence{0, 4, 1, MEKIK_F32}.step(), rows(out, 4, 4, 3));
    check_near(out, c["y"]);
    check_near(s.after(), c["after"]);
  }
  const Case c{"gated_delta"};
  auto q = c.floats("q"), k = c.floats("k"), v = c.floats("v"), decay = c.floats("decay"), beta = c.floats("beta"), out = v;
  for (const bool tiled : {false, true}) {
    TwoSlots s{c.floats("start")};
    gated_delta({rows(q, 4, 2, 3), rows(k, 4, 2, 3), rows(v, 4, 4, 2), rows(decay, 4, 1, 4), rows(beta, 4, 1, 4), tiled, 0.5}, s.slot,
                s.work.data(), OneSequence{0, 4, 1, MEKIK_F32}.step(), rows(out, 4, 4, 2));
    check_near(out, c[tiled ? "y1" : "y0"]);
    check_near(s.after(), c[tiled ? "after1" : "after0"]);
  }
}

}  // namespace mekik::reference
