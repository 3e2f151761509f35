// What a batch or a program may not be: an error with a reason, and nothing changed.
#include "programs.hpp"
#include "subject.hpp"
#include "support/catch.hpp"

namespace mekik::test {

namespace {

using Spoil = std::function<void(Session::Batch&)>;

void refuses(Session& session, const char* what, mekik_status wanted, const Spoil& spoil) {
  INFO(what);
  const std::vector<Part> parts{{{1, 2, 3}, 0, {0}, -1, 0}, {{4, 5}, 4, {1, 2}, 1, 1}};
  auto batch = session.batch(parts);
  spoil(*batch);
  testing::FakeHost::take_failure();
  CHECK(session.submit(batch->raw) == wanted);
  CHECK_FALSE(testing::FakeHost::take_failure().empty());
}

}  // namespace

TEST_CASE("a wrong batch is refused and changes nothing") {
  ProgramBuilder b{4};
  build_llama(b, "q4_0", "f16", 0);
  Session session{subject(), b};
  const auto tokens = random_tokens(6, 1);
  const std::vector<std::int32_t> blocks{0, 1, 2};
  const auto truth = [&] {
    session.step({{{tokens.begin(), tokens.begin() + 4}, 0, blocks, -1, 0}});
    return session.step({{{tokens.begin() + 4, tokens.end()}, 4, blocks, 0, 0}});
  }();
  session.step({{{tokens.begin(), tokens.begin() + 4}, 0, blocks, -1, 0}});
  refuses(session, "token past the vocabulary", MEKIK_E_INVALID, [](auto& x) { x.tokens[1] = kVocab; });
  refuses(session, "negative token", MEKIK_E_INVALID, [](auto& x) { x.tokens[4] = -1; });
  refuses(session, "row past the tokens", MEKIK_E_INVALID, [](auto& x) { x.rows[0] = 5; });
  refuses(session, "block past the pool", MEKIK_E_INVALID, [](auto& x) { x.table[0] = 64; });
  refuses(session, "missing block", MEKIK_E_INVALID, [](auto& x) { x.table[0] = -1; });
  refuses(session, "two sequences write one block", MEKIK_E_INVALID, [&](auto& x) { x.table[0] = 2; });
  refuses(session, "no tokens in a sequence", MEKIK_E_INVALID, [](auto& x) { x.seq_start[1] = 0; });
  refuses(session, "sequences past the tokens", MEKIK_E_INVALID, [](auto& x) { x.seq_start[2] = 9; });
  refuses(session, "negative context", MEKIK_E_INVALID, [](auto& x) { x.context[1] = -4; });
  refuses(session, "context past its blocks", MEKIK_E_INVALID, [](auto& x) { x.context[1] = 4000; });
  refuses(session, "more tokens than the limit", MEKIK_E_INVALID, [](auto& x) { x.raw.n_tokens = 65; });
  refuses(session, "more sequences than the limit", MEKIK_E_INVALID, [](auto& x) { x.raw.n_seqs = 9; });
  refuses(session, "a use that no plan lists", MEKIK_E_UNSUPPORTED, [](auto& x) { x.raw.uses = std::uint64_t{1} << 40; });
  CHECK(session.step({{{tokens.begin() + 4, tokens.end()}, 4, blocks, 0, 0}}) == truth);
  std::uint64_t ticket = 0;
  std::vector<std::uint8_t> bytes(session.plan().block_bytes[0]);
  const auto& table = session.backend().table();
  CHECK(table.state_read(session.exec(), MEKIK_WHAT_BLOCK, 0, 64, bytes.data(), bytes.size(), &ticket) == MEKIK_E_INVALID);
  CHECK(table.state_read(session.exec(), MEKIK_WHAT_BLOCK, 0, 0, bytes.data(), bytes.size() - 1, &ticket) == MEKIK_E_INVALID);
  const mekik_move past{MEKIK_WHAT_ROWS, 0, 0, 1, 3, 0, 2, 0};
  CHECK(table.move(session.exec(), &past, 1, sizeof past, &ticket) == MEKIK_E_INVALID);
}

TEST_CASE("a wrong slot is refused and changes nothing") {
  ProgramBuilder b{4};
  build_hybrid(b);
  std::string why;
  if (!supports_all(subject(), b, &why)) return;
  Session session{subject(), b};
  const auto tokens = random_tokens(6, 1);
  const std::vector<std::int32_t> blocks{0, 1, 2};
  const auto past = [&] { session.step({{{tokens.begin(), tokens.begin() + 4}, 0, blocks, -1, 1}}); };
  const std::vector<Part> rest{{{tokens.begin() + 4, tokens.end()}, 4, blocks, 1, 1}};
  past();
  const auto truth = session.step(rest);
  past();
  refuses(session, "a slot past the pool", MEKIK_E_INVALID, [](auto& x) { x.state_in[1] = 16; });
  refuses(session, "a negative slot", MEKIK_E_INVALID, [](auto& x) { x.state_out[4] = -2; });
  refuses(session, "saved past the pool", MEKIK_E_INVALID, [](auto& x) { x.state_out[4] = 16; });
  refuses(session, "a past without a state", MEKIK_E_INVALID, [](auto& x) { x.state_in[1] = -1; });
  refuses(session, "one slot written twice", MEKIK_E_INVALID, [](auto& x) { x.state_out[2] = x.state_out[4] = 3; });
  refuses(session, "saved on the way", MEKIK_E_INVALID, [](auto& x) { x.state_out[3] = 3; });
  refuses(session, "no slots", MEKIK_E_INVALID, [](auto& x) { x.raw.state_in = nullptr; });
  CHECK(session.step(rest) == truth);
  std::uint64_t ticket = 0;
  std::vector<std::uint8_t> bytes(session.plan().slot_bytes);
  const auto& table = session.backend().table();
  CHECK(table.state_read(session.exec(), MEKIK_WHAT_SLOT, 0, 16, bytes.data(), bytes.size(), &ticket) == MEKIK_E_INVALID);
  CHECK(table.state_read(session.exec(), MEKIK_WHAT_SLOT, 0, 0, bytes.data(), bytes.size() - 1, &ticket) == MEKIK_E_INVALID);
  const mekik_move past_end{MEKIK_WHAT_SLOT, 0, 0, 16, 0, 0, 0, 0};
  CHECK(table.move(session.exec(), &past_end, 1, sizeof past_end, &ticket) == MEKIK_E_INVALID);
}

TEST_CASE("what looks to both sides comes whole, and places are within their table") {
  ProgramBuilder b{4};
  build_encoder(b);
  const auto place = b.temp({kT, 64});
  b.op(op::embed, {b.input("positions"), b.weight("f32", 100, 64)}, {place});
  std::string why;
  if (!supports_all(subject(), b, &why)) return;
  Session session{subject(), b};
  refuses(session, "a sequence in pieces", MEKIK_E_INVALID, [](auto& x) { x.context[1] = 4; });
  refuses(session, "a place past the table", MEKIK_E_INVALID, [](auto& x) { x.context[1] = 0, x.positions[2] = 100; });
  refuses(session, "a negative place", MEKIK_E_INVALID, [](auto& x) { x.context[1] = 0, x.positions[2] = -1; });
}

TEST_CASE("an operation that is not as ops.def says is not supported") {
  const auto refused = [](const std::function<void(ProgramBuilder&)>& build) {
    ProgramBuilder b{4};
    build(b);
    std::string why;
    CHECK_FALSE(supports_all(subject(), b, &why));
    CHECK(why.size() > 20);
  };
  const auto rows = [](ProgramBuilder& b) { return random_rows(b, {32}); };
  refused([&](ProgramBuilder& b) { b.op(9999, {rows(b)}, {b.temp({kT, 32})}); });
  refused([&](ProgramBuilder& b) { b.op(op::act, {rows(b)}, {b.temp({kT, 32})}, {1, 2}); });
  refused([&](ProgramBuilder& b) { b.op(op::act, {rows(b)}, {b.temp({kT, 32})}, {77}); });
  refused([&](ProgramBuilder& b) { b.op(op::linear, {rows(b), b.weight("f32", 8, 33), kNone}, {b.temp({kT, 8})}); });
  refused([&](ProgramBuilder& b) {
    b.op(op::attention, {rows(b), b.state(1, 64, "q9_x"), kNone, kNone}, {b.temp({kT, 1, 32})}, {32, 1, 0}, {1.0, 0.0});
  });
}

TEST_CASE("operations of families that are not as ops.def says are not supported") {
  const auto refused = [](const char* what, const std::function<void(ProgramBuilder&)>& build) {
    INFO(what);
    ProgramBuilder b{4};
    build(b);
    std::string why;
    CHECK_FALSE(supports_all(subject(), b, &why));
    CHECK(why.size() > 20);
  };
  const auto route = [](ProgramBuilder& b, std::vector<std::int64_t> ints) {
    const auto ids = b.ids({kT, ints[0]}), weights = b.temp({kT, ints[0]});
    b.op(op::moe_route, {random_rows(b, {8}), kNone}, {ids, weights}, std::move(ints), {1.0});
    return ids;
  };
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
  refused("a stack where one matrix is needed", [](auto& b) {
    b.op(op::linear, {random_rows(b, {32}), b.weight("f32", 2, 4, 33), kNone}, {b.temp({kT, 8})});
  });
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
  refused("a scale of fewer experts", [&](auto& b) {
    b.op(op::moe_scale, {random_rows(b, {2}), route(b, {2, 0, 1, 1, 0, 0}), b.noise(1, 7, 0, 1)}, {b.temp({kT, 2})});
  });
  refused("rows for another number of experts", [](auto& b) {
    b.op(op::moe_spread, {random_rows(b, {32}), random_rows(b, {2})}, {b.temp({kT, 3, 32})});
  });
  refused("a place that is no position", [](auto& b) {
    b.op(op::position_scale, {random_rows(b, {32}), b.input("tokens")}, {b.temp({kT, 32})}, {0}, {4.0, 0.1});
  });
  refused("heads that do not divide", [](auto& b) {
    b.op(op::attention_full, {random_rows(b, {3, 8}), random_rows(b, {2, 8}), random_rows(b, {2, 8}), b.input("segments")},
         {b.temp({kT, 3, 8})}, {}, {1.0});
  });
}

TEST_CASE("the plan is held to") {
  using Build = std::function<void(ProgramBuilder&)>;
  for (const Build& build : {Build{[](ProgramBuilder& b) { build_llama(b, "q4_0", "f16", 0); }}, Build{build_hybrid}, Build{build_mamba},
                             Build{[](ProgramBuilder& b) { build_experts(b, "q4_0"); }},
                             Build{[](ProgramBuilder& b) { build_latent(b, "q8_0", "f16"); }}, Build{build_encoder}}) {
    ProgramBuilder b{4};
    build(b);
    std::string why;
    if (!supports_all(subject(), b, &why)) continue;
    testing::FakeHost& host = subject().host();
    const std::uint64_t before = host.bytes_in_use();
    {
      Session session{subject(), b};
      const mekik_plan& p = session.plan();
      const std::uint64_t planned = p.weight_bytes + p.work_bytes + p.host_bytes + p.block_bytes[0] * session.limits().n_blocks[0] +
                                    p.slot_bytes * session.limits().n_slots;
      CHECK(host.bytes_in_use() - before <= planned);
      session.step({{random_tokens(9, 2), 0, {0, 1, 2}, -1, 0}});
      CHECK(host.bytes_in_use() - before <= planned);
    }
    CHECK(host.bytes_in_use() == before);
  }
}

}  // namespace mekik::test
